package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// finalLSN is where the WAL of a server ends that was shut down cleanly: the
// location of its last checkpoint, which is the last record.
func (m *Manager) finalLSN(ctx context.Context) (string, error) {
	values, err := m.controlData(ctx)
	if err != nil {
		return "", err
	}
	if values[controlState] != "shut down" {
		return "", errors.New("the server was not shut down cleanly")
	}
	return values[controlCheckpoint], nil
}

// What pg_controldata calls things.
const (
	controlState      = "Database cluster state"
	controlCheckpoint = "Latest checkpoint location"
	controlTimeline   = "Latest checkpoint's TimeLineID"
)

// controlData are the words of pg_controldata, by name.
func (m *Manager) controlData(ctx context.Context) (map[string]string, error) {
	var output strings.Builder
	command := exec.CommandContext(ctx, m.binaries.Path("pg_controldata"), m.options.Paths.Data)
	command.Stdout = &output
	command.Env = append(os.Environ(), "LC_ALL=C")
	if err := m.supervisor.Run(command); err != nil {
		return nil, fmt.Errorf("read the control file: %w", err)
	}
	values := map[string]string{}
	for line := range strings.Lines(output.String()) {
		if name, value, found := strings.Cut(line, ":"); found {
			values[name] = strings.TrimSpace(value)
		}
	}
	return values, nil
}

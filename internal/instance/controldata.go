package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/protocol"
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

// readFollowed finds out what a replica needs at least as much of as the primary has,
// and reports what it keeps therefore. A primary follows nobody.
func (m *Manager) readFollowed(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, standby bool) error {
	followed := map[string]int64{}
	if standby {
		values, err := m.controlData(ctx)
		if err != nil {
			return err
		}
		for name, word := range config.Followed {
			if followed[name], err = strconv.ParseInt(values[word], 10, 64); err != nil {
				return fmt.Errorf("read the control file: %s: %w", word, err)
			}
		}
	}
	m.followed = followed
	held := config.Held(m.configInput(cluster))
	m.update(func(r *protocol.Report) { r.HeldParameters = held })
	return nil
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

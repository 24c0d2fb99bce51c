package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/my-org/postgres-operator/internal/postgres"
)

// fileAuto is where ALTER SYSTEM writes. PostgreSQL reads it after the
// configuration, so what stands in it wins.
const fileAuto = "postgresql.auto.conf"

var autoLine = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_.]*)\s*[= \t]`)

// CleanAuto takes reserved parameters out of the file of ALTER SYSTEM in a data
// directory, before the server starts on it, and names them. Until 16 nothing
// keeps a superuser from writing them there, and a clone brings along those of its
// source: a replica would listen elsewhere, or follow another server.
func CleanAuto(data string) ([]string, error) {
	path := filepath.Join(data, fileAuto)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what ALTER SYSTEM set: %w", err)
	}
	kept, removed := withoutReserved(string(raw))
	if len(removed) == 0 {
		return nil, nil
	}
	_, err = Write(data, map[string]string{fileAuto: kept})
	return removed, err
}

// withoutReserved drops the lines that set reserved parameters. ALTER SYSTEM
// writes one parameter to a line, and no value with a line break.
func withoutReserved(text string) (kept string, removed []string) {
	var lines []string
	for line := range strings.Lines(text) {
		if parts := autoLine.FindStringSubmatch(line); parts != nil {
			name := strings.ToLower(parts[1])
			if _, reserved := postgres.Reserved[name]; reserved {
				removed = append(removed, name)
				continue
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ""), removed
}

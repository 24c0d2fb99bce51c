package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/my-org/postgres-operator/internal/postgres"
)

// Binaries are the programs of one PostgreSQL version.
type Binaries struct {
	Directory string
	Version   postgres.Version
}

// Path of a program.
func (b Binaries) Path(program string) string { return filepath.Join(b.Directory, program) }

// searchPlaces are where images keep PostgreSQL, in the order of asking.
func searchPlaces(major int) []string {
	places := filepath.SplitList(os.Getenv("PATH"))
	return append(places,
		fmt.Sprintf("/usr/lib/postgresql/%d/bin", major), // Debian, the official image
		fmt.Sprintf("/usr/pgsql-%d/bin", major),          // RHEL, packages of the PostgreSQL project
		"/usr/lib64/pgsql/bin", "/usr/bin",               // RHEL's own packages
		"/usr/local/bin", "/usr/local/pgsql/bin", // Alpine's official image, built from source
		fmt.Sprintf("/usr/libexec/postgresql%d", major), // Alpine's own packages
		fmt.Sprintf("/opt/bitnami/postgresql-%d/bin", major), "/opt/bitnami/postgresql/bin",
	)
}

// FindBinaries finds the programs of a major. If there are only others, or none,
// found names what there is.
func (s *Supervisor) FindBinaries(ctx context.Context, major int) (binaries Binaries, found []string, ok bool) {
	for _, place := range searchPlaces(major) {
		program := filepath.Join(place, "postgres")
		if info, err := os.Stat(program); err != nil || info.IsDir() {
			continue
		}
		var output bytes.Buffer
		command := exec.CommandContext(ctx, program, "--version")
		command.Stdout = &output
		if err := s.Run(command); err != nil {
			found = append(found, fmt.Sprintf("%s (does not run: %v)", program, err))
			continue
		}
		version, err := postgres.ParseServerVersion(output.String())
		if err != nil {
			continue
		}
		// PATH often has links to programs beside which the others are missing.
		real, err := filepath.EvalSymlinks(program)
		if err != nil {
			real = program
		}
		if version.Major == major {
			for _, directory := range []string{place, filepath.Dir(real)} {
				if complete(directory) {
					return Binaries{Directory: directory, Version: version}, found, true
				}
			}
		}
		if text := fmt.Sprintf("%s %s", version, place); !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return Binaries{}, found, false
}

// complete tells whether a directory has every program we run.
func complete(directory string) bool {
	for _, program := range []string{"postgres", "initdb", "pg_basebackup"} {
		if _, err := os.Stat(filepath.Join(directory, program)); err != nil {
			return false
		}
	}
	return true
}

// Describe joins what was found for a message.
func Describe(found []string) string {
	if len(found) == 0 {
		return "no PostgreSQL at all"
	}
	return strings.Join(found, ", ")
}

package config

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// refusedParameter finds the names in what PostgreSQL says about wrong values,
// names that it does not know, and values out of range.
var refusedParameter = regexp.MustCompile(`parameter "([^"]+)"`)

// WriteUsable writes the configuration for a start of the server, without those
// parameters of the user's that the server (the program postgres) would refuse to
// start with, and returns their names. A running server goes on with its old
// configuration when it is given a wrong value; that value must not turn the next
// crash into an outage. run runs a command to its end.
func WriteUsable(ctx context.Context, in Input, program string, run func(*exec.Cmd) error) ([]string, error) {
	cluster := in.Cluster.DeepCopy()
	in.Cluster = cluster
	var removed []string
	for {
		if _, err := Write(in.Directory, Render(in)); err != nil {
			return removed, err
		}
		words := ask(ctx, in, program, run)
		found := false
		for _, match := range refusedParameter.FindAllStringSubmatch(words, -1) {
			name := match[1]
			if _, set := cluster.Spec.PostgreSQL.Parameters[name]; set {
				delete(cluster.Spec.PostgreSQL.Parameters, name)
				removed = append(removed, name)
				found = true
			}
		}
		if !found {
			// Either it is accepted, or what is wrong is not the user's to mend: the
			// server itself will say it.
			slices.Sort(removed)
			return removed, nil
		}
	}
}

// ask has the server read the files without starting, and returns its complaint;
// none if it has none.
func ask(ctx context.Context, in Input, program string, run func(*exec.Cmd) error) string {
	var words bytes.Buffer
	// -C first: so it may be asked under any user id.
	command := exec.CommandContext(ctx, program, "-C", "port", "-D", in.Data,
		"-c", "config_file="+filepath.Join(in.Directory, FileServer))
	command.Env = append(os.Environ(), "LC_ALL=C")
	command.Stdout, command.Stderr = &words, &words
	if err := run(command); err != nil {
		return fmt.Sprintf("%s\n%v", words.String(), err)
	}
	return ""
}

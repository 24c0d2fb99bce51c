package config

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Write puts files into a directory, each atomically and only if it differs. It
// tells whether any did. The mode of the files is 0600: keys are among them.
func Write(directory string, files map[string]string) (bool, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return false, fmt.Errorf("make the directory of the configuration: %w", err)
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(directory, name)
		if current, err := os.ReadFile(path); err == nil && bytes.Equal(current, []byte(files[name])) {
			continue
		}
		temporary := path + ".new"
		if err := os.WriteFile(temporary, []byte(files[name]), 0o600); err != nil {
			return changed, fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.Rename(temporary, path); err != nil {
			return changed, fmt.Errorf("replace %s: %w", name, err)
		}
		changed = true
	}
	return changed, nil
}

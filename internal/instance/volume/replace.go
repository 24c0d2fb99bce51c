package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// removed ends the name of a data directory that was replaced: it is on its way
	// out, and no longer whole.
	removed = ".removed"
	// rewinding ends the name of the file that stands while pg_rewind works on the
	// data directory: one that was left half-way must never be started.
	rewinding = ".rewinding"
)

// Sweep removes what an earlier replacement left.
func Sweep(path string) error {
	if err := os.RemoveAll(path + removed); err != nil {
		return fmt.Errorf("remove the data that was replaced: %w", err)
	}
	return nil
}

// setAside takes its name from a data directory: from here on it is not taken for
// one any more, whole or not.
func setAside(path string) error {
	if err := Sweep(path); err != nil {
		return err
	}
	if err := os.Rename(path, path+removed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set the old data aside: %w", err)
	}
	return nil
}

// Discard removes a data directory. The caller has recognised it as a copy of this
// cluster's data that another instance has in a better state.
func Discard(path string) error {
	if err := setAside(path); err != nil {
		return err
	}
	if err := syncFileSystem(filepath.Dir(path)); err != nil {
		return err
	}
	return Sweep(path)
}

// Replace is Complete for an instance that has data which cannot follow the
// primary: the old data goes when the new is whole. A crash in between leaves the
// old, the new, or none, but never a part of either under the name of the data, nor
// the new one with the mark of a rewind that the old one had.
func Replace(temporary string, marker Marker) error {
	if err := writeMarker(temporary, marker); err != nil {
		return err
	}
	path := strings.TrimSuffix(temporary, unfinished)
	if err := syncFileSystem(filepath.Dir(path)); err != nil {
		return err
	}
	if err := setAside(path); err != nil {
		return err
	}
	if err := EndRewind(path); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("name the new data directory: %w", err)
	}
	if err := syncFileSystem(filepath.Dir(path)); err != nil {
		return err
	}
	return Sweep(path)
}

// BeginRewind writes down that the data directory is being rewound.
func BeginRewind(path string) error {
	if err := os.WriteFile(path+rewinding, nil, 0o600); err != nil {
		return fmt.Errorf("write down that the data is being rewound: %w", err)
	}
	return syncFileSystem(filepath.Dir(path))
}

// EndRewind writes everything to disk, and then that the data can be started.
func EndRewind(path string) error {
	if err := syncFileSystem(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Remove(path + rewinding); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write down that the data was rewound: %w", err)
	}
	return syncFileSystem(filepath.Dir(path))
}

// Rewinding tells whether a rewind was begun and not ended.
func Rewinding(path string) bool {
	_, err := os.Stat(path + rewinding)
	return err == nil
}

// Rewound tells whether pg_rewind, which ended well, has changed anything: it then
// leaves a backup_label, from which the replay begins.
func Rewound(path string) bool {
	_, err := os.Stat(filepath.Join(path, "backup_label"))
	return err == nil
}

// Used is the room that a directory takes on the volume, in bytes.
func Used(path string) (int64, error) {
	var used int64
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			used += stat.Blocks * 512
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the data: %w", err)
	}
	return used, nil
}

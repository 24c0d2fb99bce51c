package volume

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// markerFile in PGDATA says that the directory was made, completely, by an
// instance manager of the cluster it names.
const markerFile = "postgres-operator.json"

// unfinished ends the name of a directory that is being made. Only such a
// directory is ever removed.
const unfinished = ".unfinished"

// Marker is the content of the marker file.
type Marker struct {
	ClusterUID string `json:"clusterUID"`
}

// Data is what is known of a data directory.
type Data struct {
	Path string
	// Exists tells whether the directory is there with anything in it.
	Exists bool
	// Major and SystemIdentifier of the database cluster in it.
	Major            int
	SystemIdentifier string
	// Standby tells whether it starts as a replica.
	Standby bool
	// Marker is nil if the directory has none.
	Marker *Marker
}

// Look reads what a data directory is. A directory that is not empty and is no
// data directory is an error.
func Look(path string) (Data, error) {
	data := Data{Path: path}
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return data, nil
	}
	if err != nil {
		return data, fmt.Errorf("read the data directory: %w", err)
	}
	data.Exists = true
	version, err := os.ReadFile(filepath.Join(path, "PG_VERSION"))
	if err != nil {
		return data, fmt.Errorf("%s is not empty and is no data directory of PostgreSQL: %w", path, err)
	}
	if data.Major, err = strconv.Atoi(strings.TrimSpace(string(version))); err != nil {
		return data, fmt.Errorf("PG_VERSION holds %q", strings.TrimSpace(string(version)))
	}
	if data.SystemIdentifier, err = systemIdentifier(path); err != nil {
		return data, err
	}
	_, err = os.Stat(filepath.Join(path, "standby.signal"))
	data.Standby = err == nil
	if raw, err := os.ReadFile(filepath.Join(path, markerFile)); err == nil {
		marker := &Marker{}
		if err := json.Unmarshal(raw, marker); err != nil {
			return data, fmt.Errorf("read %s: %w", markerFile, err)
		}
		data.Marker = marker
	}
	return data, nil
}

// systemIdentifier is the first field of pg_control (src/include/catalog/
// pg_control.h), in the machine's byte order.
func systemIdentifier(path string) (string, error) {
	control, err := os.ReadFile(filepath.Join(path, "global", "pg_control"))
	if err != nil {
		return "", fmt.Errorf("read the control file: %w", err)
	}
	if len(control) < 8 {
		return "", fmt.Errorf("the control file has %d bytes", len(control))
	}
	return strconv.FormatUint(binary.NativeEndian.Uint64(control), 10), nil
}

// Begin makes an empty directory beside the data directory, to be filled and then
// handed to Complete. What an earlier try left of it is removed.
func Begin(path string) (string, error) {
	temporary := path + unfinished
	if err := os.RemoveAll(temporary); err != nil {
		return "", fmt.Errorf("remove the half-made directory of an earlier try: %w", err)
	}
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return "", fmt.Errorf("make a new data directory: %w", err)
	}
	return temporary, nil
}

// Complete marks a directory that Begin made, writes it to disk and gives it its
// name. A crash at any point leaves either an unfinished directory or a complete
// one.
func Complete(temporary string, marker Marker) error {
	if err := writeMarker(temporary, marker); err != nil {
		return err
	}
	parent := filepath.Dir(temporary)
	if err := syncFileSystem(parent); err != nil {
		return err
	}
	path := strings.TrimSuffix(temporary, unfinished)
	// What an earlier rewind left undone is not said of this directory.
	if err := os.Remove(path + rewinding); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the rewind of earlier data: %w", err)
	}
	// An empty directory of that name may be there; a filled one is never replaced.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make room for the new data directory: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("name the new data directory: %w", err)
	}
	return syncFileSystem(parent)
}

func writeMarker(directory string, marker Marker) error {
	raw, err := json.Marshal(marker)
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	if err := os.WriteFile(filepath.Join(directory, markerFile), raw, 0o600); err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	return nil
}

// MakeStandby makes a data directory start as a replica, from the next power cut
// on as well: one that has replayed WAL and lost its mark looks like a primary's.
func MakeStandby(path string) error {
	if err := os.WriteFile(filepath.Join(path, "standby.signal"), nil, 0o600); err != nil {
		return fmt.Errorf("mark the data directory as a replica's: %w", err)
	}
	for _, name := range []string{filepath.Join(path, "standby.signal"), path} {
		if err := syncOne(name); err != nil {
			return fmt.Errorf("mark the data directory as a replica's: %w", err)
		}
	}
	return nil
}

// syncOne writes one file, or the names in one directory, to disk.
func syncOne(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	return file.Sync()
}

// Protect takes the rights from a data directory that PostgreSQL refuses to have
// on it.
func Protect(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if info.Mode().Perm()&^0o750 == 0 {
		return nil
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("take the rights of others from the data directory: %w", err)
	}
	return nil
}

// syncFileSystem writes everything of the volume to disk: one call instead of one
// for each of some thousand files.
func syncFileSystem(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the volume: %w", err)
	}
	defer directory.Close() //nolint:errcheck // opened for reading
	if err := unix.Syncfs(int(directory.Fd())); err != nil {
		return fmt.Errorf("write the volume to disk: %w", err)
	}
	return nil
}

// Space is the size of the volume and what is left of it, in bytes.
func Space(path string) (total, available int64, err error) {
	var info unix.Statfs_t
	if err := unix.Statfs(path, &info); err != nil {
		return 0, 0, fmt.Errorf("look at the volume: %w", err)
	}
	return int64(info.Blocks) * info.Bsize, int64(info.Bavail) * info.Bsize, nil
}

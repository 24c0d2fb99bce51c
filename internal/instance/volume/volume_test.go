package volume

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fill makes what Look looks at.
func fill(t *testing.T, directory string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(directory, "global"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "PG_VERSION"), []byte("15\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "global", "pg_control"), binary.NativeEndian.AppendUint64(nil, 7012345678901234567), 0o600))
}

func TestADirectoryGetsItsNameWhenItIsComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	for range 2 { // the first try is cut short
		temporary, err := Begin(path)
		require.NoError(t, err)
		entries, err := os.ReadDir(temporary)
		require.NoError(t, err)
		assert.Empty(t, entries)
		fill(t, temporary)
		data, err := Look(path)
		require.NoError(t, err)
		assert.False(t, data.Exists)
	}
	require.NoError(t, MakeStandby(path+unfinished))
	require.NoError(t, os.Mkdir(path, 0o755), "an empty directory is in nobody's way")
	require.NoError(t, Complete(path+unfinished, Marker{ClusterUID: "u"}))
	data, err := Look(path)
	require.NoError(t, err)
	assert.Equal(t, Data{Path: path, Exists: true, Major: 15, SystemIdentifier: "7012345678901234567", Standby: true, Marker: &Marker{ClusterUID: "u"}}, data)
	assert.NoDirExists(t, path+unfinished)
}

func TestAFilledDirectoryIsNeverReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	temporary, err := Begin(path)
	require.NoError(t, err)
	fill(t, temporary)
	require.NoError(t, os.Mkdir(path, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, "letter"), nil, 0o600))
	require.Error(t, Complete(temporary, Marker{}))
	assert.FileExists(t, filepath.Join(path, "letter"))
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"no version":          func(d string) error { return os.Remove(filepath.Join(d, "PG_VERSION")) },
		"strange version":     func(d string) error { return os.WriteFile(filepath.Join(d, "PG_VERSION"), []byte("x"), 0o600) },
		"no control file":     func(d string) error { return os.Remove(filepath.Join(d, "global/pg_control")) },
		"short control file":  func(d string) error { return os.WriteFile(filepath.Join(d, "global/pg_control"), []byte("x"), 0o600) },
		"a marker of another": func(d string) error { return os.WriteFile(filepath.Join(d, markerFile), []byte("x"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			fill(t, path)
			require.NoError(t, spoil(path))
			_, err := Look(path)
			require.Error(t, err)
		})
	}
}

func TestRightsThatPostgresRefusesAreTaken(t *testing.T) {
	path := t.TempDir()
	for given, wanted := range map[os.FileMode]os.FileMode{0o770: 0o700, 0o755: 0o700, 0o750: 0o750, 0o700: 0o700} {
		require.NoError(t, os.Chmod(path, given))
		require.NoError(t, Protect(path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, wanted, info.Mode().Perm(), "%o", given)
	}
}

func TestTheLockHasOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path, func() { t.Error("nobody has it") })
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 3*lockRetry)
	defer cancel()
	waited := 0
	_, err = Lock(ctx, path, func() { waited++ })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, 1, waited)

	time.AfterFunc(lockRetry/2, func() { _ = held.Close() })
	next, err := Lock(t.Context(), path, func() {})
	require.NoError(t, err)
	require.NoError(t, next.Close())
}

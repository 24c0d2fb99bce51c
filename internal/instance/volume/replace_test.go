package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// whose tells which copy a directory is.
func whose(t *testing.T, directory string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(directory, "copy"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(content)
}

func makeCopy(t *testing.T, directory, name string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(directory, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(directory, "copy"), []byte(name), 0o600))
}

func TestOldDataIsReplacedByTheNewCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	makeCopy(t, path, "old")
	makeCopy(t, path+removed, "older")
	require.NoError(t, BeginRewind(path))
	require.True(t, Rewinding(path))
	temporary, err := Begin(path)
	require.NoError(t, err)
	makeCopy(t, temporary, "new")
	require.NoError(t, Replace(temporary, Marker{ClusterUID: "u"}))
	assert.Equal(t, "new", whose(t, path))
	assert.False(t, Rewinding(path), "it was said of the old data")
	assert.NoDirExists(t, path+removed)
	assert.NoDirExists(t, temporary)
}

func TestDataThatWentBeforeItsCopyLeavesNoMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	makeCopy(t, path, "old")
	require.NoError(t, BeginRewind(path))
	require.NoError(t, Discard(path))
	assert.Empty(t, whose(t, path))
	require.NoError(t, Discard(path), "again, after a crash")
	// The process died here; the next one clones as if there had never been data.
	temporary, err := Begin(path)
	require.NoError(t, err)
	makeCopy(t, temporary, "new")
	require.NoError(t, Complete(temporary, Marker{}))
	assert.Equal(t, "new", whose(t, path))
	assert.False(t, Rewinding(path), "a whole copy would never be started as a primary")
}

func TestOnlyARewindLeavesALabel(t *testing.T) {
	path := t.TempDir()
	assert.False(t, Rewound(path))
	require.NoError(t, os.WriteFile(filepath.Join(path, "backup_label"), nil, 0o600))
	assert.True(t, Rewound(path))
}

func TestUsedCountsBlocks(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "file"), make([]byte, 1<<20), 0o600))
	used, err := Used(path)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, used, int64(1<<20))
	_, err = Used(filepath.Join(path, "missing"))
	require.Error(t, err)
}

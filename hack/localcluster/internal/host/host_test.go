package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMountsAreRead(t *testing.T) {
	mounts := parseMounts(`25 1 254:0 / / rw,relatime - ext4 /dev/root rw
30 25 0:26 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
31 25 7:0 / /a\040b rw,relatime shared:1 - xfs /dev/loop0 rw,attr2
a line of something else
`)
	require.Len(t, mounts, 3)
	assert.Equal(t, Mount{Point: "/a b", Type: "xfs", Source: "/dev/loop0", Options: "rw,attr2"}, mounts[2])
}

func TestBothVersionsOfCgroupsAreKnown(t *testing.T) {
	one, err := cgroupsOf([]Mount{
		{Point: "/sys/fs/cgroup", Type: "tmpfs"},
		{Point: "/sys/fs/cgroup/freezer", Type: "cgroup"},
		{Point: "/sys/fs/cgroup/cpuset", Type: "cgroup"},
		{Point: "/sys/fs/cgroup/unified", Type: "cgroup2"},
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified"}, one.roots())
	assert.Equal(t, "/sys/fs/cgroup/freezer", one.freezer())

	two, err := cgroupsOf([]Mount{{Point: "/sys/fs/cgroup", Type: "cgroup2"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"/sys/fs/cgroup"}, two.roots())
	assert.Equal(t, "/sys/fs/cgroup", two.freezer())

	_, err = cgroupsOf([]Mount{{Point: "/", Type: "ext4"}})
	assert.ErrorContains(t, err, "no control groups")
}

// TestFreezeThawKillOnVersion2 plays a version 2 tree with plain files: this machine may have version 1.
func TestFreezeThawKillOnVersion2(t *testing.T) {
	root := t.TempDir()
	group := filepath.Join(root, "g")
	require.NoError(t, os.Mkdir(group, 0o755))
	c := &Cgroups{unified: root}
	require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.events"), []byte("populated 1\nfrozen 1\n"), 0o644))
	require.NoError(t, c.Freeze("g"))
	frozen, err := os.ReadFile(filepath.Join(group, "cgroup.freeze"))
	require.NoError(t, err)
	assert.Equal(t, "1", string(frozen))
	require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.events"), []byte("populated 0\nfrozen 0\n"), 0o644))
	require.NoError(t, c.Thaw("g"))
}

func TestLoopDevicesOfAFolder(t *testing.T) {
	devices, err := loopsBelow([]byte(`{"loopdevices": [
		{"name":"/dev/loop0", "back-file":"/state/nodes/node-1/volumes/a.img"},
		{"name":"/dev/loop1", "back-file":"/state/nodes/node-1/volumes/b.img (deleted)"},
		{"name":"/dev/loop2", "back-file":"/state-of-others/c.img"}]}`), "/state")
	require.NoError(t, err)
	assert.Equal(t, []string{"/dev/loop0", "/dev/loop1"}, devices)
	devices, err = loopsBelow(nil, "/state")
	require.NoError(t, err)
	assert.Empty(t, devices)
}

func TestProcessesAreKnownByTheirEnvironment(t *testing.T) {
	name, found := markerOf("PATH=/bin\x00" + marker + "=node-1/kubelet\x00")
	assert.True(t, found)
	assert.Equal(t, "node-1/kubelet", name)
	_, found = markerOf("PATH=/bin\x00X" + marker + "=no\x00")
	assert.False(t, found)
}

func TestADevelopersSettingsStayOut(t *testing.T) {
	kept := cleanEnvironment([]string{"KUBECONFIG=/x", "LANG=C", "HTTPS_PROXY=y", "GODEBUG=z", "TZ=UTC"})
	assert.Equal(t, []string{"HOME=/root", "LANG=C", "TZ=UTC"}, kept)
}

func TestLinksAndNotesOfAClusterAreRemoved(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/state/logs/a", filepath.Join(dir, "ours")))
	require.NoError(t, os.Symlink("/elsewhere/b", filepath.Join(dir, "theirs")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "note"), []byte(`{"netns":"/state/run/x"}`), 0o644))
	RemoveLinksInto(dir, "/state")
	RemoveFilesNaming(dir, "/state/")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "theirs", left[0].Name())
}

package plan

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newPlan(t *testing.T, nodes int) *Plan {
	t.Helper()
	p, err := New("/state", "/cache", nodes)
	require.NoError(t, err)
	return p
}

func TestNumberOfNodesHasBounds(t *testing.T) {
	for _, nodes := range []int{-1, 0, MaxNodes + 1} {
		_, err := New("/state", "/cache", nodes)
		assert.ErrorContains(t, err, "1 to 9 nodes", "%d", nodes)
	}
	assert.Len(t, newPlan(t, MaxNodes).Nodes, MaxNodes)
}

func TestFoldersMustBeAbsolute(t *testing.T) {
	for _, dirs := range [][2]string{{"state", "/cache"}, {"/state", "cache"}, {"/", "/cache"}} {
		_, err := New(dirs[0], dirs[1], 1)
		assert.ErrorContains(t, err, "absolute", "%v", dirs)
	}
}

func TestAddressesDoNotMeet(t *testing.T) {
	p := newPlan(t, MaxNodes)
	control := netip.MustParseAddr(ControlAddress)
	network := netip.PrefixFrom(control, NetworkBits).Masked()
	pods, services := netip.MustParsePrefix(PodNetwork), netip.MustParsePrefix(ServiceNetwork)
	assert.False(t, pods.Overlaps(services) || pods.Overlaps(network) || services.Overlaps(network))
	assert.True(t, services.Contains(netip.MustParseAddr(KubernetesService)))
	seen := map[netip.Addr]bool{control: true}
	for i, node := range p.Nodes {
		assert.True(t, network.Contains(node.Address), node.Name)
		assert.False(t, seen[node.Address], node.Name)
		seen[node.Address] = true
		assert.True(t, pods.Contains(node.PodCIDR.Addr()), node.Name)
		for _, other := range p.Nodes[:i] {
			assert.False(t, node.PodCIDR.Overlaps(other.PodCIDR), "%s and %s", node.Name, other.Name)
		}
	}
}

// The kernel's limits: 15 bytes for the name of an interface, 107 for the path of a socket.
func TestNamesFitTheKernel(t *testing.T) {
	p, err := New("/var/lib/postgres-operator-cluster", "/cache", MaxNodes)
	require.NoError(t, err)
	for _, node := range p.Nodes {
		assert.LessOrEqual(t, len(node.Link), 15)
		assert.LessOrEqual(t, len(node.ContainerdSocket()), 107)
		registration := filepath.Join(node.KubeletDir(), "plugins_registry", "local.csi.my-domain.com-reg.sock")
		assert.LessOrEqual(t, len(registration), 107)
	}
}

func TestProcessesHaveNamesOfTheirOwn(t *testing.T) {
	p := newPlan(t, 3)
	processes := append(p.ControlPlane(), p.EtcdProcess(), p.APIServerProcess(), p.RegistryProcess())
	for _, node := range p.Nodes {
		for _, process := range p.NodeProcesses(node) {
			require.NotNil(t, process.Node, process.Name)
			assert.Equal(t, node.Name, process.Node.Name)
			processes = append(processes, process)
		}
	}
	seen := map[string]bool{}
	for _, process := range processes {
		assert.False(t, seen[process.Name], process.Name)
		seen[process.Name] = true
		assert.True(t, filepath.IsAbs(process.Program), process.Name)
	}
	assert.Len(t, seen, 9+3*4)
}

func TestAnUnknownNodeIsNamed(t *testing.T) {
	_, err := newPlan(t, 2).Node("node-3")
	assert.EqualError(t, err, `node "node-3" is not part of this cluster; its nodes are [node-1 node-2]`)
}

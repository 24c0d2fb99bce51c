package render

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/pki"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
)

func testPlan(t *testing.T) *plan.Plan {
	t.Helper()
	p, err := plan.New("/state", "/cache", 2)
	require.NoError(t, err)
	return p
}

func byName(files []File) map[string]string {
	out := map[string]string{}
	for _, file := range files {
		out[filepath.Base(file.Path)] = string(file.Content)
	}
	return out
}

func TestFilesOfANodeAreItsOwn(t *testing.T) {
	p := testPlan(t)
	files, err := Node(p, p.Nodes[1])
	require.NoError(t, err)
	for _, file := range files {
		assert.True(t, strings.HasPrefix(file.Path, "/state/nodes/node-2/config/"), file.Path)
		assert.NotContains(t, string(file.Content), "node-1", file.Path)
		assert.NotContains(t, string(file.Content), "<no value>", file.Path)
	}
	content := byName(files)
	assert.Contains(t, content["kubelet.yaml"], "address: 172.30.0.12\n")
	assert.Contains(t, content["kubelet.yaml"], "cgroupRoot: /pgo-node-2\n")
	assert.Contains(t, content["10-pods.conflist"], `"subnet": "10.244.2.0/24"`)
	assert.Contains(t, content["hosts.toml"], `server = "http://172.30.0.1:5000"`)
	assert.Contains(t, content["containerd.toml"], "restrict_oom_score_adj = true")
}

func TestCoreDNSAsksTheMachineForOtherNames(t *testing.T) {
	with, err := Control(testPlan(t), []string{"192.0.2.1", "192.0.2.2"})
	require.NoError(t, err)
	assert.Contains(t, byName(with)["Corefile"], "forward . 192.0.2.1 192.0.2.2\n")
	without, err := Control(testPlan(t), nil)
	require.NoError(t, err)
	assert.NotContains(t, byName(without)["Corefile"], "forward")
}

func TestNameservers(t *testing.T) {
	text := "# comment\nsearch example.org\nnameserver 127.0.0.53\nnameserver 192.0.2.1\nnameserver ::1\nnameserver 172.30.0.1\nnameserver\n nameserver 2001:db8::1"
	assert.Equal(t, []string{"192.0.2.1", "2001:db8::1"}, Nameservers(text))
}

func TestAKubeconfigIsSecret(t *testing.T) {
	file, err := Kubeconfig("/state/kubeconfig", "https://172.30.0.1:6443", "admin", []byte("ca"), pki.Pair{Key: []byte("key")})
	require.NoError(t, err)
	assert.True(t, file.Secret)
	assert.Contains(t, string(file.Content), "client-key-data: a2V5\n")
}

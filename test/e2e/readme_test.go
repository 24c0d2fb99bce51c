//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// elsewhere are the commands of the README that this test does not run, and why.
var elsewhere = map[string]string{
	"kubectl apply --server-side -k config/default": "installs the operator, as hack/deploy.sh does before every test",
	"kubectl drain":                          "empties a node, which others need",
	"kubectl port-forward db-primary-0 9187": "goes on until it is stopped: TestMetrics asks through the API server",
	"kubectl delete postgrescluster db":      "is run last",
}

// TestReadme does what a stranger does: applies the README's example, and types the
// commands of the README in their order.
func TestReadme(t *testing.T) {
	e := begin(t)
	shell := stranger(e)
	raw, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	text := string(raw)
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(text)
	require.NotNil(t, example)
	e.apply(example[1])
	e.ready("db")

	commands := regexp.MustCompile("`(kubectl [^`]*)`").FindAllStringSubmatch(text, -1)
	require.Greater(t, len(commands), 10)
	for _, found := range commands {
		command := found[1]
		if _, skipped := elsewhere[command]; skipped {
			continue
		}
		output := shell(command)
		t.Logf("%s\n%s", command, output)
		switch {
		case strings.Contains(command, "psql"), strings.Contains(command, "kubectl logs"):
			assert.Contains(t, output, "42")
		case strings.Contains(command, "fence="):
			e.eventually("the instance is fenced", func() bool {
				return e.status("db", "readyInstances") != e.status("db", "instances")
			})
			continue
		case strings.Contains(command, "switchover="):
			e.eventually("the primary has moved", func() bool { return e.status("db", "currentPrimary") == "db-replica-1" })
		}
		e.ready("db")
	}
	assert.Equal(t, "5", e.status("db", "readyInstances"))
	shell("kubectl delete job application")
	shell("kubectl delete postgrescluster db")
	e.eventually("nothing is left", func() bool {
		return e.kubectl("get", "pods,pvc,statefulsets,deployments", "--output", "name") == ""
	})
}

// stranger returns a shell as a stranger has it: in the project's folder, with a
// kubeconfig that means the test's namespace. Who opens a shell of SQL types SQL.
func stranger(e *environment) func(command string) string {
	e.Helper()
	raw, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	require.NoError(e, err)
	kubeconfig := filepath.Join(e.TempDir(), "kubeconfig")
	require.NoError(e, os.WriteFile(kubeconfig, raw, 0o600))
	shell := func(command string) string {
		e.Helper()
		command = strings.ReplaceAll(command, " -it ", " -i ")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		program := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
		program.Dir, program.Env = "../..", append(os.Environ(), "KUBECONFIG="+kubeconfig)
		program.Stdin = strings.NewReader("select 6 * 7;\n")
		output, err := program.CombinedOutput()
		require.NoError(e, err, "%s\n%s", command, output)
		return string(output)
	}
	shell("kubectl config set-context --current --namespace " + e.namespace)
	return shell
}

// TestMetrics: each instance tells what it knows, whatever its role and version.
func TestMetrics(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "17.12"))
	e.ready("db")
	scrape := func(pod string) string {
		return e.kubectl("get", "--raw", "/api/v1/namespaces/"+e.namespace+"/pods/"+pod+":9187/proxy/metrics")
	}
	primary, replica := scrape("db-primary-0"), scrape(e.replicaPod("db", 1))
	for _, line := range []string{"in_recovery 0", "statistics_up 1", `slot_active{slot="db_replica_1",type="physical"} 1`} {
		assert.Contains(t, primary, "\npostgres_instance_"+line+"\n")
	}
	for _, line := range []string{"in_recovery 1", "statistics_up 1", "streaming 1"} {
		assert.Contains(t, replica, "\npostgres_instance_"+line+"\n")
	}
	for _, name := range []string{`database_size_bytes{database="app"}`, "checkpoints_requested_total", `replica_replay_lag_bytes{replica="db-replica-1"}`} {
		assert.Contains(t, primary, "\npostgres_instance_"+name+" ")
	}
}

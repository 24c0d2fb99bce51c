//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// patience is generous: machines are shared and slow.
	patience = 5 * time.Minute
	// commandTime bounds one command.
	commandTime = 2 * time.Minute
	// atOnce is how many tests run beside each other.
	atOnce = 3
)

var places = make(chan struct{}, atOnce)

// environment is one namespace, in which the restricted Pod Security level is
// enforced, as in a stranger's cluster.
type environment struct {
	*testing.T
	namespace string
}

// begin makes the namespace of a test and removes it at the end. The test runs
// beside others.
func begin(t *testing.T) *environment {
	t.Helper()
	t.Parallel()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
	return makeNamespace(t)
}

// beginAlone is begin for a test that harms what others need: nodes, the operator or
// the control plane. The testing package runs such tests one after the other, before
// those that run beside others go on.
func beginAlone(t *testing.T) *environment {
	t.Helper()
	return makeNamespace(t)
}

func makeNamespace(t *testing.T) *environment {
	t.Helper()
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r == '/' || r == '_' || r == '.' {
			return '-'
		}
		return r
	}, t.Name()))
	e := &environment{T: t, namespace: fmt.Sprintf("e2e-%s-%d", strings.TrimPrefix(name, "test"), time.Now().UnixMilli()%1000000)}
	if len(e.namespace) > 63 {
		e.namespace = e.namespace[len(e.namespace)-50:]
		e.namespace = "e2e-" + strings.TrimLeft(e.namespace, "-")
	}
	e.kubectl("create", "namespace", e.namespace)
	e.kubectl("label", "namespace", e.namespace, "pod-security.kubernetes.io/enforce=restricted")
	t.Cleanup(func() {
		if t.Failed() {
			e.dump()
		}
		e.remove()
	})
	return e
}

// remove deletes the clusters, then the namespace. The other way round the
// namespace controller waits for half the pods' grace period between two looks.
func (e *environment) remove() {
	e.Helper()
	e.kubectlFor(patience, "delete", "postgresclusters", "--all", "--timeout="+patience.String())
	e.kubectl("delete", "namespace", e.namespace, "--wait=false")
}

// try runs kubectl in the test's namespace.
func (e *environment) try(input string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	command := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace", e.namespace}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	var output, faults bytes.Buffer
	command.Stdout, command.Stderr = &output, &faults
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, faults.String())
	}
	return strings.TrimSpace(output.String()), nil
}

func (e *environment) kubectl(arguments ...string) string {
	e.Helper()
	output, err := e.try("", arguments...)
	require.NoError(e, err)
	return output
}

func (e *environment) apply(manifest string) {
	e.Helper()
	_, err := e.try(manifest, "apply", "--filename", "-")
	require.NoError(e, err)
}

// eventually waits until a condition holds.
func (e *environment) eventually(what string, holds func() bool) {
	e.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(300 * time.Millisecond) {
		if holds() {
			return
		}
		if time.Now().After(end) {
			require.FailNow(e, "waited in vain until "+what)
		}
	}
}

// cluster is a manifest of a PostgresCluster. More lines go under spec.
func cluster(name string, replicas int, version string, more ...string) string {
	text := fmt.Sprintf(`apiVersion: db.my-domain.com/v1alpha1
kind: PostgresCluster
metadata:
  name: %s
spec:
  replicas: %d
  postgresVersion: %q
  storage:
    size: 512Mi
    storageClassName: %s
`, name, replicas, version, storageClass())
	for _, line := range more {
		text += "  " + line + "\n"
	}
	return text
}

func storageClass() string {
	if class := os.Getenv("STORAGE_CLASS"); class != "" {
		return class
	}
	return "standard"
}

// ready waits as a user does.
func (e *environment) ready(name string) {
	e.Helper()
	e.kubectlFor(patience, "wait", "--for=condition=Ready", "postgrescluster/"+name, "--timeout="+patience.String())
}

func (e *environment) kubectlFor(limit time.Duration, arguments ...string) {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace", e.namespace}, arguments...)...).CombinedOutput()
	require.NoError(e, err, "%s", output)
}

// sql runs SQL as the superuser in an instance's pod.
func (e *environment) sql(pod, database, query string) string {
	e.Helper()
	output, err := e.trySQL(pod, database, query)
	require.NoError(e, err)
	return output
}

func (e *environment) trySQL(pod, database, query string) (string, error) {
	return e.try("", "exec", pod, "--container", "postgres", "--", "psql", "--no-psqlrc", "--tuples-only", "--no-align",
		"--set", "ON_ERROR_STOP=1", "--command", query, database)
}

// replicaPod is the pod of a replica.
func (e *environment) replicaPod(cluster string, ordinal int) string {
	e.Helper()
	return e.kubectl("get", "pods", "--selector", fmt.Sprintf("db.my-domain.com/instance=%s-replica-%d", cluster, ordinal),
		"--field-selector", "status.phase=Running", "--output", "jsonpath={.items[0].metadata.name}")
}

func (e *environment) status(name, path string) string {
	e.Helper()
	return e.kubectl("get", "postgrescluster", name, "--output", "jsonpath={.status."+path+"}")
}

func (e *environment) condition(name, kind, part string) string {
	e.Helper()
	return e.status(name, fmt.Sprintf(`conditions[?(@.type=="%s")].%s`, kind, part))
}

// client starts a pod as an application has it: the credentials of one cluster
// mounted, nothing else.
func (e *environment) client(cluster string) string {
	e.Helper()
	name := "client-" + cluster
	e.apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 999, fsGroup: 999, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: client
      image: docker.io/library/postgres:15.20
      command: [sleep, infinity]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: db, mountPath: /db, readOnly: true}]
  volumes:
    - name: db
      secret: {secretName: %s-app}
`, name, cluster))
	e.kubectlFor(patience, "wait", "--for=condition=Ready", "pod/"+name, "--timeout="+patience.String())
	return name
}

// query runs SQL in a client pod through a Service, with the server verified in
// full unless the settings say otherwise.
func (e *environment) query(client, service, settings, query string) (string, error) {
	script := fmt.Sprintf(`export PGPASSWORD=$(cat /db/password) PGUSER=$(cat /db/username) PGDATABASE=$(cat /db/dbname) PGCONNECT_TIMEOUT=10
psql --no-psqlrc --tuples-only --no-align --set ON_ERROR_STOP=1 --command "$1" "host=%s.%s.svc sslmode=verify-full sslrootcert=/db/ca.crt %s"`,
		service, e.namespace, settings)
	return e.try("", "exec", client, "--", "bash", "-c", script, "query", query)
}

// dump writes what helps to understand a failure.
func (e *environment) dump() {
	for _, arguments := range [][]string{
		{"get", "postgresclusters", "--output", "yaml"},
		{"get", "pods,pvc,statefulsets,deployments,services,endpointslices", "--output", "wide", "--show-labels"},
		{"get", "events", "--sort-by", ".lastTimestamp"},
		{"logs", "--selector", "app.kubernetes.io/managed-by=postgres-operator", "--all-containers", "--tail", "60", "--prefix"},
		{"logs", "--namespace", "postgres-operator-system", "--selector", "control-plane=controller-manager", "--tail", "60"},
	} {
		output, err := e.try("", arguments...)
		e.Logf("--- kubectl %s\n%s\n%v", strings.Join(arguments, " "), output, err)
	}
}

func TestMain(m *testing.M) {
	cache := os.Getenv("POSTGRES_OPERATOR_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			panic(err)
		}
		cache = filepath.Join(home, ".cache", "postgres-operator")
	}
	if err := os.Setenv("PATH", filepath.Join(cache, "bin")+":"+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	if os.Getenv("KUBECONFIG") == "" {
		output, err := exec.Command("../../hack/cluster", "kubeconfig").Output()
		if err != nil {
			panic(fmt.Sprintf("no KUBECONFIG, and no local cluster: %v", err))
		}
		if err := os.Setenv("KUBECONFIG", strings.TrimSpace(string(output))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

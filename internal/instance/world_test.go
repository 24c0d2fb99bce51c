package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/assignment"
	"github.com/my-org/postgres-operator/internal/instance/volume"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/pki"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// These tests run instance managers with real PostgreSQL as a pod would: process 1
// of its own process and network namespace, under a user id that the machine does
// not know, with a volume that belongs to the group.
const (
	testUser    = 54321
	testBridge  = "pgotest0"
	testNetwork = "10.231.77."
	// helperEnv makes the test's program an instance manager.
	helperEnv = "TEST_INSTANCE_MANAGER"
)

// helperInput is what the instance manager of a test is started with.
type helperInput struct {
	Options Options
	// ClusterFile holds the PostgresCluster; a change of it is a change of the object.
	ClusterFile string
	// LeaseServer is where the Lease is kept; empty if nobody else wants it.
	LeaseServer string
}

func TestMain(m *testing.M) {
	if file := os.Getenv(helperEnv); file != "" {
		if err := runHelper(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runHelper(file string) error {
	var input helperInput
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &input); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	read := func() *dbv1alpha1.PostgresCluster {
		cluster := &dbv1alpha1.PostgresCluster{}
		if raw, err := os.ReadFile(input.ClusterFile); err != nil || json.Unmarshal(raw, cluster) != nil {
			return nil
		}
		return cluster
	}
	watcher := assignment.Fixed(read())
	go func() {
		last := ""
		for ctx.Err() == nil {
			if raw, _ := os.ReadFile(input.ClusterFile); string(raw) != last {
				last = string(raw)
				if cluster := read(); cluster != nil {
					watcher.Set(cluster)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	if input.LeaseServer != "" {
		return New(input.Options, log, watcher, &distantLease{url: input.LeaseServer + "/" + input.Options.Instance}).Run(ctx)
	}
	return New(input.Options, log, watcher, &onlyLease{}).Run(ctx)
}

// onlyLease is a Lease that nobody else wants.
type onlyLease struct{ lease coordinationv1.Lease }

func (l *onlyLease) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.lease.DeepCopy(), nil
}

func (l *onlyLease) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.lease = *lease.DeepCopy()
	return lease, nil
}

// world is a cluster "db" in the namespace "t" on this machine.
type world struct {
	t           *testing.T
	root        string
	major       int
	cluster     *dbv1alpha1.PostgresCluster
	client      *protocol.Client
	clusterFile string
	leaseServer string
}

func newWorld(t *testing.T, instances ...string) *world {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to start processes in namespaces of their own")
	}
	// The names in the network are the machine's: one run of these tests at a time.
	turn, err := volume.Lock(t.Context(), filepath.Join(os.TempDir(), "postgres-operator-instance-tests.lock"), func() {
		t.Log("waiting for another run of these tests")
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = turn.Close() })
	majors, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	require.NoError(t, err)
	if len(majors) == 0 {
		t.Skip("no PostgreSQL is installed: apt-get install postgresql")
	}
	major, err := strconv.Atoi(strings.Split(majors[len(majors)-1], "/")[4])
	require.NoError(t, err)
	root, err := os.MkdirTemp("", "instance")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	require.NoError(t, os.Chmod(root, 0o755))
	w := &world{t: t, root: root, major: major, clusterFile: filepath.Join(root, "cluster.json")}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, copyFile(self, filepath.Join(root, "manager"), 0o755))
	w.makeSecrets()
	w.makeNetwork()
	w.cluster = &dbv1alpha1.PostgresCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "t", UID: "1234", Generation: 1}}
	w.cluster.Spec.Replicas = int32(len(instances))
	w.cluster.Spec.PostgresVersion = fmt.Sprintf("%d.1", major)
	w.cluster.Spec.Storage.Size = "1Gi"
	w.cluster.Status.InstanceNames = instances
	w.cluster.Status.TargetPrimary = naming.HomeInstance("db")
	w.cluster.Status.CurrentPrimary = naming.HomeInstance("db")
	w.save()
	return w
}

// save tells all instance managers of the present cluster object.
func (w *world) save() {
	raw, err := json.Marshal(w.cluster)
	require.NoError(w.t, err)
	w.write("cluster.json.new", string(raw))
	require.NoError(w.t, os.Rename(w.clusterFile+".new", w.clusterFile))
}

func (w *world) write(name, content string) {
	path := filepath.Join(w.root, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o644))
}

func (w *world) makeSecrets() {
	now := time.Now()
	ca, err := pki.EnsureCA(nil, "db", now)
	require.NoError(w.t, err)
	server, err := pki.EnsureServer(ca, nil, naming.ServerDNSNames("db", "t"), now)
	require.NoError(w.t, err)
	replication, err := pki.EnsureClient(ca, nil, naming.UserReplication, now)
	require.NoError(w.t, err)
	for directory, data := range map[string]map[string][]byte{"server": server, "replication": replication} {
		for key, value := range data {
			w.write(filepath.Join(directory, key), string(value))
		}
	}
	w.write("app/"+naming.KeyPassword, "it's a secret")
	settings, err := pki.ControlClient(ca, naming.ServiceHost(naming.PodsService("db"), "t"), now)
	require.NoError(w.t, err)
	w.client = protocol.NewClient(settings)
	w.t.Cleanup(w.client.Close)
}

// makeNetwork makes a bridge whose far side are the instances.
func (w *world) makeNetwork() {
	w.removeNetwork()
	w.t.Cleanup(w.removeNetwork)
	w.command("ip", "link", "add", testBridge, "type", "bridge")
	w.command("ip", "address", "add", testNetwork+"1/24", "dev", testBridge)
	w.command("ip", "link", "set", testBridge, "up")
}

func (w *world) removeNetwork() {
	// The cables too: a namespace lives on while a process of an earlier run does.
	cables, _ := filepath.Glob("/sys/class/net/pgotest*")
	for _, cable := range cables {
		_ = exec.Command("ip", "link", "delete", filepath.Base(cable)).Run()
	}
	names, _ := filepath.Glob("/run/netns/pgotest-*")
	for _, name := range names {
		_ = exec.Command("ip", "netns", "delete", filepath.Base(name)).Run()
		_ = os.RemoveAll("/etc/netns/" + filepath.Base(name))
	}
}

func (w *world) command(name string, arguments ...string) string {
	w.t.Helper()
	output, err := exec.Command(name, arguments...).CombinedOutput()
	require.NoError(w.t, err, "%s %s: %s", name, strings.Join(arguments, " "), output)
	return string(output)
}

// testPod is one pod: a network address, a volume, and the process in it.
type testPod struct {
	*world
	name, netns, address, directory string
	volume                          string

	mutex   sync.Mutex
	log     strings.Builder
	command *exec.Cmd
	ended   chan error
}

// pod makes a pod with a new volume.
func (w *world) pod(instance string, number int) *testPod {
	p := &testPod{world: w, name: instance, netns: fmt.Sprintf("pgotest-%d", number),
		address: fmt.Sprintf("%s%d", testNetwork, 10+number), directory: fmt.Sprintf("pod%d", number)}
	p.volume = filepath.Join(w.root, p.directory, "volume")
	veth := fmt.Sprintf("pgotest%d", number+1)
	etc := "/etc/netns/" + p.netns
	require.NoError(w.t, os.MkdirAll(etc, 0o755))
	require.NoError(w.t, os.WriteFile(etc+"/hosts", []byte("127.0.0.1 localhost\n"+
		testNetwork+"10 db-primary.t.svc "+naming.InstanceHost("db", "t", "db-primary")+"\n"+
		testNetwork+"11 "+naming.InstanceHost("db", "t", "db-replica-1")+"\n"), 0o644))
	require.NoError(w.t, os.WriteFile(etc+"/passwd", fmt.Appendf(nil, "postgres:x:%d:0::/tmp:/bin/sh\n", testUser), 0o644))
	w.command("ip", "netns", "add", p.netns)
	w.command("ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", p.netns)
	w.command("ip", "link", "set", veth, "master", testBridge, "up")
	w.command("ip", "-n", p.netns, "address", "add", p.address+"/24", "dev", "eth0")
	w.command("ip", "-n", p.netns, "link", "set", "eth0", "up")
	w.command("ip", "-n", p.netns, "link", "set", "lo", "up")
	for _, name := range []string{"volume", "controller", "socket"} {
		path := filepath.Join(w.root, p.directory, name)
		require.NoError(w.t, os.MkdirAll(path, 0o755))
		require.NoError(w.t, os.Chmod(path, 0o770|os.ModeSetgid)) // root's, and the group's
	}
	require.NoError(w.t, os.MkdirAll(filepath.Join(p.volume, "lost+found"), 0o700))
	w.t.Cleanup(p.kill)
	return p
}

func (p *testPod) path(name string) string { return filepath.Join(p.root, p.directory, name) }

// start starts the instance manager as process 1 of a new process namespace.
func (p *testPod) start() {
	p.t.Helper()
	require.NoError(p.t, os.RemoveAll(p.path("controller/configuration"))) // an emptyDir
	input := helperInput{ClusterFile: p.clusterFile, LeaseServer: p.leaseServer, Options: Options{
		Version: "test", Cluster: "db", Namespace: "t", Instance: p.name, PodName: p.name, PodUID: p.name + "-uid",
		Paths: Paths{
			Data: filepath.Join(p.volume, "data"), Lock: filepath.Join(p.volume, "instance.lock"),
			Configuration: p.path("controller/configuration"), TLS: p.path("controller/tls"), Socket: p.path("socket"),
			ServerSecret: filepath.Join(p.root, "server"), ReplicationSecret: filepath.Join(p.root, "replication"),
			AppSecret: filepath.Join(p.root, "app"), PostInit: filepath.Join(p.root, "post-init"),
		},
		HealthAddress: ":8080", ControlAddress: ":" + strconv.Itoa(naming.PortControl), MetricsAddress: ":9187",
	}}
	raw, err := json.Marshal(input)
	require.NoError(p.t, err)
	p.write(p.directory+"/input.json", string(raw))
	command := exec.Command("ip", "netns", "exec", p.netns, "unshare", "--pid", "--fork", "--mount-proc",
		"setpriv", fmt.Sprintf("--reuid=%d", testUser), "--regid=0", "--clear-groups", "--no-new-privs", filepath.Join(p.root, "manager"))
	command.Env = append(os.Environ(), helperEnv+"="+p.path("input.json"))
	command.Stdout, command.Stderr = p, p
	require.NoError(p.t, command.Start())
	p.command, p.ended = command, make(chan error, 1)
	ended := p.ended
	go func() { ended <- command.Wait() }()
}

// Write implements io.Writer: the log of the pod.
func (p *testPod) Write(data []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.log.Write(data)
}

func (p *testPod) logText() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.log.String()
}

// process1 is the instance manager's number outside of its namespace; 0 if there
// is none.
func (p *testPod) process1() int {
	parent := p.command.Process.Pid
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return pid
}

// kill ends everything in the pod, as the end of a machine would: the kernel ends
// a process namespace with its process 1.
func (p *testPod) kill() {
	if p.command == nil {
		return
	}
	for {
		if pid := p.process1(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-p.ended:
			p.command = nil
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// report asks the instance manager as the operator does.
func (p *testPod) report() (protocol.Report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return p.client.Status(ctx, p.address, "", 0)
}

// awaitReport waits for a report that is as wanted.
func (p *testPod) awaitReport(what string, wanted func(protocol.Report) bool) protocol.Report {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	var report protocol.Report
	var err error
	for time.Now().Before(deadline) {
		if report, err = p.report(); err == nil && wanted(report) {
			return report
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.FailNow(p.t, "waited in vain for "+what, "%s: %+v, %v\n%s", p.name, report, err, p.logText())
	return report
}

func (p *testPod) awaitReady(role protocol.Role) protocol.Report {
	p.t.Helper()
	return p.awaitReport("ready "+string(role), func(r protocol.Report) bool { return r.Ready && r.Role == role })
}

// sql runs a statement as the superuser, through the socket.
func (p *testPod) sql(database, statement string) string {
	p.t.Helper()
	return strings.TrimSpace(p.world.command("setpriv", fmt.Sprintf("--reuid=%d", testUser), "--regid=0", "--clear-groups",
		"psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-h", p.path("socket"), "-U", "postgres", "-d", database, "-c", statement))
}

// trySQL is sql for a server that may not be there at the moment.
func (p *testPod) trySQL(database, statement string) (string, bool) {
	output, err := exec.Command("setpriv", fmt.Sprintf("--reuid=%d", testUser), "--regid=0", "--clear-groups",
		"psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-h", p.path("socket"), "-U", "postgres", "-d", database, "-c", statement).Output()
	return strings.TrimSpace(string(output)), err == nil
}

// memory of process 1, in megabytes.
func (p *testPod) memory() int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.process1()))
	require.NoError(p.t, err)
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	require.NoError(p.t, err)
	return pages * os.Getpagesize() >> 20
}

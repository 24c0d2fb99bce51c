package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/host"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/render"
)

// DefaultNodes is how many nodes a cluster has if nobody says otherwise: enough for a database with two replicas.
const DefaultNodes = 3

// Cluster is the local cluster of this machine.
type Cluster struct {
	plan    *plan.Plan
	cgroups *host.Cgroups
	out     io.Writer
	begin   time.Time
}

// Open finds the cluster whose state is in dir. With nodes 0 it has the nodes that it was made with, or DefaultNodes.
// Progress goes to out.
func Open(dir, cache string, nodes int, out io.Writer) (*Cluster, error) {
	if nodes == 0 {
		nodes = DefaultNodes
		record, err := readRecord(dir)
		if err != nil {
			return nil, err
		}
		if record != nil {
			nodes = record.Nodes
		}
	}
	p, err := plan.New(dir, cache, nodes)
	if err != nil {
		return nil, err
	}
	cgroups, err := host.FindCgroups()
	if err != nil {
		return nil, err
	}
	return &Cluster{plan: p, cgroups: cgroups, out: out, begin: time.Now()}, nil
}

// Plan is what the cluster consists of.
func (c *Cluster) Plan() *plan.Plan { return c.plan }

func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.out, "%5.1fs  %s\n", time.Since(c.begin).Seconds(), fmt.Sprintf(format, args...))
}

// record notes what cannot be seen from the machine: what the cluster was asked to be, and which faults are wanted.
type record struct {
	Nodes int `json:"nodes"`
	// Complete is set when the cluster was up once.
	Complete bool `json:"complete"`
	// Faults maps a node, or the API server, to what was done to it.
	Faults map[string]Fault `json:"faults,omitempty"`
}

func recordPath(dir string) string { return filepath.Join(dir, "cluster.json") }

func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(recordPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster's record: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, nil //nolint:nilerr // written half by a machine that died: as good as none, "up" starts afresh
	}
	return &r, nil
}

func (c *Cluster) writeRecord(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the cluster's record: %w", err)
	}
	path := recordPath(c.plan.Dir)
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return fmt.Errorf("write the cluster's record: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the cluster's record: %w", err)
	}
	return nil
}

// Lock keeps two commands from changing the cluster at once. It waits for its turn and holds until the program ends.
func (c *Cluster) Lock() error {
	if err := os.MkdirAll(c.plan.Dir, 0o755); err != nil {
		return fmt.Errorf("make the cluster's folder: %w", err)
	}
	fd, err := unix.Open(c.plan.Path("lock"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return fmt.Errorf("open the cluster's lock: %w", err)
	}
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func write(files ...render.File) error {
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", file.Path, err)
		}
		mode := fs.FileMode(0o644)
		if file.Secret {
			mode = 0o600
		}
		if err := os.WriteFile(file.Path, file.Content, mode); err != nil {
			return fmt.Errorf("write %s: %w", file.Path, err)
		}
	}
	return nil
}

func (c *Cluster) start(process plan.Process) error {
	command := host.Command{
		Name: process.Name, Program: process.Program, Args: process.Args,
		Cgroup: plan.ControlCgroup, LogFile: c.plan.LogFile(process.Name),
		// containerd finds its shim by PATH, and the CNI plug-ins and the kubelet find the system's tools.
		Env: []string{"PATH=" + filepath.Join(c.plan.Cache, "bin") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	if process.Node != nil {
		command.Netns, command.Cgroup = process.Node.Netns, process.Node.SystemCgroup()
	}
	return host.Start(command)
}

// running maps the cluster's processes to what was found of them.
func (c *Cluster) running() (map[string]host.Running, error) {
	found, err := host.FindProcesses()
	if err != nil {
		return nil, err
	}
	programs := map[string]string{}
	for _, process := range c.processes() {
		programs[process.Name] = process.Program
	}
	out := map[string]host.Running{}
	for _, process := range found {
		if program, known := programs[process.Name]; known && host.IsProgram(process.PID, program) {
			out[process.Name] = process
		}
	}
	return out, nil
}

// processes lists everything that runs in a complete cluster.
func (c *Cluster) processes() []plan.Process {
	all := []plan.Process{c.plan.RegistryProcess(), c.plan.EtcdProcess(), c.plan.APIServerProcess()}
	all = append(all, c.plan.ControlPlane()...)
	for _, node := range c.plan.Nodes {
		all = append(all, c.plan.NodeProcesses(node)...)
	}
	return all
}

// waitFor asks until the answer is nil. The last answer becomes part of the error when time is up.
func waitFor(ctx context.Context, what string, patience time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", patience, what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

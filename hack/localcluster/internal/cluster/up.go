package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/host"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/render"
)

// Up makes the cluster run, whatever state the machine is in. A cluster that runs is left alone but for its faults,
// which are undone, and for processes that may be started again one by one. Anything else is cleaned away and replaced.
func (c *Cluster) Up(ctx context.Context) error {
	record, err := readRecord(c.plan.Dir)
	if err != nil {
		return err
	}
	if record != nil && record.Complete && record.Nodes == len(c.plan.Nodes) {
		done, err := c.revive(ctx, record)
		if err != nil {
			c.say("the running cluster is not well: %v", err)
		}
		if done {
			return nil
		}
	}
	if err := c.clean(); err != nil {
		return err
	}
	return c.create(ctx)
}

// revive sees to a cluster that was complete. It answers false if only a new one will do.
func (c *Cluster) revive(ctx context.Context, r *record) (bool, error) {
	if len(r.Faults) > 0 {
		c.say("undoing faults: %v", r.Faults)
		for name := range r.Faults {
			if err := c.undo(ctx, r, name); err != nil {
				return false, err
			}
		}
	}
	running, err := c.running()
	if err != nil {
		return false, err
	}
	var dead, fatal []string
	for _, process := range c.processes() {
		if _, found := running[process.Name]; found {
			continue
		}
		dead = append(dead, process.Name)
		if !process.Restartable {
			fatal = append(fatal, process.Name)
		}
	}
	if len(fatal) > 0 {
		return false, fmt.Errorf("dead: %s", strings.Join(fatal, ", "))
	}
	for _, process := range c.processes() {
		if _, found := running[process.Name]; !found {
			if err := c.start(process); err != nil {
				return false, err
			}
		}
	}
	if len(dead) > 0 {
		c.say("started again: %s", strings.Join(dead, ", "))
		if err := c.applyManifests(ctx); err != nil {
			return false, err
		}
	}
	// A healed node says that it is ready with its next heartbeat.
	if err := c.waitForNodes(ctx, 30*time.Second, nil); err != nil {
		return false, err
	}
	c.say("the cluster of %d nodes runs; kubeconfig: %s", len(c.plan.Nodes), c.plan.Kubeconfig())
	return true, nil
}

// create starts everything on a machine that has been cleaned.
func (c *Cluster) create(ctx context.Context) error {
	c.say("starting a cluster of %d nodes in %s", len(c.plan.Nodes), c.plan.Dir)
	if err := c.checkPrograms(); err != nil {
		return err
	}
	if err := c.writeRecord(record{Nodes: len(c.plan.Nodes)}); err != nil {
		return err
	}
	if err := c.makeCertificates(); err != nil {
		return err
	}
	if err := c.makeConfiguration(); err != nil {
		return err
	}
	if err := c.ensureMachine(); err != nil {
		return err
	}
	// The nodes need the registry and the bridge, the API server needs etcd, and the two do not need each other.
	err := parallel(
		func() error { return c.startControlPlane(ctx) },
		func() error { return c.ensurePauseImage(ctx) },
	)
	if err != nil {
		return err
	}
	nodes := make([]func() error, 0, len(c.plan.Nodes))
	for _, node := range c.plan.Nodes {
		nodes = append(nodes, func() error { return c.startNode(node) })
	}
	if err := parallel(nodes...); err != nil {
		return err
	}
	c.say("kubelets started")
	if err := c.applyManifests(ctx); err != nil {
		return err
	}
	if err := c.waitForNodes(ctx, 2*time.Minute, nil); err != nil {
		return err
	}
	if err := c.writeRecord(record{Nodes: len(c.plan.Nodes), Complete: true}); err != nil {
		return err
	}
	c.say("%d nodes are ready; kubeconfig: %s", len(c.plan.Nodes), c.plan.Kubeconfig())
	return nil
}

func (c *Cluster) checkPrograms() error {
	var missing []string
	for _, process := range c.processes() {
		if _, err := os.Stat(process.Program); err != nil {
			missing = append(missing, process.Program)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("programs are missing: %s; hack/cluster up builds them before it starts", strings.Join(missing, ", "))
	}
	return nil
}

func (c *Cluster) makeConfiguration() error {
	resolvConf, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		c.say("names outside the cluster will not be resolved: %v", err)
	}
	files, err := render.Control(c.plan, render.Nameservers(string(resolvConf)))
	if err != nil {
		return err
	}
	return write(files...)
}

// ensureMachine gives the machine its place in the cluster's network, and the processes of no node a control group.
func (c *Cluster) ensureMachine() error {
	if err := c.cgroups.Create(plan.ControlCgroup); err != nil {
		return err
	}
	return host.EnsureBridge(plan.Bridge, fmt.Sprintf("%s/%d", plan.ControlAddress, plan.NetworkBits))
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	if err := c.start(c.plan.EtcdProcess()); err != nil {
		return err
	}
	if err := c.waitForEtcd(ctx); err != nil {
		return err
	}
	if err := c.start(c.plan.APIServerProcess()); err != nil {
		return err
	}
	if err := c.waitForAPIServer(ctx); err != nil {
		return err
	}
	c.say("the API server is ready")
	for _, process := range c.plan.ControlPlane() {
		if err := c.start(process); err != nil {
			return err
		}
	}
	return nil
}

// applyManifests hands in the objects that the cluster's own programs need, and the storage classes.
func (c *Cluster) applyManifests(ctx context.Context) error {
	storage, err := exec.CommandContext(ctx, c.plan.Program("csi-driver"), "--manifests").Output()
	if err != nil {
		return fmt.Errorf("ask the storage driver for its objects: %w", err)
	}
	file := render.File{Path: c.plan.Path("config", "storage.yaml"), Content: storage}
	if err := write(file); err != nil {
		return err
	}
	// Right after the start, some parts of the API answer later than others.
	return waitFor(ctx, "the cluster's own objects to be accepted", 30*time.Second, func(ctx context.Context) error {
		return c.apply(ctx, c.plan.Path("config", "cluster.yaml"), file.Path)
	})
}

// startNode boots a node: network, control group, programs.
func (c *Cluster) startNode(node plan.Node) error {
	files, err := render.Node(c.plan, node)
	if err != nil {
		return err
	}
	if err := write(files...); err != nil {
		return err
	}
	for _, dir := range []string{node.RunDir, node.KubeletDir(), node.VolumesDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make folder of %s: %w", node.Name, err)
		}
	}
	if err := c.cgroups.Create(node.SystemCgroup()); err != nil {
		return err
	}
	if err := c.connectNode(node); err != nil {
		return err
	}
	for _, process := range c.plan.NodeProcesses(node) {
		if err := c.start(process); err != nil {
			return err
		}
		if process.Name == node.Name+"/containerd" {
			// A kubelet that finds no runtime waits a long time before it looks again.
			err := waitFor(context.Background(), "containerd of "+node.Name+" (see "+c.plan.LogFile(process.Name)+")", 30*time.Second,
				func(context.Context) error { return reachable(node.ContainerdSocket()) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) connectNode(node plan.Node) error {
	routes := map[string]string{}
	for _, other := range c.plan.Nodes {
		if other.Name != node.Name {
			routes[other.PodCIDR.String()] = other.Address.String()
		}
	}
	err := host.Connect(host.Cable{
		Netns: node.Netns, Link: node.Link, Bridge: plan.Bridge, Gateway: plan.ControlAddress, Routes: routes,
		Address: fmt.Sprintf("%s/%d", node.Address, plan.NetworkBits),
	})
	if err != nil {
		return err
	}
	// The API server reaches webhooks and aggregated APIs in pods, and tests reach any pod.
	return host.AddRoute(node.PodCIDR.String(), node.Address.String())
}

// parallel runs functions at the same time and answers all their errors.
func parallel(functions ...func() error) error {
	errs := make([]error, len(functions))
	var group sync.WaitGroup
	for i, function := range functions {
		group.Go(func() { errs[i] = function() })
	}
	group.Wait()
	return errors.Join(errs...)
}

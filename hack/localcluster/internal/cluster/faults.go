package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/host"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
)

// Fault is something that was done to a node or to the API server.
type Fault string

// The faults.
const (
	// Frozen: nothing of the node runs and nothing of it answers, but it is all still there.
	Frozen Fault = "frozen"
	// Killed: everything of the node ended at one moment, as if its power had been cut.
	Killed Fault = "killed"
	// Cut: the node runs, and no packet gets in or out.
	Cut Fault = "cut"
	// Stopped: the API server was killed.
	Stopped Fault = "stopped"
)

// Freeze stops everything of a node, and its network with it: the kernel would answer for a frozen program.
func (c *Cluster) Freeze(name string) error {
	return c.fault(name, Frozen, func(node plan.Node) error {
		return errors.Join(host.SetLink(node.Link, false), c.cgroups.Freeze(node.Cgroup))
	})
}

// CutOff takes a node off the network.
func (c *Cluster) CutOff(name string) error {
	return c.fault(name, Cut, func(node plan.Node) error { return host.SetLink(node.Link, false) })
}

// Kill cuts a node's power: its processes end at once, and what was in memory is gone. Its disk stays.
func (c *Cluster) Kill(name string) error {
	return c.fault(name, Killed, func(node plan.Node) error {
		if err := host.SetLink(node.Link, false); err != nil {
			return err
		}
		if err := c.cgroups.Kill(node.Cgroup); err != nil {
			return err
		}
		return c.emptyMemory(node)
	})
}

// emptyMemory removes what a reboot would.
func (c *Cluster) emptyMemory(node plan.Node) error {
	host.RemoveShimSockets(node.RunDir + "/containerd")
	host.RemoveFilesNaming("/var/lib/cni/results", node.RunDir+"/")
	if err := host.UnmountBelow(node.Dir); err != nil {
		return err
	}
	if err := host.DetachLoopsBelow(node.Dir); err != nil {
		return err
	}
	if err := host.Disconnect(node.Netns, node.Link); err != nil {
		return err
	}
	if err := c.cgroups.Remove(node.Cgroup); err != nil {
		return err
	}
	if err := os.RemoveAll(node.RunDir); err != nil {
		return fmt.Errorf("empty the memory of %s: %w", node.Name, err)
	}
	return nil
}

func (c *Cluster) fault(name string, fault Fault, do func(plan.Node) error) error {
	node, err := c.plan.Node(name)
	if err != nil {
		return err
	}
	r, err := c.completeRecord()
	if err != nil {
		return err
	}
	if have := r.Faults[name]; have == fault {
		c.say("%s is %s already", name, fault)
		return nil
	} else if have != "" {
		return fmt.Errorf("%s is %s; heal it first: hack/cluster node heal %s", name, have, name)
	}
	// Noted first: if the deed is broken off half way, healing finds it.
	if err := c.note(r, name, fault); err != nil {
		return err
	}
	if err := do(node); err != nil {
		return err
	}
	c.say("%s is %s", name, fault)
	return nil
}

func (c *Cluster) completeRecord() (*record, error) {
	r, err := readRecord(c.plan.Dir)
	if err != nil {
		return nil, err
	}
	if r == nil || !r.Complete {
		return nil, errors.New("no cluster runs; start one: hack/cluster up")
	}
	if r.Faults == nil {
		r.Faults = map[string]Fault{}
	}
	return r, nil
}

func (c *Cluster) note(r *record, name string, fault Fault) error {
	if fault == "" {
		delete(r.Faults, name)
	} else {
		r.Faults[name] = fault
	}
	return c.writeRecord(*r)
}

// Heal undoes what was done to a node. The API server learns of it with the next heartbeat.
func (c *Cluster) Heal(ctx context.Context, name string) error {
	if _, err := c.plan.Node(name); err != nil {
		return err
	}
	r, err := c.completeRecord()
	if err != nil {
		return err
	}
	if r.Faults[name] == "" {
		c.say("%s is well already", name)
		return nil
	}
	if err := c.undo(ctx, r, name); err != nil {
		return err
	}
	c.say("%s is healed", name)
	return nil
}

func (c *Cluster) undo(ctx context.Context, r *record, name string) error {
	if name == plan.APIServerName {
		return c.startAPIServer(ctx, r)
	}
	node, err := c.plan.Node(name)
	if err != nil {
		return err
	}
	switch r.Faults[name] {
	case Frozen:
		err = errors.Join(c.cgroups.Thaw(node.Cgroup), host.SetLink(node.Link, true))
	case Cut:
		err = host.SetLink(node.Link, true)
	case Killed:
		// The deed may have been broken off half way.
		if err = c.cgroups.Kill(node.Cgroup); err == nil {
			err = c.emptyMemory(node)
		}
		if err == nil {
			err = c.startNode(node)
		}
	}
	if err != nil {
		return err
	}
	return c.note(r, name, "")
}

// StopAPIServer kills the API server: for everybody in the cluster the control plane is gone.
func (c *Cluster) StopAPIServer() error {
	r, err := c.completeRecord()
	if err != nil {
		return err
	}
	if err := c.note(r, plan.APIServerName, Stopped); err != nil {
		return err
	}
	running, err := c.running()
	if err != nil {
		return err
	}
	if process, found := running[plan.APIServerName]; found {
		if err := host.Kill([]int{process.PID}); err != nil {
			return err
		}
	}
	c.say("the API server is stopped")
	return nil
}

// StartAPIServer starts the API server again and waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	r, err := c.completeRecord()
	if err != nil {
		return err
	}
	if err := c.startAPIServer(ctx, r); err != nil {
		return err
	}
	c.say("the API server is ready")
	return nil
}

func (c *Cluster) startAPIServer(ctx context.Context, r *record) error {
	running, err := c.running()
	if err != nil {
		return err
	}
	if _, found := running[plan.APIServerName]; !found {
		if err := c.start(c.plan.APIServerProcess()); err != nil {
			return err
		}
	}
	if err := c.waitForAPIServer(ctx); err != nil {
		return err
	}
	return c.note(r, plan.APIServerName, "")
}

// WaitReady waits until the nodes without a fault are ready.
func (c *Cluster) WaitReady(ctx context.Context, patience time.Duration) error {
	r, err := c.completeRecord()
	if err != nil {
		return err
	}
	if r.Faults[plan.APIServerName] != "" {
		return nil
	}
	return c.waitForNodes(ctx, patience, r.Faults)
}

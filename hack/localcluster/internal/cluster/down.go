package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/host"
	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
)

// Down ends the cluster. What stays is the registry's content and the built tools, which are in the cache, and the logs.
func (c *Cluster) Down() error {
	if err := c.clean(); err != nil {
		return err
	}
	c.say("the cluster is gone; its logs are in %s", c.plan.Path("logs"))
	return nil
}

// clean takes away everything of a cluster that the machine shows, running or not.
func (c *Cluster) clean() error {
	if err := os.Remove(recordPath(c.plan.Dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the cluster's record: %w", err)
	}
	groups, err := c.cgroups.Groups(plan.CgroupPrefix)
	if err != nil {
		return err
	}
	for _, group := range groups {
		if err := c.cgroups.Kill(group); err != nil {
			return err
		}
	}
	// Usually none is left; one that a program moved to a group of its own would be.
	left, err := host.FindProcesses()
	if err != nil {
		return err
	}
	pids := make([]int, 0, len(left))
	for _, process := range left {
		pids = append(pids, process.PID)
	}
	if err := host.Kill(pids); err != nil {
		return err
	}
	if len(groups)+len(left) > 0 {
		c.say("ended all processes")
	}
	for _, state := range c.containerdStates() {
		host.RemoveShimSockets(state)
	}
	if err := host.UnmountBelow(c.plan.Dir); err != nil {
		return err
	}
	if err := host.DetachLoopsBelow(c.plan.Dir); err != nil {
		return err
	}
	if err := host.RemoveNetwork(plan.NetworkPrefix); err != nil {
		return err
	}
	for _, group := range groups {
		if err := c.cgroups.Remove(group); err != nil {
			return err
		}
	}
	host.RemoveLinksInto("/var/log/containers", c.plan.Dir)
	host.RemoveFilesNaming("/var/lib/cni/results", c.plan.Dir+"/")
	return c.removeFiles()
}

func (c *Cluster) containerdStates() []string {
	states, _ := filepath.Glob(c.plan.Path("nodes", "*", "run", "containerd"))
	return states
}

// removeFiles removes the folder's content by name, so that a wrong setting of the folder cannot cost anybody his files.
func (c *Cluster) removeFiles() error {
	for _, name := range []string{"config", "etcd", "kubeconfig", "nodes", "pki"} {
		if err := os.RemoveAll(c.plan.Path(name)); err != nil {
			return fmt.Errorf("remove old state: %w", err)
		}
	}
	return nil
}

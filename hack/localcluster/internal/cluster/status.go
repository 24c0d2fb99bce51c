package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/my-org/postgres-operator/hack/localcluster/internal/plan"
)

// Status prints what runs. It answers an error if the cluster is not as it should be.
func (c *Cluster) Status(ctx context.Context, out io.Writer) error {
	r, err := readRecord(c.plan.Dir)
	if err != nil {
		return err
	}
	running, err := c.running()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "PROCESS\tPID\tMEMORY\tAGE")
	dead := 0
	for _, process := range c.processes() {
		found, ok := running[process.Name]
		if !ok {
			dead++
			fmt.Fprintf(table, "%s\t-\t-\t-\n", process.Name)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%d MiB\t%s\n", process.Name, found.PID, found.Memory>>20, time.Since(found.Since).Round(time.Second))
	}
	fmt.Fprintln(table)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print status: %w", err)
	}
	if r == nil || !r.Complete {
		return errors.New("no cluster runs; start one: hack/cluster up")
	}
	notReady, err := c.printNodes(ctx, out, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nkubeconfig  %s\nAPI server  %s\nregistry    %s\n", c.plan.Kubeconfig(), c.plan.APIServer(), c.plan.Registry())
	if dead > 0 || notReady > 0 {
		return fmt.Errorf("%d processes are dead, %d nodes are not ready", dead, notReady)
	}
	return nil
}

func (c *Cluster) printNodes(ctx context.Context, out io.Writer, r *record) (int, error) {
	var ready map[string]bool
	if r.Faults[plan.APIServerName] == "" {
		a, err := c.api()
		if err != nil {
			return 0, err
		}
		if ready, err = a.nodesReady(ctx); err != nil {
			return 0, err
		}
	}
	notReady := 0
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NODE\tADDRESS\tPODS\tREADY\tFAULT")
	for _, node := range c.plan.Nodes {
		if !ready[node.Name] {
			notReady++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%t\t%s\n", node.Name, node.Address, node.PodCIDR, ready[node.Name], r.Faults[node.Name])
	}
	if err := table.Flush(); err != nil {
		return 0, fmt.Errorf("print nodes: %w", err)
	}
	return notReady, nil
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/my-org/postgres-operator/test/live"
)

// event takes a primary away.
type event struct {
	name string
	// title, target and other are cells of the table: the promise, and what
	// CloudNativePG 1.30 was measured to need.
	title, target, other string
	// before prepares a run, do makes the event, after undoes it. Absent: nothing.
	before, do, after func(context.Context, live.Cluster, live.Primary) error
	// quiet is how long nothing else is done to the machine after the event, so that
	// looking does not slow down what is looked at.
	quiet time.Duration
	// twoNodes keeps the instances on two nodes, so that one of them can be taken
	// away with the primary and the writer lives on the third.
	twoNodes bool
}

// events in the order of the table.
var events = []event{
	{name: "postmaster", title: "postmaster killed (-9)", target: "1.5 s", other: "7.0 to 12.6 s", quiet: 3 * time.Second,
		do: func(ctx context.Context, c live.Cluster, p live.Primary) error { return c.KillPostmaster(ctx, p.Pod) }},
	{name: "container", title: "container killed (-9 on process 1)", target: "2.5 s", other: "7.8 s", quiet: 5 * time.Second,
		do: func(_ context.Context, _ live.Cluster, p live.Primary) error { return live.KillContainer(p.UID) }},
	{name: "delete", title: "primary pod deleted", target: "1 s", other: "2.0 s", quiet: 4 * time.Second,
		do: func(ctx context.Context, c live.Cluster, p live.Primary) error { return c.DeletePod(ctx, p.Pod) }},
	{name: "force-delete", title: "primary pod force-deleted", target: "2 s", other: "3.0 s", quiet: 5 * time.Second,
		do: func(ctx context.Context, c live.Cluster, p live.Primary) error { return c.ForceDeletePod(ctx, p.Pod) }},
	{name: "switchover", title: "planned switchover", target: "1 s", other: "7.5 s", quiet: 4 * time.Second,
		do: func(ctx context.Context, c live.Cluster, _ live.Primary) error { return c.Switchover(ctx, "") }},
	{name: "freeze", title: "the primary's node frozen (of two)", target: "15 s", other: "135 s", quiet: 20 * time.Second, twoNodes: true,
		before: func(ctx context.Context, _ live.Cluster, p live.Primary) error {
			return live.MoveOperatorFrom(ctx, p.Node)
		},
		do: freeze, after: heal},
	{name: "freeze-operator", title: "  with the operator that acts on it", quiet: 30 * time.Second, twoNodes: true,
		before: operatorOn, do: freeze, after: heal},
}

func freeze(ctx context.Context, _ live.Cluster, p live.Primary) error {
	return live.Node(ctx, "freeze", p.Node)
}

func heal(ctx context.Context, _ live.Cluster, p live.Primary) error {
	if err := live.Node(ctx, "heal", p.Node); err != nil {
		return err
	}
	return live.Healthy(ctx)
}

// operatorOn moves the operator that acts to the primary's node, if one of its pods
// runs there.
func operatorOn(ctx context.Context, c live.Cluster, p live.Primary) error {
	for range 4 {
		pod, node, err := live.OperatorLeader(ctx)
		if err != nil {
			return err
		}
		if node == p.Node {
			return nil
		}
		if err := (live.Cluster{Namespace: live.OperatorNamespace}).DeletePod(ctx, pod); err != nil {
			return err
		}
		if err := live.Await(ctx, "another operator acts", func() (bool, error) {
			now, at, err := live.OperatorLeader(ctx)
			return err == nil && now != pod && at != "", err
		}); err != nil {
			return err
		}
	}
	return fmt.Errorf("no pod of the operator that runs on %s, where the primary is, has come to act", p.Node)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/my-org/postgres-operator/test/live"
	"github.com/my-org/postgres-operator/test/writer/journal"
)

// result is what the runs of one event measured.
type result struct {
	event
	outages map[journal.Mode][]time.Duration
	// acknowledged writes of all runs, those lost of them, and those that a former
	// primary took after another one had.
	acknowledged, lost, behind int
	// fault is why the event could not be measured to the end.
	fault error
}

// measureEvent makes a cluster, measures all runs of an event on it, and removes it.
func (b *bench) measureEvent(ctx context.Context, e event) (r result) {
	r = result{event: e, outages: map[journal.Mode][]time.Duration{}}
	c := b.cluster(e.name)
	r.fault = b.allRuns(ctx, c, &r)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.patience)
	defer cancel()
	if _, err := c.Kubectl(limited, "delete", "postgrescluster", c.Name, "--ignore-not-found", "--timeout="+b.patience.String()); err != nil {
		r.fault = errors.Join(r.fault, err)
	}
	if r.fault != nil {
		fmt.Printf("%s: %v\n", e.name, r.fault)
	}
	return r
}

func (b *bench) allRuns(ctx context.Context, c live.Cluster, r *result) error {
	nodes, err := c.Kubectl(ctx, "get", "nodes", "--output", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return err
	}
	names := strings.Fields(nodes)
	if r.twoNodes && len(names) < 3 {
		return fmt.Errorf("the event needs three nodes, and there are %d", len(names))
	}
	names = names[:min(2, len(names))]
	if err := c.Apply(ctx, b.manifest(r.event, names)); err != nil {
		return err
	}
	for i := range b.options.runs {
		if err := b.once(ctx, c, r, names, i+1); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

// once measures one run: everything is well, the writer writes, the event happens,
// everything is well again.
func (b *bench) once(ctx context.Context, c live.Cluster, r *result, nodes []string, number int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	if err := c.Settled(ctx); err != nil {
		return err
	}
	primary, err := c.FindPrimary(ctx)
	if err != nil {
		return err
	}
	if r.before != nil {
		if err := r.before(ctx, c, primary); err != nil {
			return err
		}
	}
	avoid := []string{primary.Node}
	if r.twoNodes {
		avoid = nodes
	}
	w, err := c.StartWriter(ctx, live.WriterOptions{NotOn: avoid})
	if w != nil {
		defer func() { err = errors.Join(err, w.Remove(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return err
	}
	wait(ctx, time.Second)
	report, began, err := b.suffer(ctx, c, w, r.event, primary)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s, run %d of %d:", r.name, number, b.options.runs)
	for _, mode := range []journal.Mode{journal.New, journal.Kept} {
		outage := report.Outage(mode, began)
		r.outages[mode] = append(r.outages[mode], outage.Length)
		line += fmt.Sprintf(" %s connection %.2f s,", mode, outage.Length.Seconds())
	}
	r.acknowledged += report.Count(journal.Acknowledged)
	r.lost += len(report.LostRows())
	r.behind += len(report.Behind())
	fmt.Printf("%s %d rows lost of %d\n", line, len(report.LostRows()), report.Count(journal.Acknowledged))
	return nil
}

// suffer makes the event and waits until it is over.
func (b *bench) suffer(ctx context.Context, c live.Cluster, w *live.Writer, e event, primary live.Primary) (report live.Report, began time.Time, err error) {
	began = time.Now()
	if err := e.do(ctx, c, primary); err != nil {
		return report, began, err
	}
	wait(ctx, e.quiet)
	err = w.GoesOn(ctx)
	if e.after != nil {
		healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.patience)
		defer cancel()
		err = errors.Join(err, e.after(healing, c, primary))
	}
	if err != nil {
		return report, began, err
	}
	if err := c.Settled(ctx); err != nil {
		return report, began, err
	}
	report, err = w.Stop(ctx)
	return report, began, err
}

// wait waits, without asking anything of the machine.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

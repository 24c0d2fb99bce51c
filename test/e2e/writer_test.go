//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/test/live"
	"github.com/my-org/postgres-operator/test/writer/journal"
)

// live is a cluster for faults and writers.
func (e *environment) live(name string) live.Cluster {
	return live.Cluster{Namespace: e.namespace, Name: name}
}

// patiently gives a step as long as the test's patience.
func (e *environment) patiently(do func(ctx context.Context) error) {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(e, do(ctx))
}

// settled waits until all instances serve or stream.
func (e *environment) settled(name string) {
	e.Helper()
	e.patiently(e.live(name).Settled)
}

// primary is the primary now.
func (e *environment) primary(name string) (found live.Primary) {
	e.Helper()
	e.patiently(func(ctx context.Context) (err error) {
		found, err = e.live(name).FindPrimary(ctx)
		return err
	})
	return found
}

// podOf is the running pod of an instance.
func (e *environment) podOf(name, instance string) (found live.Primary) {
	e.Helper()
	e.patiently(func(ctx context.Context) (err error) {
		found, err = e.live(name).PodOf(ctx, instance)
		return err
	})
	return found
}

// anotherLeads waits until another instance than this one is the primary.
func (e *environment) anotherLeads(name string, former live.Primary) live.Primary {
	e.Helper()
	e.eventually("another instance than "+former.Instance+" is the primary", func() bool {
		current, err := e.try("", "get", "postgrescluster", name, "--output", "jsonpath={.status.currentPrimary}")
		return err == nil && current != "" && current != former.Instance
	})
	return e.primary(name)
}

// losesPrimary makes a failover happen: the container of the primary ends a second time,
// and the kubelet waits before it starts it again. It returns the successor.
func (e *environment) losesPrimary(name string) live.Primary {
	e.Helper()
	former := e.primary(name)
	e.patiently(func(context.Context) error { return live.KillContainer(former.UID) })
	e.eventually("its container is started again", func() bool {
		return e.kubectl("get", "pod", former.Pod, "--output", "jsonpath={.status.containerStatuses[0].restartCount}") == "1"
	})
	e.settled(name)
	require.Equal(e, former.Instance, e.primary(name).Instance)
	e.patiently(func(context.Context) error { return live.KillContainer(former.UID) })
	return e.anotherLeads(name, former)
}

// account is a writer under way.
type account struct {
	*environment
	cluster string
	writer  *live.Writer
}

// writes starts a writer, away from nodes that are about to fail.
func (e *environment) writes(name string, notOn ...string) *account {
	e.Helper()
	a := &account{environment: e, cluster: name}
	e.patiently(func(ctx context.Context) (err error) {
		a.writer, err = e.live(name).StartWriter(ctx, live.WriterOptions{NotOn: notOn})
		return err
	})
	return a
}

// goesOn waits until writes are acknowledged, in both modes.
func (a *account) goesOn() {
	a.Helper()
	a.patiently(a.writer.GoesOn)
}

// close ends the writer and reads the table. Whatever happened, no former primary
// has taken a write, and nothing is there whose write had failed.
func (a *account) close() live.Report {
	a.Helper()
	var report live.Report
	a.patiently(func(ctx context.Context) (err error) {
		report, err = a.writer.Stop(ctx)
		return err
	})
	assert.Empty(a, report.Behind(), "writes that a former primary took")
	assert.Empty(a, report.Unexpected(report.Stored), "rows whose writes had failed")
	a.Logf("%d writes acknowledged on timelines %v, %d failed, %d unknown", report.Count(journal.Acknowledged), report.Timelines(),
		report.Count(journal.Failed), report.Count(journal.Unknown))
	return report
}

// nothingLost ends the writer; every acknowledged row is there.
func (a *account) nothingLost() live.Report {
	a.Helper()
	report := a.close()
	assert.Empty(a, report.LostRows(), "acknowledged rows that are lost")
	return report
}

// lossTold ends the writer after a crash that may lose the last moments, because
// commits waited for no replica, and tells what it has cost. The status tells it too,
// once the former primary is back.
func (a *account) lossTold() live.Report {
	a.Helper()
	report := a.close()
	if len(report.LostRows()) > 0 {
		a.eventually("the status tells of the loss", func() bool {
			lost := a.status(a.cluster, "lastPrimaryChange.lostBytesAtMost")
			return lost != "" && lost != "0"
		})
		assert.Contains(a, a.events(a.cluster), "FailoverLoss")
	}
	a.Logf("a failover without synchronous replication: %d acknowledged rows lost of %d", len(report.LostRows()), report.Count(journal.Acknowledged))
	return report
}

// outage logs how long writes were refused.
func (a *account) outage(report live.Report, event time.Time) {
	a.Helper()
	for _, mode := range []journal.Mode{journal.New, journal.Kept} {
		a.Logf("write outage with a %s connection: %s", mode, report.Outage(mode, event).Length)
	}
}

// harms does something to a node of the local cluster, and undoes it at the end.
func (e *environment) harms(fault, node string) {
	e.Helper()
	e.Cleanup(func() { e.heals(node) })
	e.patiently(func(ctx context.Context) error { return live.Node(ctx, fault, node) })
}

// heals undoes what was done to a node and waits until the local cluster is well.
func (e *environment) heals(node string) {
	e.Helper()
	e.patiently(func(ctx context.Context) error {
		if err := live.Node(ctx, "heal", node); err != nil {
			return err
		}
		return live.Healthy(ctx)
	})
}

// operatorNotOn keeps the operator that acts, and with it the time of its own
// replacement, out of a node's fault.
func (e *environment) operatorNotOn(node string) {
	e.Helper()
	e.patiently(func(ctx context.Context) error { return live.MoveOperatorFrom(ctx, node) })
}

// others are the instances of a cluster but one.
func (e *environment) others(name, but string) []string {
	e.Helper()
	var others []string
	for _, instance := range strings.Fields(strings.NewReplacer("[", "", "]", "", `"`, "", ",", " ").Replace(e.status(name, "instanceNames"))) {
		if instance != but {
			others = append(others, instance)
		}
	}
	return others
}

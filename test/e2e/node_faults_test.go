//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/my-org/postgres-operator/test/live"
)

// TestANodeIsFrozenForTwoMinutes: it believes that no time has passed, and yet takes
// no write when it thaws; then it follows.
func TestANodeIsFrozenForTwoMinutes(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	former := e.primary("db")
	e.operatorNotOn(former.Node)
	w := e.writes("db", former.Node)
	began := time.Now()
	e.harms("freeze", former.Node)
	next := e.anotherLeads("db", former)
	w.goesOn()
	time.Sleep(time.Until(began.Add(2 * time.Minute)))
	e.heals(former.Node)
	e.settled("db")
	assert.Equal(t, next.Instance, e.primary("db").Instance, "the former primary does not take it back")
	report := w.lossTold()
	w.outage(report, began)
	assert.Len(t, report.Timelines(), 2, "each timeline has one primary")
}

// TestThePrimaryIsCutOff: alone without a network, it stops before its right is over.
func TestThePrimaryIsCutOff(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	former := e.primary("db")
	e.operatorNotOn(former.Node)
	w := e.writes("db", former.Node)
	began := time.Now()
	e.harms("cut", former.Node)
	e.anotherLeads("db", former)
	w.goesOn()
	e.heals(former.Node)
	e.settled("db")
	w.outage(w.lossTold(), began)
}

// TestAReplicasNodeIsFrozen: the primary goes on, commits wait for the other replica.
func TestAReplicasNodeIsFrozen(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20", synchronous))
	e.settled("db")
	former := e.primary("db")
	var replica live.Primary
	for _, instance := range e.others("db", former.Instance) {
		replica = e.podOf("db", instance)
		if replica.Node != former.Node {
			break
		}
	}
	e.operatorNotOn(replica.Node)
	w := e.writes("db", replica.Node)
	e.harms("freeze", replica.Node)
	time.Sleep(20 * time.Second) // longer than a Lease
	w.goesOn()
	assert.Equal(t, former, e.primary("db"))
	e.heals(replica.Node)
	e.settled("db")
	w.nothingLost()
}

// TestADoubleFailure: the primary's node is killed, and a replica's container in the
// same moment.
func TestADoubleFailure(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20", synchronous))
	e.settled("db")
	former := e.primary("db")
	e.operatorNotOn(former.Node)
	w := e.writes("db", former.Node)
	replica := e.podOf("db", e.others("db", former.Instance)[0])
	e.harms("kill", former.Node)
	if replica.Node != former.Node {
		e.patiently(func(context.Context) error { return live.KillContainer(replica.UID) })
	}
	e.anotherLeads("db", former)
	w.goesOn()
	e.heals(former.Node)
	e.settled("db")
	w.nothingLost()
}

// TestEachNodeIsDrained: every drain ends, the primary moves first, and nothing is
// lost.
func TestEachNodeIsDrained(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	w := e.writes("db")
	for _, node := range []string{"node-1", "node-2", "node-3"} {
		e.Cleanup(func() { e.kubectl("uncordon", node) })
		e.kubectlFor(patience, "drain", node, "--pod-selector=cluster=db", "--ignore-daemonsets", "--delete-emptydir-data",
			"--timeout="+patience.String())
		w.goesOn()
		e.kubectl("uncordon", node)
		e.settled("db")
	}
	w.nothingLost()
}

// TestACordonedNodeIsNotChosen: of two replicas that have the same, the one takes over
// whose node is not about to be emptied.
func TestACordonedNodeIsNotChosen(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	former := e.primary("db")
	others := e.others("db", former.Instance)
	cordoned, free := e.podOf("db", others[0]), e.podOf("db", others[1])
	if cordoned.Node == free.Node {
		t.Skipf("%s and %s share a node: there is no choice", cordoned.Instance, free.Instance)
	}
	e.Cleanup(func() { e.kubectl("uncordon", cordoned.Node) })
	e.kubectl("cordon", cordoned.Node)
	assert.Equal(t, free.Instance, e.losesPrimary("db").Instance)
	e.kubectl("uncordon", cordoned.Node)
	e.settled("db")
}

//go:build e2e

package e2e

import (
	"testing"
	"time"
)

// synchronous is a line of a spec: no acknowledged commit is lost with the primary.
const synchronous = "replication: {synchronous: {method: any, number: 1, dataDurability: required}}"

// TestANodeIsKilledWithSynchronousReplication: the primary's machine loses its power;
// no acknowledged commit is lost.
func TestANodeIsKilledWithSynchronousReplication(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20", synchronous))
	e.settled("db")
	former := e.primary("db")
	e.operatorNotOn(former.Node)
	w := e.writes("db", former.Node)
	began := time.Now()
	e.harms("kill", former.Node)
	e.anotherLeads("db", former)
	w.goesOn()
	e.heals(former.Node)
	e.settled("db")
	w.outage(w.nothingLost(), began)
}

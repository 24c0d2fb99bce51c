//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// switchTo asks for a switchover, as a person does.
func (e *environment) switchTo(cluster, instance string) {
	e.Helper()
	e.kubectl("annotate", "postgrescluster", cluster, "db.my-domain.com/switchover="+instance)
}

func (e *environment) events(cluster string) string {
	e.Helper()
	return e.kubectl("get", "events", "--field-selector", "involvedObject.name="+cluster, "--output", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`)
}

// TestSwitchover: the primary moves to a named instance, to the best one, and home,
// under a writer; no acknowledged row is lost. What cannot be done is refused.
func TestSwitchover(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20"))
	e.ready("db")
	w := e.writes("db")

	e.switchTo("db", "db-replica-7")
	e.eventually("it is refused", func() bool {
		return strings.Contains(e.events("db"), `SwitchoverRefused: the switchover that was asked for is refused: there is no instance "db-replica-7"`)
	})
	e.eventually("the request is dropped", func() bool {
		return e.kubectl("get", "postgrescluster", "db", "--output", `jsonpath={.metadata.annotations.db\.my-domain\.com/switchover}`) == ""
	})
	assert.Equal(t, "db-primary", e.status("db", "currentPrimary"))

	for _, step := range []struct{ asked, becomes string }{
		{"db-replica-2", "db-replica-2"}, {"", "db-primary"}, {"db-replica-1", "db-replica-1"}, {"db-primary", "db-primary"},
	} {
		e.ready("db")
		e.switchTo("db", step.asked)
		e.eventually(step.becomes+" is the primary", func() bool { return e.status("db", "currentPrimary") == step.becomes })
		w.goesOn()
	}
	e.ready("db")
	assert.Equal(t, "Promoted", e.status("db", "lastPrimaryChange.result"))
	assert.Equal(t, "Switchover", e.status("db", "lastPrimaryChange.type"))
	for _, replica := range []string{"db-replica-1", "db-replica-2"} {
		e.streams("db", replica)
	}
	w.nothingLost()
}

// TestFence: PostgreSQL stops on a fenced instance, the pod stays, nobody takes the
// place of a fenced primary, and all of it starts again where it was.
func TestFence(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.ready("db")
	pods := func() string {
		return e.kubectl("get", "pods", "--selector", "cluster=db", "--output", `jsonpath={range .items[*]}{.metadata.uid}{.status.containerStatuses[0].restartCount} {end}`)
	}
	running := func(pod string) bool {
		_, err := e.try("", "exec", pod, "--container", "postgres", "--", "bash", "-c", "test -e $PGDATA/postmaster.pid")
		return err == nil
	}
	before := pods()
	e.sql("db-primary-0", "app", "create table kept (i int)")

	e.kubectl("annotate", "postgrescluster", "db", "db.my-domain.com/fence=db-replica-1")
	e.eventually("the replica stops", func() bool { return !running(e.replicaPod("db", 1)) })
	e.eventually("the condition says so", func() bool { return e.condition("db", "Degraded", "reason") == "Fenced" })
	assert.True(t, running("db-primary-0"))

	for _, fenced := range []string{"all", "db-primary"} {
		e.kubectl("annotate", "postgrescluster", "db", "db.my-domain.com/fence="+fenced, "--overwrite")
		e.eventually("the primary stops", func() bool { return !running("db-primary-0") })
		e.eventually("it does not serve", func() bool { return e.condition("db", "Available", "status") == "False" })

		e.kubectl("annotate", "postgrescluster", "db", "db.my-domain.com/fence-")
		e.ready("db")
		assert.Equal(t, "db-primary", e.status("db", "currentPrimary"), "nobody has taken its place")
		assert.Empty(t, e.status("db", "lastPrimaryChange"), "and nobody tried to")
	}
	assert.Equal(t, before, pods())
	assert.Equal(t, "0", e.sql("db-primary-0", "app", "select count(*) from kept"))
}

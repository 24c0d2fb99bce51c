//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestParameterChangeReloads: no pod and no server is restarted.
func TestParameterChangeReloads(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20", "postgresql: {parameters: {work_mem: 5MB}}"))
	e.ready("db")
	assert.Equal(t, "5MB", e.sql("db-primary-0", "app", "show work_mem"))
	world := func() string {
		return e.kubectl("get", "pods", "--output", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount} {end}") +
			e.sql("db-primary-0", "app", "select pg_postmaster_start_time()")
	}
	before := world()

	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch",
		`{"spec":{"postgresql":{"parameters":{"work_mem":"7MB"},"hba":["hostssl app app samenet scram-sha-256"]}}}`)
	replica := e.replicaPod("db", 1)
	e.eventually("every instance has the new value", func() bool {
		return e.sql("db-primary-0", "app", "show work_mem") == "7MB" && e.sql(replica, "app", "show work_mem") == "7MB"
	})
	assert.Equal(t, "1", e.sql("db-primary-0", "app", "select count(*) from pg_hba_file_rules where address = 'samenet'"))
	assert.Equal(t, before, world())
}

// TestAParameterThatNeedsARestart: it waits for the maintenance window, unless it is
// let through; then every instance restarts PostgreSQL, the primary last, after it has
// moved. Lowered again, it goes to the primary first. Nothing is lost, no pod replaced.
func TestAParameterThatNeedsARestart(t *testing.T) {
	e := begin(t)
	opens := time.Now().UTC().Add(12 * time.Hour).Format("15:04")
	e.apply(cluster("db", 3, "15.20", `maintenanceWindow: {start: "`+opens+`", durationMinutes: 60}`))
	e.settled("db")
	pods := func() string {
		return e.kubectl("get", "pods", "--selector", "cluster=db", "--output", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount} {end}")
	}
	before := pods()
	w := e.writes("db")
	set := func(value string) {
		t.Helper()
		e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"postgresql":{"parameters":{"max_connections":"`+value+`"}}}}`)
	}
	everywhere := func(value string) {
		t.Helper()
		for _, instance := range []string{"db-primary", "db-replica-1", "db-replica-2"} {
			e.eventually(instance+" has "+value, func() bool {
				found, err := e.trySQL(e.podOf("db", instance).Pod, "app", "show max_connections")
				return err == nil && found == value
			})
		}
		e.settled("db")
		e.eventually("nothing is pending", func() bool { return e.status("db", "pendingChange") == "" })
		w.goesOn()
	}

	set("120")
	e.eventually("it is known what waits", func() bool { return e.condition("db", "Progressing", "reason") == "RestartPending" })
	assert.Contains(t, e.condition("db", "Progressing", "message"), "one after the other, db-replica-2, db-replica-1 are restarted; the primary moves from db-primary")
	assert.Equal(t, "Ready", e.status("db", "phase"))
	assert.Equal(t, `["RestartReplicas","Switchover"]`, e.status("db", "pendingChange.actions"))
	assert.Contains(t, e.status("db", "pendingChange.notBefore"), "T"+opens)
	e.kubectl("annotate", "postgrescluster", "db", "db.my-domain.com/apply-now=")
	everywhere("120")
	assert.NotEqual(t, "db-primary", e.status("db", "currentPrimary"))
	assert.Equal(t, "Update", e.status("db", "lastPrimaryChange.reason"))
	e.eventually("the window counts again", func() bool {
		return e.kubectl("get", "postgrescluster", "db", "--output", `jsonpath={.metadata.annotations}`) == "" ||
			!strings.Contains(e.kubectl("get", "postgrescluster", "db", "--output", `jsonpath={.metadata.annotations}`), "apply-now")
	})

	changes := e.status("db", "lastPrimaryChange.number")
	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"maintenanceWindow":null}}`)
	set("90")
	everywhere("90")
	assert.Equal(t, changes, e.status("db", "lastPrimaryChange.number"), "the primary restarts first, where it is: replicas cannot have less")
	assert.Equal(t, before, pods())
	w.nothingLost()
}

// TestAParameterThatPostgreSQLDoesNotStartWith: the first replica stands still, the
// others go on, and the value can be taken back.
func TestAParameterThatPostgreSQLDoesNotStartWith(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.settled("db")
	w := e.writes("db")
	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"postgresql":{"parameters":{"shared_preload_libraries":"no_such_library"}}}}`)
	e.eventually("the condition quotes PostgreSQL", func() bool {
		return e.condition("db", "Degraded", "reason") == "Crashing" && strings.Contains(e.condition("db", "Degraded", "message"), "no_such_library")
	})
	assert.Contains(t, e.condition("db", "Degraded", "message"), "db-replica-1")
	w.goesOn()
	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"postgresql":{"parameters":{"shared_preload_libraries":null}}}}`)
	e.settled("db")
	e.ready("db")
	assert.Empty(t, e.status("db", "lastPrimaryChange"))
	w.nothingLost()
}

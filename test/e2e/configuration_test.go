//go:build e2e

package e2e

import (
	"testing"

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

	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"postgresql":{"parameters":{"max_connections":"120"}}}}`)
	e.eventually("the status says what waits for a restart", func() bool {
		return e.condition("db", "Progressing", "reason") == "RestartPending"
	})
	assert.Contains(t, e.condition("db", "Progressing", "message"), "max_connections")
	assert.Equal(t, "Ready", e.status("db", "phase"))
}

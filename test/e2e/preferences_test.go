//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestThePreferredReplicaTakesOverAndThePrimaryGoesHome: commits wait for the replica
// that spec.failover.priority names first, which then takes over; without replicas they
// wait for none, as dataDurability: preferred says; and the primary returns to its home
// by itself.
func TestThePreferredReplicaTakesOverAndThePrimaryGoesHome(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20",
		"failover: {priority: [db-replica-2], failback: Automatic}",
		"replication: {synchronous: {method: first, number: 1, dataDurability: preferred}}"))
	e.settled("db")
	isSynchronous := func(status string) func() bool {
		return func() bool { return e.condition("db", "Synchronous", "status") == status }
	}
	e.eventually("the condition says that commits wait", isSynchronous("True"))
	e.sql("db-primary-0", "app", "create table kept (i int)")
	assert.Equal(t, "db-replica-1 potential,db-replica-2 sync", e.sql("db-primary-0", "app",
		"select string_agg(application_name || ' ' || sync_state, ',' order by application_name) from pg_stat_replication"))

	e.kubectl("annotate", "postgrescluster", "db", "db.my-domain.com/fence=db-replica-1,db-replica-2")
	e.eventually("the condition says that too few replicas stream", isSynchronous("False"))
	e.sql("db-primary-0", "app", "insert into kept values (1)")
	e.kubectl("annotate", "postgrescluster", "db", "db.my-domain.com/fence-")
	e.eventually("commits wait again", isSynchronous("True"))
	e.settled("db")

	e.sql(e.primary("db").Pod, "app", "insert into kept values (2)")
	for _, replica := range []string{"db-replica-1", "db-replica-2"} {
		e.eventually(replica+" has every row", func() bool {
			rows, err := e.trySQL(e.podOf("db", replica).Pod, "app", "select count(*) from kept")
			return err == nil && rows == "2"
		})
	}
	next := e.losesPrimary("db")
	assert.Equal(t, "db-replica-2", next.Instance, "of two that have the same, the preferred one")
	e.sql(next.Pod, "app", "insert into kept values (3)")

	e.eventually("the primary goes home", func() bool { return e.status("db", "currentPrimary") == "db-primary" })
	e.settled("db")
	assert.Equal(t, "Failback Switchover Promoted", e.kubectl("get", "postgrescluster", "db", "--output",
		`jsonpath={.status.lastPrimaryChange.reason} {.status.lastPrimaryChange.type} {.status.lastPrimaryChange.result}`))
	assert.Equal(t, "1 2 3", e.sql(e.primary("db").Pod, "app", "select string_agg(i::text, ' ' order by i) from kept"))
}

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// evictable asks whether a pod could be evicted, as a drain would.
func (e *environment) evictable(pod string) bool {
	e.Helper()
	_, err := e.try(fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q},"deleteOptions":{"dryRun":["All"]}}`, pod, e.namespace),
		"create", "--raw", "/api/v1/namespaces/"+e.namespace+"/pods/"+pod+"/eviction", "--filename", "-")
	if err != nil {
		assert.Contains(e, err.Error(), "disruption budget")
	}
	return err == nil
}

// TestASingleInstanceIsEvictedUnlessItRefuses: any drain ends, unless somebody has
// asked for the opposite.
func TestASingleInstanceIsEvictedUnlessItRefuses(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 1, "15.20"))
	e.ready("db")
	assert.True(t, e.evictable("db-primary-0"))
	setting := func(value string) {
		e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"singleInstanceEviction":"`+value+`"}}`)
	}
	setting("Refused")
	e.eventually("it is refused", func() bool { return !e.evictable("db-primary-0") })
	setting("Allowed")
	e.eventually("it is allowed", func() bool { return e.evictable("db-primary-0") })
}

// TestScaleUpAndDown: 1 to 3 to 2. What was removed leaves no pod, volume or
// slot, and the primary is never touched.
func TestScaleUpAndDown(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 1, "15.20"))
	e.ready("db")
	assert.Empty(t, e.kubectl("get", "poddisruptionbudgets", "--output", "name"), "a budget over one pod blocks every drain")
	e.sql("db-primary-0", "app", "create table t as select generate_series(1, 1000) i")
	primary := e.kubectl("get", "pod", "db-primary-0", "--output", "jsonpath={.metadata.uid}")

	e.kubectl("scale", "postgrescluster", "db", "--replicas=3")
	e.eventually("three instances are ready", func() bool { return e.status("db", "ready") == "3/3" })
	e.ready("db")
	for _, ordinal := range []int{1, 2} {
		assert.Equal(t, "1000", e.sql(e.replicaPod("db", ordinal), "app", "select count(*) from t"))
	}
	assert.Equal(t, "poddisruptionbudget.policy/db", e.kubectl("get", "poddisruptionbudgets", "--output", "name"))
	for _, pod := range []string{"db-primary-0", e.replicaPod("db", 1)} {
		e.eventually(pod+" can be evicted", func() bool { return e.evictable(pod) })
	}

	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"replicas":2}}`)
	e.eventually("the removed instance has left nothing", func() bool {
		left := e.kubectl("get", "deployments,pods,pvc", "--output", "name")
		return !strings.Contains(left, "db-replica-2")
	})
	e.eventually("its slot is gone", func() bool {
		return e.sql("db-primary-0", "app", "select string_agg(slot_name, ',') from pg_replication_slots") == "db_replica_1"
	})
	e.eventually("the status says so", func() bool { return e.status("db", "ready") == "2/2" && e.status("db", "instances") == "2" })
	assert.Equal(t, primary, e.kubectl("get", "pod", "db-primary-0", "--output", "jsonpath={.metadata.uid}"))
	assert.Equal(t, "1000", e.sql("db-primary-0", "app", "select count(*) from t"))
}

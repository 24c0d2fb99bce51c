//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestASubscriberFollowsTheNextPrimary: a logical slot that asks for it is there on
// the next primary, after a switchover and after a failover, and the subscriber of
// another cluster misses no row and gets none twice.
func TestASubscriberFollowsTheNextPrimary(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "17.12", "postgresql: {parameters: {wal_level: logical}}", "replication: {synchronous: {number: 1}}"))
	e.apply(cluster("copy", 1, "17.12"))
	e.ready("db")
	e.ready("copy")
	for pod, statement := range map[string]string{
		"db-primary-0":   "create table items (n int primary key); grant select on items to app; alter role app replication; create publication items for table items",
		"copy-primary-0": "create table items (n int primary key)",
	} {
		e.sql(pod, "app", statement)
	}
	password := e.kubectl("get", "secret", "db-app", "--output", "go-template={{.data.password | base64decode}}")
	e.sql("copy-primary-0", "app", fmt.Sprintf("create subscription items connection 'host=db-primary user=app dbname=app password=%s sslmode=require connect_timeout=5 tcp_user_timeout=3000' publication items with (failover = true)", password))

	rows := 0
	insert := func() {
		t.Helper()
		e.sql(e.primary("db").Pod, "app", fmt.Sprintf("insert into items select generate_series(%d, %d)", rows+1, rows+1000))
		rows += 1000
	}
	copied := func() {
		t.Helper()
		e.eventually("the subscriber has every row", func() bool {
			return e.sql("copy-primary-0", "app", "select count(*) from items") == fmt.Sprint(rows)
		})
	}
	synced := func() {
		t.Helper()
		for _, replica := range e.others("db", e.primary("db").Instance) {
			e.eventually("the slot is on "+replica, func() bool {
				answer, err := e.trySQL(e.podOf("db", replica).Pod, "app", "select count(*) from pg_replication_slots where slot_name = 'items' and synced and not temporary and invalidation_reason is null")
				return err == nil && answer == "1"
			})
		}
	}
	insert()
	copied()
	synced()
	e.switchTo("db", "db-replica-1")
	e.eventually("the primary has moved", func() bool { return e.status("db", "currentPrimary") == "db-replica-1" })
	e.settled("db")
	insert()
	copied()
	synced()
	former := e.primary("db")
	e.patiently(func(ctx context.Context) error { return e.live("db").ForceDeletePod(ctx, former.Pod) })
	e.anotherLeads("db", former)
	e.settled("db")
	insert()
	copied()
	assert.Equal(t, fmt.Sprintf("%d %d", rows, rows), e.sql("copy-primary-0", "app", "select count(distinct n) || ' ' || max(n) from items"))
	e.sql("copy-primary-0", "app", "drop subscription items")
}

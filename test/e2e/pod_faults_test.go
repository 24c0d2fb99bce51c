//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/my-org/postgres-operator/test/live"
)

// TestProcessOneIsKilled: the container ends without a word and is started again; it
// comes back in place, with every row.
func TestProcessOneIsKilled(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	former := e.primary("db")
	w := e.writes("db", former.Node)
	began := time.Now()
	e.patiently(func(context.Context) error { return live.KillContainer(former.UID) })
	e.eventually("the container is started again", func() bool {
		return e.kubectl("get", "pod", former.Pod, "--output", "jsonpath={.status.containerStatuses[0].restartCount}") == "1"
	})
	w.goesOn()
	e.settled("db")
	if e.primary("db").Instance == former.Instance {
		w.outage(w.nothingLost(), began)
		return
	}
	w.outage(w.lossTold(), began) // the kubelet was too slow, and a replica has taken over
}

// TestThePostmasterIsKilled: crash recovery in place.
func TestThePostmasterIsKilled(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	former := e.primary("db")
	w := e.writes("db")
	began := time.Now()
	e.patiently(func(ctx context.Context) error { return e.live("db").KillPostmaster(ctx, former.Pod) })
	w.goesOn()
	e.settled("db")
	assert.Equal(t, former, e.primary("db"), "what comes back at once stays the primary, in the same pod")
	w.outage(w.nothingLost(), began)
}

// TestThePrimarysPodIsDeleted: the primary hands over, and its pod comes back as a
// replica; then a replica's pod is deleted. Nothing is lost.
func TestThePrimarysPodIsDeleted(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	former := e.primary("db")
	w := e.writes("db")
	began := time.Now()
	e.patiently(func(ctx context.Context) error { return e.live("db").DeletePod(ctx, former.Pod) })
	e.anotherLeads("db", former)
	w.goesOn()
	e.settled("db")

	next := e.primary("db")
	replica := e.others("db", next.Instance)[0]
	pod := e.podOf("db", replica).Pod
	e.patiently(func(ctx context.Context) error { return e.live("db").DeletePod(ctx, pod) })
	w.goesOn()
	e.streams("db", replica)
	e.settled("db")
	assert.Equal(t, next, e.primary("db"), "a replica's pod is replaced, and nothing else happens")
	w.outage(w.nothingLost(), began)
}

// TestThePrimarysPodIsForceDeleted: the API server forgets the pod while it still
// runs. Whoever leads next, nobody writes beside it.
func TestThePrimarysPodIsForceDeleted(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	former := e.primary("db")
	w := e.writes("db")
	began := time.Now()
	e.patiently(func(ctx context.Context) error { return e.live("db").ForceDeletePod(ctx, former.Pod) })
	e.eventually("the pod is another one", func() bool {
		uid, err := e.try("", "get", "pod", former.Pod, "--output", "jsonpath={.metadata.uid}")
		return err == nil && uid != former.UID
	})
	w.goesOn()
	e.settled("db")
	w.outage(w.lossTold(), began)
}

// TestFailoverTwiceInARow: the one that has just taken over is lost too.
func TestFailoverTwiceInARow(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20", "replication: {synchronous: {method: any, number: 1}}"))
	e.settled("db")
	w := e.writes("db")
	first := e.primary("db")
	e.patiently(func(ctx context.Context) error { return e.live("db").DeletePod(ctx, first.Pod) })
	second := e.anotherLeads("db", first)
	// With nobody who follows it yet, it would come back in its own place, rightly.
	e.eventually("a replica follows it", func() bool {
		streaming, err := e.trySQL(second.Pod, "app", "select count(*) > 0 from pg_stat_replication where state = 'streaming'")
		return err == nil && streaming == "t"
	})
	e.patiently(func(ctx context.Context) error { return e.live("db").DeletePod(ctx, second.Pod) })
	e.anotherLeads("db", second)
	w.goesOn()
	e.settled("db")
	w.nothingLost()
	assert.Empty(t, e.status("db", "primaryChange"))
}

// TestThePrimaryIsLostWhileAReplicaClones: the half copy never leads, and is
// finished from the next primary.
func TestThePrimaryIsLostWhileAReplicaClones(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.settled("db")
	former := e.primary("db")
	e.sql(former.Pod, "app", "create table large as select i, repeat(md5(i::text), 20) as text from generate_series(1, 200000) i")
	e.settled("db")
	w := e.writes("db")
	e.kubectl("scale", "postgrescluster", "db", "--replicas=3")
	e.eventually("it clones", func() bool {
		state, err := e.trySQL(former.Pod, "app", "select count(*) > 0 from pg_stat_progress_basebackup")
		return err == nil && state == "t"
	})
	e.patiently(func(ctx context.Context) error { return e.live("db").DeletePod(ctx, former.Pod) })
	assert.Equal(t, "db-replica-1", e.anotherLeads("db", former).Instance)
	w.goesOn()
	e.settled("db")
	w.nothingLost()
	assert.Equal(t, "200000", e.sql(e.replicaPod("db", 2), "app", "select count(*) from large"))
}

package instance

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// failOver makes the replica the primary, as the operator would after it has lost
// the former one; the Service leads there.
func (w *world) failOver(replica *testPod, number int64) {
	w.t.Helper()
	w.cluster.Status.TargetPrimary = replica.name
	w.cluster.Status.PrimaryChange = &dbv1alpha1.PrimaryChange{Number: number, Type: dbv1alpha1.PrimaryChangeFailover, From: w.cluster.Status.CurrentPrimary, To: replica.name}
	w.save()
	report := replica.awaitReady(protocol.RolePrimary)
	w.cluster.Status.CurrentPrimary, w.cluster.Status.PrimaryChange = replica.name, nil
	w.cluster.Status.Timeline = int64(report.Timeline)
	w.leadService(replica)
	w.save()
}

// leadService makes the read-write Service lead to a pod.
func (w *world) leadService(to *testPod) {
	w.t.Helper()
	files, err := filepath.Glob("/etc/netns/pgotest-*/hosts")
	require.NoError(w.t, err)
	for _, file := range files {
		require.NoError(w.t, os.WriteFile(file, []byte("127.0.0.1 localhost\n"+to.address+" db-primary.t.svc\n"+
			testNetwork+"10 "+naming.InstanceHost("db", "t", primaryName)+"\n"+
			testNetwork+"11 "+naming.InstanceHost("db", "t", replicaName)+"\n"), 0o644))
	}
}

// pair is a primary with a replica that streams.
func (w *world) pair() (primary, replica *testPod) {
	w.t.Helper()
	primary = w.startPrimary()
	primary.sql("app", "create table rows (n int)")
	replica = w.pod(replicaName, 1)
	replica.start()
	replica.awaitReady(protocol.RoleReplica)
	return primary, replica
}

// end ends the pod as the kubelet does.
func (p *testPod) end() {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(p.process1(), syscall.SIGTERM))
	select {
	case <-p.ended:
		p.command = nil
	case <-time.After(time.Minute):
		require.FailNow(p.t, "the instance manager does not end", p.logText())
	}
}

func (w *world) allowRejoin(instance string) {
	w.cluster.Status.Rejoining = instance
	w.save()
}

// rejoins waits until a former primary streams and has what the new one has.
func (w *world) rejoins(former, leader *testPod) {
	w.t.Helper()
	leader.sql("app", "insert into rows values (100)")
	const rows = "select string_agg(n::text, ',' order by n) from rows"
	require.Eventually(w.t, func() bool {
		// It may come up, find that it cannot follow, and stop again.
		has, running := former.trySQL("app", rows)
		return running && has == leader.sql("app", rows)
	}, 5*time.Minute, 100*time.Millisecond)
	former.awaitReport("a stream", func(r protocol.Report) bool { return r.Streaming && r.Role == protocol.RoleReplica })
}

func TestAFormerPrimaryThatHasDivergedIsRewound(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	replica.kill()
	primary.sql("app", "insert into rows values (1)") // only here
	primary.kill()
	replica.start()
	replica.awaitReport("a replica without a primary", func(r protocol.Report) bool { return r.Role == protocol.RoleReplica })
	w.failOver(replica, 1)
	replica.sql("app", "insert into rows values (2)")

	primary.start()
	report := primary.awaitReport("the wait for the operator", func(r protocol.Report) bool { return r.State == protocol.StateWaitingToRejoin })
	require.NotNil(t, report.Rejoin)
	assert.Equal(t, protocol.RejoinRewind, report.Rejoin.Method)
	w.allowRejoin(primaryName)
	w.rejoins(primary, replica)
	assert.Equal(t, "2,100", primary.sql("app", "select string_agg(n::text, ',' order by n) from rows"))
	assert.Contains(t, primary.logText(), "the data was rewound")
	assert.NoFileExists(t, filepath.Join(primary.volume, "data.rewinding"))

	// And back: what was rewound can lead.
	w.allowRejoin("")
	w.failOver(primary, 2)
	assert.Equal(t, "2,100", primary.sql("app", "select string_agg(n::text, ',' order by n) from rows"))
}

func TestAFormerPrimaryThatStoppedCleanlyFollowsAsItIs(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	primary.sql("app", "insert into rows values (1)")
	require.Eventually(t, func() bool {
		return replica.sql("app", "select restart_lsn >= pg_last_wal_replay_lsn() - 1e6 from pg_replication_slots where slot_name = 'db_primary'") == "t"
	}, time.Minute, 100*time.Millisecond, "a replica keeps the slots that it needs as a primary, and moves them on")
	primary.end()
	w.failOver(replica, 1)
	primary.start()
	w.rejoins(primary, replica)
	assert.Contains(t, primary.logText(), "has nothing that the primary lacks")
	assert.NotContains(t, primary.logText(), "pg_rewind")
}

func TestARewindThatDiedIsNeverStarted(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	primary.kill()
	w.failOver(replica, 1)
	// As if pg_rewind had been killed in the middle.
	require.NoError(t, os.WriteFile(filepath.Join(primary.volume, "data.rewinding"), nil, 0o666))
	require.NoError(t, os.Truncate(filepath.Join(primary.volume, "data", "global", "pg_filenode.map"), 10))
	left := filepath.Join(primary.volume, "data.removed")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.Chown(left, testUser, 0))
	w.allowRejoin(primaryName)
	primary.start()
	w.rejoins(primary, replica)
	assert.Contains(t, primary.logText(), "pg_basebackup: base backup completed")
	assert.NoFileExists(t, filepath.Join(primary.volume, "data.rewinding"))
	assert.NoDirExists(t, filepath.Join(primary.volume, "data.removed"))
}

func TestAReplicaWhoseWALIsGoneIsCopiedAnew(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	replica.kill()
	w.cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"max_slot_wal_keep_size": "1MB", "wal_keep_size": "0", "max_wal_size": "32MB", "min_wal_size": "32MB"}
	w.cluster.Generation++
	w.save()
	require.Eventually(t, func() bool { return primary.sql("app", "show max_slot_wal_keep_size") == "1MB" }, time.Minute, 50*time.Millisecond)
	for range 6 {
		primary.sql("app", "insert into rows values (0)")
		primary.sql("app", "select pg_switch_wal()") // a segment each
		primary.sql("app", "checkpoint")
	}
	w.allowRejoin(replicaName)
	replica.start()
	w.rejoins(replica, primary)
	assert.Contains(t, replica.logText(), "the data cannot follow the primary")
}

func TestWhatAReplicaNeedsToFollow(t *testing.T) {
	history, err := postgres.ParseHistory(2, "1\t0/5000000\tno recovery target specified\n")
	require.NoError(t, err)
	source := sql.Source{History: history, OldestWAL: 0x3000000}
	for _, c := range []struct {
		timeline uint32
		replayed postgres.LSN
		want     protocol.RejoinMethod
	}{
		{2, 0x9000000, ""}, {1, 0x5000000, ""}, {1, 0x3000000, ""},
		{1, 0x5000001, protocol.RejoinRewind}, {3, 0x5000000, protocol.RejoinRewind}, {1, 0x2FFFFFF, protocol.RejoinClone},
	} {
		need := followVerdict(source, c.timeline, c.replayed)
		if c.want == "" {
			assert.Nil(t, need)
			continue
		}
		require.NotNil(t, need, "%d %s", c.timeline, c.replayed)
		assert.Equal(t, c.want, need.Method, "%d %s", c.timeline, c.replayed)
	}
}

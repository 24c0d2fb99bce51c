package instance

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/assignment"
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
	require.NotNil(t, report.Rejoin.Lost)
	assert.EqualValues(t, 1, report.Rejoin.Lost.Commits, "the row that was only here")
	assert.Positive(t, report.Rejoin.Lost.Bytes)
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
	// Less than a segment or two would lose the slot of the new copy as well, whenever a
	// checkpoint comes in between.
	w.cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"max_slot_wal_keep_size": "48MB", "wal_keep_size": "0", "max_wal_size": "32MB", "min_wal_size": "32MB"}
	w.cluster.Generation++
	w.save()
	require.Eventually(t, func() bool { return primary.sql("app", "show max_slot_wal_keep_size") == "48MB" }, time.Minute, 50*time.Millisecond)
	primary.churn()
	w.allowRejoin(replicaName)
	replica.start()
	w.rejoins(replica, primary)
	assert.Contains(t, replica.logText(), "the data cannot follow the primary")
}

// churn writes segments of WAL that the primary need not keep.
func (p *testPod) churn() {
	for range 6 {
		p.sql("app", "insert into rows values (0)")
		p.sql("app", "select pg_switch_wal()") // a segment each
		p.sql("app", "checkpoint")
	}
}

func TestAReplicaThatStillReplaysWhatItHasIsLeftAlone(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	w.cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"recovery_min_apply_delay": "1h", "wal_keep_size": "0", "max_wal_size": "32MB", "min_wal_size": "32MB"}
	w.cluster.Generation++
	w.save()
	require.Eventually(t, func() bool { return replica.sql("app", "show recovery_min_apply_delay") == "1h" }, time.Minute, 50*time.Millisecond)
	primary.churn()
	end := primary.sql("app", "select pg_current_wal_flush_lsn()")
	replica.awaitReport("all WAL", func(r protocol.Report) bool {
		received, err := postgres.ParseLSN(r.ReceivedLSN)
		wanted, _ := postgres.ParseLSN(end)
		return err == nil && received >= wanted
	})
	require.Eventually(t, func() bool { // the replica has what the primary has no more
		primary.sql("app", "checkpoint")
		return primary.sql("app", "select min(name) > pg_walfile_name('"+replica.sql("app", "select pg_last_wal_replay_lsn()")+"') from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$'") == "t"
	}, time.Minute, time.Second)
	replica.kill()
	w.allowRejoin(replicaName)
	replica.start()
	replica.awaitReport("a replica that replays", func(r protocol.Report) bool {
		return r.State == protocol.StateRunning && r.Role == protocol.RoleReplica
	})
	time.Sleep(followPatience + 5*time.Second)
	report, err := replica.report()
	require.NoError(t, err)
	assert.Equal(t, protocol.StateRunning, report.State, "%+v", report)
	assert.False(t, report.Streaming, "or nothing was tested")
	assert.NotContains(t, replica.logText(), "cannot follow")
}

func TestAReplicaThatStillReplaysIsNotComparedYet(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	w.cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"recovery_min_apply_delay": "1h"}
	w.cluster.Generation++
	w.save()
	require.Eventually(t, func() bool { return replica.sql("app", "show recovery_min_apply_delay") == "1h" }, time.Minute, 50*time.Millisecond)
	primary.sql("app", "insert into rows values (1)")
	end, err := postgres.ParseLSN(primary.sql("app", "select pg_current_wal_flush_lsn()"))
	require.NoError(t, err)
	hasAll := func(r protocol.Report) bool {
		received, err := postgres.ParseLSN(r.ReceivedLSN)
		return err == nil && received >= end
	}
	replica.awaitReport("all WAL", hasAll)
	replica.kill() // only PostgreSQL's memory says what was received
	primary.kill()
	w.cluster.Status.PrimaryChange = &dbv1alpha1.PrimaryChange{Number: 7, Type: dbv1alpha1.PrimaryChangeFailover, From: primaryName}
	w.save()
	replica.start()
	replica.awaitReport("a replica without a primary", func(r protocol.Report) bool { return r.Role == protocol.RoleReplica })
	assert.Never(t, func() bool {
		report, err := replica.report()
		return err == nil && report.StreamCut != 0 && !hasAll(report)
	}, lookTime+2*time.Second, 50*time.Millisecond, "it is taken for one that lacks an acknowledged commit")
	w.cluster.Spec.PostgreSQL.Parameters = nil
	w.cluster.Generation++
	w.save()
	report := replica.awaitReport("that it stands still", func(r protocol.Report) bool { return r.StreamCut == 7 })
	assert.True(t, hasAll(report), "%+v", report)
}

// promoteAlone makes the data of a pod that does not run a primary's of which
// nobody has heard: a row is written, and the machine fails before the first
// checkpoint.
func (p *testPod) promoteAlone(statement string) {
	p.t.Helper()
	data := filepath.Join(p.volume, "data")
	p.write(p.directory+"/pg_hba.conf", "local all all trust\n")
	as := func(program string, arguments ...string) {
		p.t.Helper()
		p.world.command("setpriv", append([]string{fmt.Sprintf("--reuid=%d", testUser), "--regid=0", "--clear-groups",
			fmt.Sprintf("/usr/lib/postgresql/%d/bin/%s", p.major, program)}, arguments...)...)
	}
	as("pg_ctl", "-w", "-D", data, "-l", p.path("socket/alone.log"), "-o", "-c config_file="+p.path("controller/configuration/postgresql.conf")+
		" -c listen_addresses= -c ssl=off -c primary_conninfo= -c checkpoint_timeout=1d -c checkpoint_completion_target=1 -c hba_file="+p.path("pg_hba.conf"), "start")
	as("pg_ctl", "-w", "-D", data, "promote")
	p.sql("app", statement)
	as("pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")
}

func TestAPromotionThatNobodyHeardOfIsTakenBack(t *testing.T) {
	for name, clean := range map[string]bool{"crashed": false, "past its checkpoint": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, primaryName, replicaName)
			primary, replica := w.pair()
			primary.sql("app", "insert into rows select 0 from generate_series(1, 10000)")
			require.Eventually(t, func() bool { return replica.sql("app", "select count(*) from rows") == "10000" }, time.Minute, 50*time.Millisecond)
			primary.kill()
			// Both begin a timeline 2, at about the same place.
			signal := filepath.Join(primary.volume, "data", "standby.signal")
			require.NoError(t, os.WriteFile(signal, nil, 0o666))
			require.NoError(t, os.Chown(signal, testUser, 0))
			require.NoError(t, os.Remove(filepath.Join(primary.volume, "data", "postmaster.pid")))
			statement := "insert into rows values (1)"
			if clean {
				statement = "checkpoint"
				defer func() { assert.Contains(t, primary.logText(), "timeline 2 of its own") }()
			}
			primary.promoteAlone(statement)
			w.failOver(replica, 1)
			replica.sql("app", "insert into rows values (2)")
			w.allowRejoin(primaryName)
			primary.start()
			w.rejoins(primary, replica)
			assert.Equal(t, "10000", primary.sql("app", "select count(*) filter (where n = 0) from rows"))
			assert.Equal(t, "0", primary.sql("app", "select count(*) from rows where n = 1"))
			assert.Contains(t, primary.logText(), "pg_basebackup: base backup completed")
			assert.NotContains(t, primary.logText(), "the data was rewound")
		})
	}
}

func TestTheOldCopyGoesFirstIfThereIsNoRoomForTwo(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	w.cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"wal_keep_size": "0", "max_wal_size": "32MB", "min_wal_size": "32MB"}
	w.save()
	primary := w.pod(primaryName, 0)
	w.command("mount", "-t", "tmpfs", "-o", "size=160m,mode=2770", "tmpfs", primary.volume)
	t.Cleanup(func() { primary.kill(); w.command("umount", primary.volume) })
	primary.start()
	w.cluster.Status.SystemIdentifier = primary.awaitReady(protocol.RolePrimary).SystemIdentifier
	w.save()
	primary.sql("app", "create table rows (n int)")
	replica := w.pod(replicaName, 1)
	replica.start()
	replica.awaitReady(protocol.RoleReplica)
	primary.kill()
	w.failOver(replica, 1)
	require.NoError(t, os.WriteFile(filepath.Join(primary.volume, "data.rewinding"), nil, 0o666))
	w.allowRejoin(primaryName)
	primary.start()
	w.rejoins(primary, replica)
	assert.Contains(t, primary.logText(), "no room for two copies")
	assert.NoFileExists(t, filepath.Join(primary.volume, "data.rewinding"))
}

func TestTheOnlyCopyIsKeptWhileThePrimaryDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	mount := t.TempDir()
	w.command("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", mount)
	t.Cleanup(func() { w.command("umount", mount) })
	data := filepath.Join(mount, "data")
	require.NoError(t, os.Mkdir(data, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(data, "rows"), make([]byte, 20<<20), 0o600))
	cluster := w.cluster.DeepCopy()
	cluster.Status.CurrentPrimary, cluster.Status.TargetPrimary = replicaName, replicaName
	lost := cluster.DeepCopy()
	lost.Status.PrimaryChange = &dbv1alpha1.PrimaryChange{Number: 1}
	for name, cluster := range map[string]*dbv1alpha1.PostgresCluster{"it does not answer": cluster, "it is being replaced": lost} {
		t.Run(name, func(t *testing.T) {
			m := New(Options{Cluster: "db", Namespace: "t", Instance: primaryName, Paths: Paths{Data: data}}, slog.New(slog.DiscardHandler), assignment.Fixed(cluster), &onlyLease{})
			require.ErrorContains(t, m.recopy(t.Context(), &protocol.Rejoin{}, replicaName), "the old copy is kept")
			assert.FileExists(t, filepath.Join(data, "rows"))
		})
	}
}

func TestOneThatIsNotToLeadDoesNotTakeAFreeLease(t *testing.T) {
	cluster := &dbv1alpha1.PostgresCluster{}
	cluster.Spec.Replicas = 2
	cluster.Status.TargetPrimary = primaryName
	cluster.Status.PrimaryChange = &dbv1alpha1.PrimaryChange{Number: 1, From: primaryName} // another is being chosen
	free := &onlyLease{}
	m := New(Options{Cluster: "db", Instance: primaryName}, slog.New(slog.DiscardHandler), assignment.Fixed(cluster), free)
	require.ErrorContains(t, m.awaitLease(t.Context(), cluster), "not to be the primary")
	assert.Nil(t, free.lease.Spec.HolderIdentity)
}

func TestWhatWaitsForAPrimaryEndsWhenThereIsAnother(t *testing.T) {
	cluster := &dbv1alpha1.PostgresCluster{}
	cluster.Status.CurrentPrimary, cluster.Status.TargetPrimary = "db-replica-2", "db-replica-2"
	watcher := assignment.Fixed(cluster)
	m := New(Options{Instance: primaryName, Paths: Paths{Data: filepath.Join(t.TempDir(), "data")}}, slog.New(slog.DiscardHandler), watcher, &onlyLease{})
	m.binaries.Directory = t.TempDir()
	// As pg_basebackup, whose child receives the WAL.
	require.NoError(t, os.WriteFile(m.binaries.Path("stuck"), []byte("#!/bin/sh\nsleep 20 &\nwait\n"), 0o755))
	following, end := m.whileFollowing(t.Context(), "db-replica-2")
	defer end()
	next := cluster.DeepCopy()
	next.Status.TargetPrimary = "db-replica-3"
	time.AfterFunc(100*time.Millisecond, func() { watcher.Set(next) })
	began := time.Now()
	_, err := m.run(following, "stuck")
	require.Error(t, err)
	assert.Less(t, time.Since(began), 10*time.Second)
	m.cannotFollow = &protocol.Rejoin{}
	require.ErrorContains(t, m.rejoined(following, err), "the primary has changed")
	assert.Zero(t, m.rejoinFailures, "nothing has failed")
	assert.Nil(t, m.cannotFollow, "the next primary may have what this one lacks")
}

func TestWhatAReplicaNeedsToFollow(t *testing.T) {
	history, err := postgres.ParseHistory(2, "1\t0/5000000\tno recovery target specified\n")
	require.NoError(t, err)
	source := sql.Source{History: history, OldestWAL: 0x3000000}
	for _, c := range []struct {
		timeline            uint32
		replayed, requested postgres.LSN
		want                protocol.RejoinMethod
	}{
		{2, 0x9000000, 0x9000000, ""}, {1, 0x5000000, 0x5000000, ""}, {1, 0x3000000, 0x3000000, ""},
		{1, 0x2000000, 0x3000000, ""}, // it has received more than it has replayed
		{1, 0x2000000, 0, ""},         // it replays what it has
		{1, 0x5000001, 0x5000001, protocol.RejoinRewind}, {3, 0x5000000, 0, protocol.RejoinRewind},
		{1, 0x2FFFFFF, 0x2FFFFFF, protocol.RejoinClone},
	} {
		need := followVerdict(source, c.timeline, c.replayed, c.requested)
		if c.want == "" {
			assert.Nil(t, need)
			continue
		}
		require.NotNil(t, need, "%d %s", c.timeline, c.replayed)
		assert.Equal(t, c.want, need.Method, "%d %s", c.timeline, c.replayed)
	}
}

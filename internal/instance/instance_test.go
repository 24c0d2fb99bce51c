package instance

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

var (
	primaryName = naming.Instance("db", 0)
	replicaName = naming.Instance("db", 1)
)

// startPrimary starts a primary and records its system identifier, as the operator
// would.
func (w *world) startPrimary() *testPod {
	w.t.Helper()
	began := time.Now()
	primary := w.pod(primaryName, 0)
	primary.start()
	report := primary.awaitReady(protocol.RolePrimary)
	w.t.Logf("first start to ready: %v, %d MB", time.Since(began).Round(time.Millisecond), primary.memory())
	w.cluster.Status.SystemIdentifier = report.SystemIdentifier
	w.save()
	return primary
}

func TestAReplicaClonesThoughItIsCutShortTenTimesAndStreams(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary := w.startPrimary()
	primary.sql("app", "create table rows as select n, repeat('x', 200) as filler from generate_series(1, 100000) n")
	replica := w.pod(replicaName, 1)
	for attempt := range 10 {
		replica.start()
		require.Eventually(t, func() bool {
			found, _ := filepath.Glob(filepath.Join(replica.volume, "data*"))
			return len(found) > 0
		}, time.Minute, time.Millisecond)
		time.Sleep(time.Duration(attempt*20) * time.Millisecond)
		replica.kill()
	}
	began := time.Now()
	replica.start()
	replica.awaitReady(protocol.RoleReplica)
	t.Logf("replica's start to ready: %v, %d MB", time.Since(began).Round(time.Millisecond), replica.memory())
	assert.Equal(t, "100000", replica.sql("app", "select count(*) from rows"))
	assert.Equal(t, "t", replica.sql("app", "select pg_is_in_recovery()"))

	primary.sql("app", "insert into rows values (0)")
	require.Eventually(t, func() bool { return replica.sql("app", "select count(*) from rows") == "100001" }, 10*time.Second, 50*time.Millisecond)
	report := primary.awaitReport("a streaming replica", func(r protocol.Report) bool {
		return len(r.Replicas) == 1 && r.Replicas[0].State == "streaming"
	})
	assert.Equal(t, replicaName, report.Replicas[0].Instance)
	leftovers, err := filepath.Glob(filepath.Join(replica.volume, "*.unfinished"))
	require.NoError(t, err)
	assert.Empty(t, leftovers)

	// Both come back, whoever goes first, and stay what they were.
	replica.kill()
	primary.kill()
	replica.start()
	primary.start()
	primary.awaitReady(protocol.RolePrimary)
	replica.awaitReady(protocol.RoleReplica)
	assert.Equal(t, "100001", replica.sql("app", "select count(*) from rows"))

	// The slot of a replica that was removed goes when its replica has gone.
	replica.kill()
	w.cluster.Status.InstanceNames = []string{primaryName}
	w.save()
	require.Eventually(t, func() bool {
		return primary.sql("postgres", "select count(*) from pg_replication_slots") == "0"
	}, 90*time.Second, 200*time.Millisecond)
}

func TestAKilledPostmasterComesBackWithItsRows(t *testing.T) {
	w := newWorld(t, primaryName)
	primary := w.startPrimary()
	primary.sql("app", "create table rows as select n from generate_series(1, 1000) n")
	for range 3 {
		raw, err := os.ReadFile(filepath.Join(primary.volume, "data", "postmaster.pid"))
		require.NoError(t, err)
		pid := strings.Fields(string(raw))[0]
		// A session that is busy does not see the end of its postmaster.
		busy := exec.Command("setpriv", fmt.Sprintf("--reuid=%d", testUser), "--regid=0", "--clear-groups",
			"psql", "-X", "-h", primary.path("socket"), "-U", "postgres", "-d", "app", "-c", "select count(*) from generate_series(1, 1000000000)")
		require.NoError(t, busy.Start())
		time.Sleep(200 * time.Millisecond)
		began := time.Now()
		w.command("nsenter", "-t", fmt.Sprint(primary.process1()), "-p", "kill", "-9", pid)
		require.Eventually(t, func() bool {
			now, err := os.ReadFile(filepath.Join(primary.volume, "data", "postmaster.pid"))
			return err == nil && len(strings.Fields(string(now))) > 0 && strings.Fields(string(now))[0] != pid
		}, time.Minute, 5*time.Millisecond)
		primary.awaitReady(protocol.RolePrimary)
		t.Logf("postmaster killed to ready: %v", time.Since(began).Round(time.Millisecond))
		_ = busy.Wait()
		assert.Equal(t, "1000", primary.sql("app", "select count(*) from rows"))
	}
	zombies := w.command("nsenter", "-t", fmt.Sprint(primary.process1()), "-p", "-m", "ps", "-eo", "stat=")
	assert.NotContains(t, zombies, "Z")
}

func TestTheEndOfThePodIsACleanStop(t *testing.T) {
	w := newWorld(t, primaryName)
	primary := w.startPrimary()
	primary.sql("app", "create table rows as select n from generate_series(1, 1000) n")
	idle := exec.Command("setpriv", fmt.Sprintf("--reuid=%d", testUser), "--regid=0", "--clear-groups",
		"psql", "-X", "-h", primary.path("socket"), "-U", "postgres", "-d", "app", "-c", "select pg_sleep(600)")
	require.NoError(t, idle.Start())
	began := time.Now()
	primary.end()
	t.Logf("SIGTERM to end: %v", time.Since(began).Round(time.Millisecond))
	_ = idle.Wait()
	control := w.command(fmt.Sprintf("/usr/lib/postgresql/%d/bin/pg_controldata", w.major), filepath.Join(primary.volume, "data"))
	assert.Regexp(t, `Database cluster state: +shut down\n`, control)
	for line := range strings.Lines(primary.logText()) {
		assert.True(t, strings.HasPrefix(line, "{"), "not JSON: %s", line)
		assert.NotContains(t, line, "it's a secret")
	}
}

func TestInitIsRedoneAfterACrashAtAnyStep(t *testing.T) {
	w := newWorld(t, primaryName)
	w.write("post-init/000.sql", "create table made (at timestamptz default now()); insert into made default values;")
	w.cluster.Spec.Bootstrap.InitDB.PostInitSQL = []dbv1alpha1.SQLSource{{}}
	w.save()
	primary := w.pod(primaryName, 0)
	for attempt := range 12 {
		primary.start()
		time.Sleep(time.Duration(150+attempt*150) * time.Millisecond)
		primary.kill()
	}
	primary.start()
	primary.awaitReady(protocol.RolePrimary)
	assert.Equal(t, "1", primary.sql("app", "select count(*) from made"))
	assert.Equal(t, "app", primary.sql("postgres", "select datdba::regrole from pg_database where datname = 'app'"))
	assert.Equal(t, "on", primary.sql("postgres", "show data_checksums"))
	assert.Equal(t, "t", primary.sql("postgres", "select rolpassword like 'SCRAM-SHA-256$%' from pg_authid where rolname = 'app'"))
	assert.Equal(t, "t", primary.sql("postgres", "select rolpassword is null from pg_authid where rolname = 'postgres'"))
	info, err := os.Stat(filepath.Join(primary.volume, "data"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestADirectoryOfSomebodyElseIsNotTouched(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a database": {"PG_VERSION": "MAJOR\n", "global/pg_control": "12345678 and more"},
		"no data":    {"letter.txt": "Dear diary"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, primaryName)
			primary := w.pod(primaryName, 0)
			for file, content := range files {
				path := filepath.Join(primary.volume, "data", file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
				require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(content, "MAJOR", fmt.Sprint(w.major))), 0o644))
			}
			before := w.command("find", filepath.Join(primary.volume, "data"), "-printf", "%p %m %s %T@\n")
			primary.start()
			report := primary.awaitReport("a problem", func(r protocol.Report) bool { return r.State == protocol.StateBlocked })
			assert.Equal(t, protocol.ProblemForeignData, report.Problem.Reason)
			assert.Contains(t, report.Problem.Message, "left alone")
			assert.Equal(t, before, w.command("find", filepath.Join(primary.volume, "data"), "-printf", "%p %m %s %T@\n"))
			response, err := http.Get("http://" + primary.address + ":8080/livez")
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, http.StatusOK, response.StatusCode, "waiting for a person is no reason to be restarted")
		})
	}
}

func TestAnEmptyVolumeOfAKnownDatabaseIsNotFilled(t *testing.T) {
	w := newWorld(t, primaryName)
	w.cluster.Status.SystemIdentifier = "7000000000000000000"
	w.save()
	primary := w.pod(primaryName, 0)
	primary.start()
	report := primary.awaitReport("a problem", func(r protocol.Report) bool { return r.State == protocol.StateBlocked })
	assert.Equal(t, protocol.ProblemDataMissing, report.Problem.Reason)
	assert.NoDirExists(t, filepath.Join(primary.volume, "data"))
}

func TestOfTwoManagersOneHasTheVolume(t *testing.T) {
	w := newWorld(t, primaryName)
	first := w.startPrimary()
	first.sql("app", "create table rows as select n from generate_series(1, 1000) n")
	second := w.pod(primaryName, 2)
	second.volume = first.volume
	second.start()
	second.awaitReport("waiting", func(r protocol.Report) bool { return r.State == protocol.StateWaitingForVolume })
	report, err := first.report()
	require.NoError(t, err)
	assert.True(t, report.Ready)
	first.kill()
	second.awaitReady(protocol.RolePrimary)
	assert.Equal(t, "1000", second.sql("app", "select count(*) from rows"))
}

func TestAFormerPrimaryIsNeverASecondOne(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary := w.startPrimary()
	w.cluster.Status.TargetPrimary = replicaName
	w.save()
	waits := func(r protocol.Report) bool {
		return r.State == protocol.StateWaitingForPrimary && r.Role == protocol.RoleNone
	}
	primary.awaitReport("the wait for the other one", waits)
	primary.kill()
	primary.start()
	report := primary.awaitReport("the wait for the other one", waits)
	assert.False(t, report.Ready, "it follows nobody")
}

func TestAChangeOfTheSpecIsReloaded(t *testing.T) {
	w := newWorld(t, primaryName)
	primary := w.startPrimary()
	w.cluster.Generation = 2
	w.cluster.Spec.PostgreSQL.HBA = []string{"hostssl all all 192.0.2.0/24 reject"}
	w.save()
	primary.awaitReport("the new configuration", func(r protocol.Report) bool { return r.ConfigGeneration == 2 })
	assert.Equal(t, "1", primary.sql("postgres", "select count(*) from pg_hba_file_rules where address = '192.0.2.0'"))
}

// TestAReplicaIsNotHeldByAnAddressThatLeadsNowhere: for a moment after a primary's pod
// has gone, its Service leads to the pod's former address.
func TestAReplicaIsNotHeldByAnAddressThatLeadsNowhere(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	nowhere := testNetwork + "99"
	w.command("ip", "-n", replica.netns, "neigh", "add", nowhere, "lladdr", "02:00:00:00:00:99", "dev", "eth0")
	w.leadService(&testPod{address: nowhere})
	primary.sql("postgres", "select pg_terminate_backend(pid) from pg_stat_replication")
	require.Eventually(t, func() bool {
		return replica.sql("postgres", "select wait_event from pg_stat_activity where backend_type = 'walreceiver'") == "LibPQWalReceiverConnect"
	}, time.Minute, 10*time.Millisecond)
	w.leadService(primary)
	began := time.Now()
	replica.awaitReport("a stream", func(r protocol.Report) bool { return r.Streaming })
	assert.Less(t, time.Since(began), time.Minute, "the kernel alone gives up after two")
}

// TestABusySessionEndsWithItsPostmaster: it would hold up the next postmaster, which
// shares no memory with it, and might still commit.
func TestABusySessionEndsWithItsPostmaster(t *testing.T) {
	w := newWorld(t, primaryName)
	primary := w.startPrimary()
	go primary.trySQL("postgres", "do $$ begin loop perform 1; end loop; end $$")
	busy := ""
	require.Eventually(t, func() bool {
		busy = primary.sql("postgres", "select min(pid) from pg_stat_activity where query like 'do %' and state = 'active'")
		return busy != ""
	}, time.Minute, 10*time.Millisecond)
	raw, err := os.ReadFile(filepath.Join(primary.volume, "data", "postmaster.pid"))
	require.NoError(t, err)
	postmaster, _, _ := strings.Cut(string(raw), "\n")
	before := primary.sql("postgres", "select pg_postmaster_start_time()")
	w.command("nsenter", "--target", strconv.Itoa(primary.process1()), "--pid", "kill", "-9", postmaster)
	require.Eventually(t, func() bool {
		started, running := primary.trySQL("postgres", "select pg_postmaster_start_time()")
		return running && started != before
	}, time.Minute, 50*time.Millisecond, "pid %s holds it up: %s", busy, primary.logText())
	primary.awaitReady(protocol.RolePrimary)
}

func TestAReplicaKeepsWhatItsPrimaryHasUntilThatHasLess(t *testing.T) {
	w := newWorld(t, primaryName, replicaName)
	primary, replica := w.pair()
	parameter := []string{"max_connections"}
	restart := func(instance string, pod *testPod) {
		t.Helper()
		w.cluster.Status.Restarting = &dbv1alpha1.RestartStatus{Instance: instance, What: dbv1alpha1.RestartPostgreSQL}
		w.save()
		require.Eventually(t, func() bool {
			value, ok := pod.trySQL("app", "show max_connections")
			return ok && value == "50"
		}, time.Minute, 100*time.Millisecond)
	}
	w.cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"max_connections": "50"}
	w.cluster.Generation++
	w.save()
	primary.awaitReport("that it has to restart", func(r protocol.Report) bool { return slices.Equal(r.PendingRestart, parameter) })
	report := replica.awaitReport("that it waits", func(r protocol.Report) bool { return slices.Equal(r.HeldParameters, parameter) })
	assert.Empty(t, report.PendingRestart)

	// Whatever makes it start anew: with less than the primary it could not.
	replica.kill()
	replica.start()
	replica.awaitReport("that it streams", func(r protocol.Report) bool { return r.Streaming })
	assert.Equal(t, "100", replica.sql("app", "show max_connections"))

	restart(primaryName, primary)
	report = replica.awaitReport("that it has to restart", func(r protocol.Report) bool { return slices.Equal(r.PendingRestart, parameter) })
	assert.Empty(t, report.HeldParameters)
	restart(replicaName, replica)
	replica.awaitReport("that it streams", func(r protocol.Report) bool { return r.Streaming && len(r.PendingRestart) == 0 })
	assert.Equal(t, "50", replica.sql("app", "show max_connections"))
}

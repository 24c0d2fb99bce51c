package sql_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/instance/trial"
	"github.com/my-org/postgres-operator/internal/naming"
)

// collect returns the values by name and labels.
func collect(t *testing.T, server *trial.Server) map[string]float64 {
	t.Helper()
	samples, err := (&sql.Statistics{Socket: server.Socket}).Collect(t.Context())
	require.NoError(t, err)
	values := map[string]float64{}
	for _, sample := range samples {
		require.Len(t, sample.Values, len(sample.Family.Labels), sample.Family.Name)
		name := fmt.Sprint(sample.Family.Name, sample.Values)
		assert.NotContains(t, values, name)
		values[name] = sample.Value
	}
	return values
}

func TestStatisticsOfPrimaryAndReplica(t *testing.T) {
	server, in := start(t, dbv1alpha1.PostgreSQLSpec{Parameters: dbv1alpha1.Parameters{"statement_timeout": "1"}})
	connection := connect(t, server, "postgres")
	require.NoError(t, sql.Bootstrap(t.Context(), connection, sql.Application{Database: "app", Owner: "app", Password: password}))
	in.Instance = naming.Instance("db", 1)
	slot := naming.Slot(in.Instance)
	require.NoError(t, sql.EnsureSlots(t.Context(), connection, []string{slot}, func(string) bool { return true }))
	replica := follow(t, server, in, slot)
	var primary map[string]float64
	require.Eventually(t, func() bool { // a replica that has just connected has not said yet how far it is
		primary = collect(t, server)
		_, known := primary["replica_replay_lag_bytes[db-replica-1]"]
		return known
	}, time.Minute, 50*time.Millisecond)
	assert.EqualValues(t, 0, primary["in_recovery[]"])
	assert.InDelta(t, time.Now().Unix(), primary["postmaster_start_time_seconds[]"], 600)
	assert.Greater(t, primary["connections_limit[]"], 10.0)
	assert.GreaterOrEqual(t, primary["connections[postgres idle]"], 1.0)
	assert.Greater(t, primary["database_size_bytes[app]"], float64(1<<20))
	assert.Greater(t, primary["database_commits_total[postgres]"], 0.0)
	assert.GreaterOrEqual(t, primary["wal_directory_bytes[]"], float64(16<<20))
	assert.EqualValues(t, 1, primary["slot_active["+slot+" physical]"])
	for _, known := range []string{"replica_replay_lag_seconds[db-replica-1]",
		"slot_retained_bytes[" + slot + " physical]", "checkpoints_requested_total[]", "checkpoint_write_seconds_total[]"} {
		assert.Contains(t, primary, known)
	}
	assert.NotContains(t, primary, "replay_lag_seconds[]", "a primary follows nobody")
	assert.NotContains(t, primary, "database_size_bytes[template1]")

	var follower map[string]float64
	require.Eventually(t, func() bool { // until it has replayed something, there is no lag in seconds
		follower = collect(t, replica)
		_, known := follower["replay_lag_seconds[]"]
		return known
	}, time.Minute, 100*time.Millisecond)
	assert.EqualValues(t, 1, follower["in_recovery[]"])
	assert.Contains(t, follower, "replay_lag_bytes[]")
	assert.Greater(t, follower["database_size_bytes[app]"], float64(1<<20))
}

// follow starts a replica of the server.
func follow(t *testing.T, server *trial.Server, in config.Input, slot string) *trial.Server {
	t.Helper()
	replica := trial.New(t)
	require.NoError(t, os.RemoveAll(replica.Data))
	connInfo := config.PrimaryConnInfo(in, "postgres") + " hostaddr=" + server.Address
	server.Run(t, "pg_basebackup", "--pgdata="+replica.Data, "--dbname="+connInfo, "--slot="+slot, "--checkpoint=fast", "--no-sync", "--write-recovery-conf")
	replica.Start(t, "-c", "config_file="+filepath.Join(server.Configuration, config.FileServer), "-c", "data_directory="+replica.Data,
		"-c", "primary_conninfo="+connInfo, "-c", "primary_slot_name="+slot)
	return replica
}

// TestStatisticsCostLittle: what is asked again at once is not asked at all, and a
// lock that somebody holds does not hold up the answer.
func TestStatisticsCostLittle(t *testing.T) {
	server := trial.New(t)
	server.Start(t)
	statistics := &sql.Statistics{Socket: server.Socket}
	first, err := statistics.Collect(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, first)
	second, err := statistics.Collect(t.Context())
	require.NoError(t, err)
	assert.True(t, slices.EqualFunc(first, second, func(a, b sql.Sample) bool { return a.Family.Name == b.Family.Name && a.Value == b.Value }))

	connection := connect(t, server, "postgres")
	_, err = connection.Exec(t.Context(), "begin; lock table pg_catalog.pg_database in access exclusive mode")
	require.NoError(t, err)
	began := time.Now()
	_, err = (&sql.Statistics{Socket: server.Socket}).Collect(t.Context())
	assert.Error(t, err)
	assert.Less(t, time.Since(began), 10*time.Second)
}

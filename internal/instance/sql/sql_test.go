package sql_test

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/instance/trial"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/pki"
)

const password = `pass 'word" \ {ü}`

// start runs a server with the configuration and the certificates of an instance.
func start(t *testing.T, spec dbv1alpha1.PostgreSQLSpec) (*trial.Server, config.Input) {
	t.Helper()
	server := trial.New(t)
	current, err := user.Current()
	require.NoError(t, err)
	cluster := &dbv1alpha1.PostgresCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "t"}}
	cluster.Spec.Replicas = 3
	cluster.Spec.Storage.Size = "1Gi"
	cluster.Spec.PostgreSQL = spec
	in := config.Input{
		Cluster: cluster, Instance: naming.HomeInstance("db"), Major: server.Major, MemoryBytes: 256 << 20, CPUMillis: 500,
		Directory: server.Configuration, Data: server.Data, Socket: server.Socket, TLS: server.TLS, OSUser: current.Username,
	}
	_, err = config.Write(server.Configuration, config.Render(in))
	require.NoError(t, err)
	ca, err := pki.EnsureCA(nil, "db", time.Now())
	require.NoError(t, err)
	certificate, err := pki.EnsureServer(ca, nil, naming.ServerDNSNames("db", "t"), time.Now())
	require.NoError(t, err)
	client, err := pki.EnsureClient(ca, nil, naming.UserReplication, time.Now())
	require.NoError(t, err)
	_, err = config.Write(server.TLS, map[string]string{
		config.FileServerCert: string(certificate[naming.KeyTLSCert]), config.FileServerKey: string(certificate[naming.KeyTLSKey]),
		config.FileClientCert: string(client[naming.KeyTLSCert]), config.FileClientKey: string(client[naming.KeyTLSKey]),
		config.FileCA: string(ca[naming.KeyCACert]),
	})
	require.NoError(t, err)
	server.Own(t, server.Configuration)
	server.Own(t, server.TLS)
	server.Start(t, "-c", "config_file="+filepath.Join(server.Configuration, config.FileServer))
	return server, in
}

func connect(t *testing.T, server *trial.Server, database string) *pgx.Conn {
	t.Helper()
	connection, err := sql.Connect(t.Context(), server.Socket, database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

// login connects as a client does, over the network.
func login(t *testing.T, server *trial.Server, user, secret, mode string) error {
	t.Helper()
	settings, err := pgx.ParseConfig(fmt.Sprintf("host=%s user=%s dbname=app sslmode=%s", server.Address, user, mode))
	require.NoError(t, err)
	settings.Password = secret
	connection, err := pgx.ConnectConfig(t.Context(), settings)
	if err == nil {
		err = connection.Close(t.Context())
	}
	return err
}

func TestANewClusterIsSetUpAndServes(t *testing.T) {
	server, in := start(t, dbv1alpha1.PostgreSQLSpec{})
	connection := connect(t, server, "postgres")
	faults, err := sql.ConfigurationErrors(t.Context(), connection)
	require.NoError(t, err)
	assert.Empty(t, faults, "PostgreSQL accepts what is rendered")
	require.NoError(t, sql.Bootstrap(t.Context(), connection, sql.Application{Database: "app", Owner: `own"er`, Password: password}))

	require.NoError(t, login(t, server, `own"er`, password, "require"))
	assert.ErrorContains(t, login(t, server, `own"er`, password, "disable"), "pg_hba.conf rejects", "TLS only")
	assert.ErrorContains(t, login(t, server, `own"er`, "wrong", "require"), "password authentication failed")
	assert.Error(t, login(t, server, naming.UserReplication, password, "require"), "replication is by certificate alone")
	assert.Error(t, login(t, server, naming.UserSuperuser, "", "require"))

	t.Run("password", func(t *testing.T) {
		for _, c := range []struct {
			secret  string
			changed bool
		}{{password, false}, {"", false}, {"another", true}, {"another", false}} {
			changed, err := sql.EnsurePassword(t.Context(), connection, `own"er`, c.secret)
			require.NoError(t, err)
			assert.Equal(t, c.changed, changed, c.secret)
		}
		require.NoError(t, login(t, server, `own"er`, "another", "require"))
	})
	t.Run("script", func(t *testing.T) {
		app := connect(t, server, "app")
		require.NoError(t, sql.Run(t.Context(), app, "create table one (id int); insert into one values (1)"))
		var schema string
		require.NoError(t, app.QueryRow(t.Context(), "select relnamespace::regnamespace::text from pg_class where relname = 'one'").Scan(&schema))
		assert.Equal(t, "public", schema)
		assert.ErrorContains(t, sql.Run(t.Context(), app, "select nonsense"), "nonsense")
	})
	t.Run("replica", func(t *testing.T) { clone(t, server, in, connection) })
}

// clone copies the server as a replica does, with its certificate and slot.
func clone(t *testing.T, server *trial.Server, in config.Input, connection *pgx.Conn) {
	replica := in
	replica.Instance = naming.Instance("db", 1)
	slot := naming.Slot(replica.Instance)
	ours := func(name string) bool { return name == slot || name == "db_replica_9" }
	require.NoError(t, sql.EnsureSlots(t.Context(), connection, []string{slot, "db_replica_9"}, ours))
	found, err := sql.HasSlot(t.Context(), connection, slot)
	require.NoError(t, err)
	assert.True(t, found)
	require.NoError(t, sql.EnsureSlots(t.Context(), connection, []string{slot}, ours))
	found, err = sql.HasSlot(t.Context(), connection, "db_replica_9")
	require.NoError(t, err)
	assert.False(t, found)

	// The name is not in this machine's DNS: the address is given beside it, and the
	// certificate is verified against the name.
	connInfo := config.PrimaryConnInfo(replica, "postgres") + " hostaddr=" + server.Address
	target := filepath.Join(filepath.Dir(server.Data), "clone")
	server.Run(t, "pg_basebackup", "--pgdata="+target, "--dbname="+connInfo, "--wal-method=stream", "--slot="+slot, "--checkpoint=fast", "--no-sync")
	_, err = os.Stat(filepath.Join(target, "PG_VERSION"))
	require.NoError(t, err)
	// pg_rewind reads files of the server through these.
	server.Run(t, "psql", "--no-psqlrc", connInfo, "--command", "select pg_read_binary_file('PG_VERSION'), pg_ls_dir('.', true, false)")

	seen, err := sql.Observe(t.Context(), connection, naming.UserReplication)
	require.NoError(t, err)
	assert.False(t, seen.InRecovery)
	assert.EqualValues(t, 1, seen.Timeline)
	assert.NotEmpty(t, seen.SystemIdentifier)
	assert.NotEmpty(t, seen.WrittenLSN)
	assert.Empty(t, seen.ReceivedLSN)
	assert.False(t, seen.Streaming)
}

func TestParametersOfTheUserDoNotGetInTheWay(t *testing.T) {
	server, in := start(t, dbv1alpha1.PostgreSQLSpec{Parameters: dbv1alpha1.Parameters{
		"default_transaction_read_only": "on", "statement_timeout": "1", "search_path": "public, pg_catalog",
		"default_transaction_isolation": "serializable", "log_statement": "all", "work_mem": "3MB", "datestyle": "german",
	}, HBA: []string{"hostssl all nobody all reject"}})
	connection := connect(t, server, "postgres")
	require.NoError(t, sql.Bootstrap(t.Context(), connection, sql.Application{Database: "app", Owner: "app", Password: password}))
	require.NoError(t, sql.EnsureSlots(t.Context(), connection, []string{"db_replica_1"}, func(string) bool { return true }))
	_, err := sql.Observe(t.Context(), connection, naming.UserReplication)
	require.NoError(t, err)

	// A change that waits for a restart is named; a value that is wrong is too, in
	// PostgreSQL's words.
	in.Cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"max_connections": "50", "statement_timeout": "soon", "track_commit_timestamp": "on"}
	_, err = config.Write(server.Configuration, config.Render(in))
	require.NoError(t, err)
	server.Own(t, server.Configuration)
	faults, err := sql.ConfigurationErrors(t.Context(), connection)
	require.NoError(t, err)
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0], "statement_timeout")
	in.Cluster.Spec.PostgreSQL.Parameters["statement_timeout"] = "1s"
	_, err = config.Write(server.Configuration, config.Render(in))
	require.NoError(t, err)
	server.Own(t, server.Configuration)
	_, err = connection.Exec(t.Context(), "select pg_reload_conf()")
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		seen, err := sql.Observe(t.Context(), connection, naming.UserReplication)
		return err == nil && slices.Contains(seen.PendingRestart, "max_connections") && slices.Contains(seen.PendingRestart, "track_commit_timestamp")
	}, 10*time.Second, 50*time.Millisecond)
	delete(in.Cluster.Spec.PostgreSQL.Parameters, "track_commit_timestamp")
	_, err = config.Write(server.Configuration, config.Render(in))
	require.NoError(t, err)
	server.Own(t, server.Configuration)
	_, err = connection.Exec(t.Context(), "select pg_reload_conf()")
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		seen, err := sql.Observe(t.Context(), connection, naming.UserReplication)
		return err == nil && slices.Contains(seen.PendingRestart, "max_connections") && !slices.Contains(seen.PendingRestart, "track_commit_timestamp")
	}, 10*time.Second, 50*time.Millisecond, "what is taken back is not pending, though PostgreSQL says so")
	faults, err = sql.ConfigurationErrors(t.Context(), connection)
	require.NoError(t, err)
	assert.Empty(t, faults, "to wait for a restart is no fault")
}

func TestSlotChanges(t *testing.T) {
	ours := func(name string) bool { return name != "theirs" }
	create, drop := sql.SlotChanges([]sql.Slot{
		{Name: "kept"}, {Name: "gone"}, {Name: "leaving", Active: true}, {Name: "theirs"}, {Name: "lost", Lost: true},
	}, []string{"kept", "new", "lost"}, ours)
	assert.Equal(t, []string{"new", "lost"}, create)
	assert.Equal(t, []string{"gone", "lost"}, drop)
}

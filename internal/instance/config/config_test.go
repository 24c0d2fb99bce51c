package config

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/trial"
	"github.com/my-org/postgres-operator/internal/postgres"
)

var write = flag.Bool("write", false, "write the golden files anew")

func input(major int, parameters dbv1alpha1.Parameters, hba ...string) Input {
	cluster := &dbv1alpha1.PostgresCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "t"}}
	cluster.Spec.Replicas = 3
	cluster.Spec.Storage.Size = "10Gi"
	cluster.Spec.PostgreSQL = dbv1alpha1.PostgreSQLSpec{Parameters: parameters, HBA: hba}
	return Input{
		Cluster: cluster, Instance: "db-primary", Major: major, MemoryBytes: 4 << 30, CPUMillis: 2000,
		Directory: "/controller/configuration", Data: "/pgdata/data", Socket: "/var/run/postgresql", TLS: "/controller/tls", OSUser: "postgres",
	}
}

// TestWhatIsRendered holds the files of each case to what stands in testdata. A
// difference there changes running databases: some parameters restart them.
func TestWhatIsRendered(t *testing.T) {
	unknown := input(15, nil)
	unknown.MemoryBytes, unknown.CPUMillis, unknown.Cluster.Spec.Storage.Size = 0, 0, "256Mi"
	replica := input(15, nil)
	replica.Instance = "db-replica-1"
	foreign := input(15, nil)
	foreign.OSUser = `1000"x`
	for name, in := range map[string]Input{
		"oldest": input(13, nil), "newest": input(18, nil), "nothing-known": unknown, "replica": replica, "odd-user": foreign,
		"user": input(16, dbv1alpha1.Parameters{"shared_buffers": "2GB", "search_path": `"$user", 'it''s'\`, "pg_stat_statements.max": "500"},
			"hostssl app app 10.0.0.0/8 scram-sha-256", "host all all all trust"),
		"stored-before-it-was-refused": input(16, dbv1alpha1.Parameters{"fsync": "off", "work_men": "1GB", "io_method": "worker", "a\nb": "c"},
			"host all all all trust\nhost all all all trust", "include x"),
	} {
		t.Run(name, func(t *testing.T) {
			for file, got := range Render(in) {
				path := filepath.Join("testdata", name, file)
				if *write {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
					require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.Equal(t, string(want), got, "if this is meant: go test ./internal/instance/config -write")
			}
		})
	}
}

func TestRenderingIsStableAndScalingChangesNothing(t *testing.T) {
	in := input(17, dbv1alpha1.Parameters{"a.b": "1", "c.d": "2", "work_mem": "1MB"})
	first := Render(in)
	for replicas := range 10 {
		in.Cluster.Spec.Replicas = int32(replicas + 1)
		assert.Equal(t, first, Render(in))
	}
}

func TestRulesOfReplicationStandBeforeTheUsers(t *testing.T) {
	text := Render(input(17, nil, "hostssl all all all reject"))[FileHBA]
	lines := strings.Split(text, "\n")
	place := func(line string) int {
		for i := range lines {
			if lines[i] == line {
				return i
			}
		}
		require.Fail(t, "missing", line)
		return 0
	}
	user := place("hostssl all all all reject")
	assert.Less(t, place("hostssl replication streaming_replica all cert"), user)
	assert.Less(t, place("host replication streaming_replica all reject"), user)
	assert.Less(t, place("local all postgres peer map=instance"), user)
	assert.Greater(t, place("hostssl all all all scram-sha-256"), user)
}

// TestConnectionStringIsReadAsItWasMeant has another reader of connection strings
// read the one for replicas.
func TestConnectionStringIsReadAsItWasMeant(t *testing.T) {
	in := input(17, nil)
	in.TLS = filepath.Join(t.TempDir(), `it's a \ odd place`)
	read, err := pgx.ParseConfig(strings.Split(PrimaryConnInfo(in, `data'base\ x`), " sslmode=")[0] + " sslmode=disable")
	require.NoError(t, err)
	assert.Equal(t, "db-primary.t.svc", read.Host)
	assert.Equal(t, `data'base\ x`, read.Database)
	assert.Equal(t, "streaming_replica", read.User)
	assert.Equal(t, "db-primary", read.RuntimeParams["application_name"])
}

func FuzzValuesStayInTheirLine(f *testing.F) {
	for _, seed := range []string{"", "a'b", `\`, "'\nport = '1", "\x00", `\'`, "$user"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		plain := strings.Count(Render(input(17, nil))[FileServer], "\n")
		text := Render(input(17, dbv1alpha1.Parameters{"a.b": dbv1alpha1.ParameterValue(value)}))[FileServer]
		if len(postgres.CheckParameters(17, map[string]string{"a.b": value})) > 0 {
			assert.Equal(t, plain, strings.Count(text, "\n"))
			return
		}
		assert.Equal(t, plain+1, strings.Count(text, "\n"))
		assert.Contains(t, text, "\na.b = "+postgres.QuoteConfig(value)+"\n")
	})
}

func TestFilesAreWrittenOnlyWhenTheyDiffer(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "new")
	changed, err := Write(directory, map[string]string{"a": "1", "b": "2"})
	require.NoError(t, err)
	assert.True(t, changed)
	before, err := os.Stat(filepath.Join(directory, "a"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), before.Mode().Perm())
	// What a crash has left half-written is in nobody's way.
	require.NoError(t, os.WriteFile(filepath.Join(directory, "b.new"), []byte("half"), 0o600))
	changed, err = Write(directory, map[string]string{"a": "1", "b": "3"})
	require.NoError(t, err)
	assert.True(t, changed)
	after, err := os.Stat(filepath.Join(directory, "a"))
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "a is the same file")
	changed, err = Write(directory, map[string]string{"a": "1", "b": "3"})
	require.NoError(t, err)
	assert.False(t, changed)
}

func TestAlterSystemCannotSetWhatIsReserved(t *testing.T) {
	data := t.TempDir()
	removed, err := CleanAuto(data)
	require.NoError(t, err, "there is no such file")
	assert.Empty(t, removed)
	path := filepath.Join(data, fileAuto)
	require.NoError(t, os.WriteFile(path, []byte(`# Do not edit this file manually!
# It will be overwritten by the ALTER SYSTEM command.
work_mem = '8MB'
Port = '5433'
primary_conninfo = 'host=elsewhere'
app.port = 'x'
fsync='off'
`), 0o600))
	removed, err = CleanAuto(data)
	require.NoError(t, err)
	assert.Equal(t, []string{"port", "primary_conninfo", "fsync"}, removed)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, `# Do not edit this file manually!
# It will be overwritten by the ALTER SYSTEM command.
work_mem = '8MB'
app.port = 'x'
`, string(text))
	removed, err = CleanAuto(data)
	require.NoError(t, err)
	assert.Empty(t, removed)
}

// TestAWrongValueDoesNotKeepTheServerDown asks a real server about the files.
func TestAWrongValueDoesNotKeepTheServerDown(t *testing.T) {
	server := trial.New(t)
	in := input(server.Major, dbv1alpha1.Parameters{
		"work_mem": "lots", "shared_buffers": "-4", "max_connections": "50", "log_min_duration_statement": "1 fortnight",
		"constraint_exclusion": "perhaps", "some.thing": "is no one's business",
	})
	in.Directory, in.Data = server.Configuration, server.Data
	in.MemoryBytes = 256 << 20
	program := filepath.Join(server.Programs, "postgres")
	removed, err := WriteUsable(t.Context(), in, program, (*exec.Cmd).Run)
	require.NoError(t, err)
	assert.Equal(t, []string{"constraint_exclusion", "log_min_duration_statement", "shared_buffers", "work_mem"}, removed)
	assert.Empty(t, ask(t.Context(), in, program, (*exec.Cmd).Run))
	text, err := os.ReadFile(filepath.Join(server.Configuration, FileServer))
	require.NoError(t, err)
	assert.Contains(t, string(text), "max_connections = '50'")
	assert.Len(t, in.Cluster.Spec.PostgreSQL.Parameters, 6, "the input is not changed")
}

func TestLogicalSlotsAreCopiedToReplicasWherePostgreSQLCan(t *testing.T) {
	for major, copied := range map[int]bool{16: false, 17: true, 18: true} {
		in := Input{Cluster: &dbv1alpha1.PostgresCluster{}, Instance: "db-replica-1", Major: major}
		in.Cluster.Name = "db"
		assert.NotContains(t, Render(in)[FileServer], "sync_replication_slots", "nobody asks for logical decoding")
		in.Cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"wal_level": "logical"}
		assert.Equal(t, copied, strings.Contains(Render(in)[FileServer], "sync_replication_slots = 'on'\n"), "%d", major)
	}
}

func TestWhatCommitsWaitFor(t *testing.T) {
	in := Input{Cluster: &dbv1alpha1.PostgresCluster{}, Instance: "db-primary", Major: 15}
	in.Cluster.Name = "db"
	assert.Contains(t, Render(in)[FileServer], "synchronous_standby_names = ''\n")
	in.Cluster.Status.Synchronous = &dbv1alpha1.SynchronousStatus{Wanted: dbv1alpha1.SynchronousRule{
		Method: dbv1alpha1.SynchronousFirst, Number: 1, Standbys: []string{"db-replica-2", "db-primary", "db-replica-1"}}}
	assert.Contains(t, Render(in)[FileServer], `synchronous_standby_names = 'FIRST 1 ("db-replica-2","db-replica-1")'`)
	in.Cut = true
	assert.Contains(t, Render(in)[FileServer], "primary_conninfo = ''\n")
}

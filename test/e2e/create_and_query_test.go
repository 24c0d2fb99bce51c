//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCreateAndQuery: an application reaches a new cluster through both Services
// with the server verified, and nothing less safe works.
func TestCreateAndQuery(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.20"))
	e.ready("db")
	client := e.client("db")

	_, err := e.query(client, "db-primary", "", "create table t (i int primary key); insert into t select generate_series(1, 100)")
	require.NoError(t, err)
	e.eventually("the rows are on the replicas", func() bool {
		rows, err := e.query(client, "db-replicas", "", "select count(*) from t")
		return err == nil && rows == "100"
	})
	_, err = e.query(client, "db-replicas", "", "insert into t values (101)")
	require.ErrorContains(t, err, "read-only")

	_, err = e.query(client, "db-primary", "sslmode=disable", "select 1")
	assert.ErrorContains(t, err, "pg_hba.conf rejects", "plain text")
	_, err = e.query(client, "db-primary", "password=wrong", "select 1")
	assert.ErrorContains(t, err, "password authentication failed")
	_, err = e.query(client, "db-primary", "sslrootcert=/etc/passwd", "select 1")
	assert.Error(t, err, "another authority")
	_, err = e.query(client, "db-primary", "user=streaming_replica", "select 1")
	assert.Error(t, err, "the replication role needs its certificate")
	_, err = e.query(client, "db-primary", "user=postgres", "select 1")
	assert.Error(t, err, "the superuser has no password")

	assert.Equal(t, "db-replica-1 streaming\ndb-replica-2 streaming",
		e.sql("db-primary-0", "app", "select application_name || ' ' || state from pg_stat_replication order by 1"))
	assert.Equal(t, "db_replica_1 t\ndb_replica_2 t",
		e.sql("db-primary-0", "app", "select slot_name || ' ' || active::char from pg_replication_slots order by 1"))
	assert.Equal(t, "on", e.sql("db-primary-0", "app", "show data_checksums"))

	columns := strings.Fields(strings.Split(e.kubectl("get", "pgc"), "\n")[1])
	assert.Equal(t, []string{"db", "Ready", "3/3", "db-primary", "15.20"}, columns[:5])
	assert.Contains(t, e.kubectl("get", "all"), "postgrescluster.db.my-domain.com/db")
	assert.NotEmpty(t, e.status("db", "primaryHost"))
	assert.Len(t, strings.Split(e.status("db", "replicaHosts[*]"), " "), 2)
}

// TestTheDatabaseIsMadeAsAskedFor: each option of bootstrap.initdb, on volumes that one
// pod alone may use.
func TestTheDatabaseIsMadeAsAskedFor(t *testing.T) {
	e := begin(t)
	e.kubectl("create", "configmap", "schema", "--from-literal=1.sql=create table prices (name text); grant all on prices to keeper;")
	e.kubectl("create", "secret", "generic", "rows", "--from-literal=2.sql=insert into prices values ('bread');")
	e.apply(strings.Replace(cluster("shop", 2, "15.20",
		"bootstrap:",
		"  initdb:",
		"    {database: store, owner: keeper, encoding: UTF8, localeProvider: icu, locale: de, dataChecksums: false,",
		"     postInitSQL: [{configMapKeyRef: {name: schema, key: 1.sql}}, {secretKeyRef: {name: rows, key: 2.sql}}]}"),
		"    storageClassName:", "    accessMode: ReadWriteOncePod\n    storageClassName:", 1))
	e.ready("shop")
	client := e.client("shop")
	answer, err := e.query(client, "shop-primary", "", "select current_user || ' ' || current_database() || ' ' || string_agg(name, ',') from prices")
	require.NoError(t, err)
	assert.Equal(t, "keeper store bread", answer)
	assert.Equal(t, "keeper i de UTF8", e.sql("shop-primary-0", "store",
		"select pg_get_userbyid(datdba) || ' ' || datlocprovider::text || ' ' || daticulocale || ' ' || pg_encoding_to_char(encoding) from pg_database where datname = current_database()"))
	assert.Equal(t, "off", e.sql("shop-primary-0", "store", "show data_checksums"))
	assert.Equal(t, "ReadWriteOncePod ReadWriteOncePod", e.kubectl("get", "pvc", "--output", "jsonpath={.items[*].status.accessModes[0]}"))
	e.eventually("the rows are on the replica", func() bool {
		rows, err := e.query(client, "shop-replicas", "", "select name from prices")
		return err == nil && rows == "bread"
	})
}

//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writer inserts numbers through the read-write Service, one connection each,
// and prints each one that was acknowledged.
const writer = `export PGPASSWORD=$(cat /db/password) PGUSER=$(cat /db/username) PGDATABASE=$(cat /db/dbname) PGCONNECT_TIMEOUT=2
i=0
while [ ! -e /tmp/stop ]; do
  i=$((i + 1))
  psql -Xqc "insert into acknowledged values ($i)" "host=$1 sslmode=verify-full sslrootcert=/db/ca.crt" >/dev/null 2>&1 && echo $i >>/tmp/acknowledged
done
touch /tmp/stopped`

func (e *environment) startWriter(client, cluster string) {
	e.Helper()
	e.kubectl("exec", client, "--", "bash", "-c", `printf '%s' "$1" >/tmp/writer; nohup bash /tmp/writer "$2" >/dev/null 2>&1 &`, "start",
		writer, fmt.Sprintf("%s-primary.%s.svc", cluster, e.namespace))
}

// acknowledged is how many rows the writer was told are safe.
func (e *environment) acknowledged(client string) int {
	e.Helper()
	count, err := strconv.Atoi(e.kubectl("exec", client, "--", "bash", "-c", "cat /tmp/acknowledged 2>/dev/null | wc -l"))
	require.NoError(e, err)
	return count
}

// stopWriter stops it and checks that every acknowledged row is there.
func (e *environment) stopWriter(client, pod string) {
	e.Helper()
	e.kubectl("exec", client, "--", "touch", "/tmp/stop")
	e.eventually("the writer has stopped", func() bool {
		_, err := e.try("", "exec", client, "--", "test", "-e", "/tmp/stopped")
		return err == nil
	})
	stored := map[string]bool{}
	for _, row := range strings.Fields(e.sql(pod, "app", "select i from acknowledged")) {
		stored[row] = true
	}
	lost := 0
	for _, row := range strings.Fields(e.kubectl("exec", client, "--", "cat", "/tmp/acknowledged")) {
		if !stored[row] {
			lost++
		}
	}
	assert.Zero(e, lost, "acknowledged rows lost of %d", len(stored))
}

func (e *environment) writesGoOn(client string) {
	e.Helper()
	before := e.acknowledged(client)
	e.eventually("writes are acknowledged", func() bool { return e.acknowledged(client) > before+5 })
}

// TestAPrimaryThatCrashesOrIsDeleted: the postmaster is killed -9, and comes back in
// place; the pod is deleted, and a replica takes over; a replica's pod is deleted. All
// under a writer, and no acknowledged row is lost.
func TestAPrimaryThatCrashesOrIsDeleted(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.ready("db")
	client := e.client("db")
	e.sql("db-primary-0", "app", "create table acknowledged (i int primary key); grant all on acknowledged to app")
	e.startWriter(client, "db")
	e.writesGoOn(client)

	e.kubectl("exec", "db-primary-0", "--", "bash", "-c", "kill -9 $(head -1 $PGDATA/postmaster.pid)")
	e.writesGoOn(client)
	assert.Equal(t, "0", e.kubectl("get", "pod", "db-primary-0", "--output", "jsonpath={.status.containerStatuses[0].restartCount}"),
		"PostgreSQL is restarted in the container")
	assert.Equal(t, "db-primary", e.status("db", "currentPrimary"), "what comes back at once stays the primary")

	e.kubectl("delete", "pod", "db-primary-0", "--wait=false")
	e.eventually("the replica has taken over", func() bool { return e.status("db", "currentPrimary") == "db-replica-1" })
	e.writesGoOn(client)
	e.streams("db", "db-primary")

	e.kubectl("delete", "pod", "db-primary-0", "--wait=false")
	e.writesGoOn(client)
	e.streams("db", "db-primary")
	e.ready("db")
	e.stopWriter(client, e.primaryPod("db"))
	e.eventually("the replica has every row", func() bool {
		here := e.sql(e.primaryPod("db"), "app", "select count(*) from acknowledged")
		there, err := e.trySQL("db-primary-0", "app", "select count(*) from acknowledged")
		return err == nil && here == there
	})
}

// primaryPod is the pod that the read-write Service leads to.
func (e *environment) primaryPod(cluster string) string {
	e.Helper()
	var name string
	e.eventually("there is a primary", func() bool {
		name = e.kubectl("get", "pods", "--selector", "cluster="+cluster+",db.my-domain.com/role=primary", "--output", "jsonpath={.items[*].metadata.name}")
		return name != "" && !strings.Contains(name, " ")
	})
	return name
}

// streams waits until an instance streams from the primary.
func (e *environment) streams(cluster, instance string) {
	e.Helper()
	e.eventually(instance+" streams", func() bool {
		state, err := e.trySQL(e.primaryPod(cluster), "app", "select state from pg_stat_replication where application_name = '"+instance+"'")
		return err == nil && state == "streaming"
	})
}

// TestLostVolumeIsNeverReplacedByAnEmptyDatabase: the primary of a cluster that
// was initialised finds an empty volume, and says so.
func TestLostVolumeIsNeverReplacedByAnEmptyDatabase(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 1, "15.20"))
	e.ready("db")
	e.kubectl("delete", "pvc", "db-primary-data", "--wait=false")
	e.kubectl("delete", "pod", "db-primary-0", "--wait=false")
	e.eventually("the condition says so", func() bool { return e.condition("db", "Degraded", "reason") == "DataMissing" })
	time.Sleep(3 * time.Second) // and it stays so
	assert.Equal(t, "DataMissing", e.condition("db", "Degraded", "reason"))
	assert.Equal(t, "Failed", e.status("db", "phase"))
}

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

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

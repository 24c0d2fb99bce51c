//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAMinorUpdate: replicas first, the primary after it has moved, on live load; a
// version that does not exist stops at the first replica, and is taken back; and back
// to the earlier minor it goes in the same way.
func TestAMinorUpdate(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 3, "15.18"))
	e.settled("db")
	w := e.writes("db")
	set := func(version string) {
		t.Helper()
		e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"postgresVersion":"`+version+`"}}`)
	}
	becomes := func(version string) {
		t.Helper()
		set(version)
		for _, instance := range []string{"db-replica-2", "db-replica-1", "db-primary"} {
			e.eventually(instance+" runs "+version, func() bool {
				pod, err := e.try("", "get", "pods", "--selector", "db.my-domain.com/instance="+instance, "--field-selector", "status.phase=Running", "--output", "jsonpath={.items[0].metadata.name}")
				if err != nil {
					return false
				}
				found, err := e.trySQL(pod, "app", "select split_part(current_setting('server_version'), ' ', 1)")
				return err == nil && found == version
			})
		}
		e.settled("db")
		w.goesOn()
	}
	becomes("15.20")
	assert.Equal(t, "Update Switchover Promoted", e.kubectl("get", "postgrescluster", "db", "--output",
		`jsonpath={.status.lastPrimaryChange.reason} {.status.lastPrimaryChange.type} {.status.lastPrimaryChange.result}`))

	set("15.99")
	e.eventually("the condition names the image", func() bool { return e.condition("db", "Degraded", "reason") == "ImageUnavailable" })
	e.eventually("one instance has it", func() bool {
		return e.kubectl("get", "pods", "--selector", "cluster=db", "--output", `jsonpath={.items[?(@.spec.containers[0].image=="docker.io/library/postgres:15.99")].metadata.name}`) != ""
	})
	w.goesOn()
	set("15.20")
	e.settled("db")
	e.ready("db")

	primary := e.status("db", "currentPrimary")
	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"update":{"primary":"Restart"}}}`)
	becomes("15.18")
	assert.Equal(t, primary, e.status("db", "currentPrimary"), "it is restarted where it is")
	w.nothingLost()
}

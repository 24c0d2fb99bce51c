//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEachMajor: a primary and a replica of each supported major that there is an
// image of.
func TestEachMajor(t *testing.T) {
	for _, version := range []string{"13.23", "15.18", "17.12", "18.6"} {
		t.Run(version, func(t *testing.T) {
			e := begin(t)
			e.apply(cluster("db", 2, version))
			e.ready("db")
			assert.True(t, strings.HasPrefix(e.sql("db-primary-0", "app", "show server_version"), version))
			e.sql("db-primary-0", "app", "create table t as select 1 as i")
			replica := e.replicaPod("db", 1)
			e.eventually("the row is on the replica", func() bool {
				rows, err := e.trySQL(replica, "app", "select count(*) from t")
				return err == nil && rows == "1"
			})
		})
	}
}

// TestImageOfAnotherLayout: binaries elsewhere than in Debian's place, and a user
// id that no image knows, as on OpenShift.
func TestImageOfAnotherLayout(t *testing.T) {
	for name, image := range map[string]string{
		"rhel": "docker.io/test/postgres-rhel-layout:17.12", "alpine": "docker.io/test/postgres-alpine-layout:17.12",
	} {
		t.Run(name, func(t *testing.T) {
			e := begin(t)
			e.apply(cluster("db", 1, "17.12", "image: "+image,
				"securityContext: {runAsUser: 1000680000, runAsGroup: 1000680000, fsGroup: 1000680000}"))
			e.ready("db")
			assert.Equal(t, "1000680000", e.kubectl("exec", "db-primary-0", "--", "id", "-u"))
		})
	}
}

// TestWrongMajorInTheImage is refused with both versions named, and heals.
func TestWrongMajorInTheImage(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 1, "15.20", "image: docker.io/library/postgres:17.12"))
	e.eventually("the condition says so", func() bool { return e.condition("db", "Degraded", "reason") == "WrongVersion" })
	message := e.condition("db", "Degraded", "message")
	assert.Contains(t, message, "PostgreSQL 15")
	assert.Contains(t, message, "17.12")
	assert.Equal(t, "Failed", e.status("db", "phase"))
	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"image":null}}`)
	e.ready("db")
}

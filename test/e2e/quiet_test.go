//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestSettledClustersAreLeftAlone: for a minute nothing of them is written, and
// what somebody changes is repaired.
func TestSettledClustersAreLeftAlone(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.apply(cluster("other", 3, "17.12"))
	e.apply(cluster("single", 1, "15.20"))
	for _, name := range []string{"db", "other", "single"} {
		e.ready(name)
	}
	versions := func() string {
		return e.kubectl("get", "postgresclusters,statefulsets,deployments,pods,pvc,secrets,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets",
			"--output", `jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion}{"\n"}{end}`)
	}
	e.eventually("everything has settled", func() bool {
		before := versions()
		time.Sleep(5 * time.Second)
		return before == versions()
	})
	before := versions()
	e.kubectl("annotate", "postgrescluster", "db", "example.test/touch=1")
	e.kubectl("annotate", "postgrescluster", "db", "example.test/touch-")
	settled := e.kubectl("get", "postgrescluster", "db", "--output", "jsonpath={.metadata.resourceVersion}")
	time.Sleep(time.Minute)
	assert.Equal(t, settled, e.kubectl("get", "postgrescluster", "db", "--output", "jsonpath={.metadata.resourceVersion}"))
	after := versions()
	assert.Equal(t, withoutFirstLine(before), withoutFirstLine(after))

	e.kubectl("delete", "service", "db-primary")
	e.kubectl("patch", "service", "db-replicas", "--type=merge", "--patch", `{"spec":{"selector":{"db.my-domain.com/role":"nobody"}}}`)
	e.kubectl("label", "pod", "db-primary-0", "db.my-domain.com/role=replica", "--overwrite")
	e.kubectl("delete", "secret", "db-app", "db-server")
	e.eventually("all of it is repaired", func() bool {
		_, err := e.try("", "get", "service", "db-primary")
		return err == nil &&
			e.kubectl("get", "service", "db-replicas", "--output", `jsonpath={.spec.selector.db\.my-domain\.com/role}`) == "replica" &&
			e.kubectl("get", "pod", "db-primary-0", "--output", `jsonpath={.metadata.labels.db\.my-domain\.com/role}`) == "primary"
	})
	e.ready("db")
	// The password in the new Secret becomes the one of the role.
	client := e.client("db")
	e.eventually("the new credentials work", func() bool {
		answer, err := e.query(client, "db-primary", "", "select current_user")
		return err == nil && answer == "app"
	})
}

func withoutFirstLine(text string) string {
	for i, r := range text {
		if r == '\n' {
			return text[i+1:]
		}
	}
	return text
}

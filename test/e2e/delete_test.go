//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// leftovers are the objects of a cluster that still exist, of every kind that
// can hold a label, and its volumes.
func (e *environment) leftovers(name string) string {
	kinds := strings.ReplaceAll(e.kubectl("api-resources", "--verbs=list", "--namespaced", "--output=name"), "\n", ",")
	// Events tell what has been.
	kinds = strings.ReplaceAll(strings.ReplaceAll(kinds, "events.events.k8s.io,", ""), "events,", "")
	output, err := e.try("", "get", kinds, "--selector", "cluster="+name, "--output", "name", "--ignore-not-found")
	if err != nil {
		return err.Error()
	}
	volumes := e.kubectl("get", "persistentvolumes", "--output", `jsonpath={range .items[*]}{.spec.claimRef.namespace}/{.spec.claimRef.name} {end}`)
	for _, claim := range strings.Fields(volumes) {
		if strings.HasPrefix(claim, e.namespace+"/"+name+"-") {
			output += " volume of " + claim
		}
	}
	return output
}

// TestDeleteLeavesNothing: everything is removed, a cluster that is still being
// made included, and a new cluster of the same name starts empty.
func TestDeleteLeavesNothing(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.ready("db")
	e.sql("db-primary-0", "app", "create table old (i int)")
	password := e.kubectl("get", "secret", "db-app", "--output", "jsonpath={.data.password}")
	e.kubectlFor(patience, "delete", "postgrescluster", "db", "--timeout="+patience.String())
	e.eventually("nothing is left", func() bool { return e.leftovers("db") == "" })

	e.apply(cluster("db", 1, "15.20"))
	e.ready("db")
	assert.Equal(t, "0", e.sql("db-primary-0", "app", "select count(*) from pg_class where relname = 'old'"))
	assert.NotEqual(t, password, e.kubectl("get", "secret", "db-app", "--output", "jsonpath={.data.password}"))

	e.apply(cluster("young", 3, "15.20"))
	e.eventually("it is being made", func() bool { return e.kubectl("get", "pods", "--selector", "cluster=young", "--output", "name") != "" })
	e.kubectlFor(patience, "delete", "postgrescluster", "young", "--timeout="+patience.String())
	e.eventually("nothing is left", func() bool { return e.leftovers("young") == "" })
}

// TestDeletionWaitsForForeignFinalizers and says for whose.
func TestDeletionWaitsForForeignFinalizers(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 1, "15.20"))
	e.ready("db")
	e.kubectl("patch", "pvc", "db-primary-data", "--type=merge", "--patch", `{"metadata":{"finalizers":["example.test/hold","kubernetes.io/pvc-protection"]}}`)
	e.kubectl("delete", "postgrescluster", "db", "--wait=false")
	e.eventually("the condition names the holder", func() bool {
		return strings.Contains(e.condition("db", "Progressing", "message"), "example.test/hold")
	})
	assert.Empty(t, e.kubectl("get", "pods", "--selector", "cluster=db", "--output", "name"), "pods end before volumes go")
	e.kubectl("patch", "pvc", "db-primary-data", "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	e.eventually("nothing is left", func() bool { return e.leftovers("db") == "" })
}

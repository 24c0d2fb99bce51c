//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClustersDoNotMix: two in one namespace, one of the same name in another.
func TestClustersDoNotMix(t *testing.T) {
	e := begin(t)
	other := &environment{T: t, namespace: e.namespace + "-b"}
	other.kubectl("create", "namespace", other.namespace)
	t.Cleanup(other.remove)
	e.apply(cluster("db", 1, "15.20"))
	e.apply(cluster("db2", 1, "15.20"))
	other.apply(cluster("db", 1, "15.20"))
	for _, check := range []struct {
		in   *environment
		name string
	}{{e, "db"}, {e, "db2"}, {other, "db"}} {
		check.in.ready(check.name)
		check.in.sql(check.name+"-primary-0", "app", "create table here as select '"+check.in.namespace+"/"+check.name+"' as id")
	}
	client := e.client("db")
	for _, name := range []string{"db", "db2"} {
		assert.Equal(t, e.namespace+"/"+name, e.sql(name+"-primary-0", "app", "select id from here"))
	}
	_, err := e.query(client, "db-primary", "", "select 1")
	require.NoError(t, err)
	_, err = e.query(client, "db2-primary", "", "select 1")
	assert.ErrorContains(t, err, "certificate", "each cluster has an authority of its own")
	_, err = e.query(client, "db2-primary", "sslmode=require sslrootcert=/none", "select 1")
	assert.ErrorContains(t, err, "password authentication failed", "and a password of its own")
}

// TestSecretsStayInSecrets: the password is in no log, object, argument or event.
func TestSecretsStayInSecrets(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 1, "15.20", `postgresql: {parameters: {log_statement: all}}`))
	e.ready("db")
	password := e.kubectl("get", "secret", "db-app", "--template", "{{.data.password | base64decode}}")
	require.Len(t, password, 32)
	e.kubectl("delete", "pod", "db-primary-0")
	e.eventually("the pod serves again", func() bool {
		_, err := e.trySQL("db-primary-0", "app", "select 1")
		return err == nil
	})
	e.ready("db")
	for _, arguments := range [][]string{
		{"get", "pods,statefulsets,configmaps,events,postgresclusters,leases", "--output", "yaml"},
		{"logs", "db-primary-0", "--all-containers"},
		{"logs", "--namespace", "postgres-operator-system", "--selector", "control-plane=controller-manager", "--tail", "-1"},
		{"exec", "db-primary-0", "--", "bash", "-c", "cat /proc/[0-9]*/cmdline /controller/configuration/*.conf | tr '\\0' ' '"},
	} {
		assert.NotContains(t, e.kubectl(arguments...), password, strings.Join(arguments, " "))
	}
}

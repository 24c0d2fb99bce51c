package config

import (
	"testing"

	"github.com/stretchr/testify/assert"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

func TestAReplicaIsNotBelowItsPrimary(t *testing.T) {
	in := Input{Cluster: &dbv1alpha1.PostgresCluster{}, Instance: "db-replica-1", Major: 17,
		AtLeast: map[string]int64{"max_connections": 200, "max_worker_processes": 4, "max_prepared_transactions": 20, "max_locks_per_transaction": 64}}
	in.Cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"max_connections": "150", "max_worker_processes": "16"}
	assert.Equal(t, []string{"max_connections", "max_prepared_transactions"}, Held(in), "the second is 0 unless it is set")
	rendered := Render(in)[FileServer]
	assert.Contains(t, rendered, "max_connections = '200'\n")
	assert.Contains(t, rendered, "max_prepared_transactions = '20'\n")
	assert.Contains(t, rendered, "max_worker_processes = '16'\n")
	in.AtLeast = nil
	assert.Empty(t, Held(in))
	assert.Contains(t, Render(in)[FileServer], "max_connections = '150'\n")
}

//go:build envtest

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

func TestACreatedClusterGetsAllItsObjectsAndBecomesReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := startOperator(t, w)
	w.create(t, 3)
	cluster := w.awaitReady(t)
	assert.Equal(t, []string{
		"v1.Deployment db-replica-1", "v1.Deployment db-replica-2", "v1.Lease db-primary", "v1.NetworkPolicy db",
		"v1.PersistentVolumeClaim db-primary-data", "v1.PersistentVolumeClaim db-replica-1-data", "v1.PersistentVolumeClaim db-replica-2-data",
		"v1.PodDisruptionBudget db", "v1.Role db-instance", "v1.RoleBinding db-instance",
		"v1.Secret db-app", "v1.Secret db-ca", "v1.Secret db-replication", "v1.Secret db-server",
		"v1.Service db-pods", "v1.Service db-primary", "v1.Service db-replicas",
		"v1.ServiceAccount db-instance", "v1.StatefulSet db-primary",
	}, w.names(t))
	for name, child := range w.children(t) {
		assert.True(t, metav1.IsControlledBy(child, cluster), name)
		assert.Equal(t, "db", child.GetLabels()["cluster"], name)
	}
	assert.Equal(t, "3/3", cluster.Status.Ready)
	assert.Equal(t, "db-primary", cluster.Status.CurrentPrimary)
	assert.NotEmpty(t, cluster.Status.PrimaryHost)
	assert.Len(t, cluster.Status.ReplicaHosts, 2)

	settled := time.Now().Add(2 * time.Second)
	pause(time.Until(settled))
	before := w.versions(t)
	pause(30 * time.Second)
	assert.Empty(t, o.Writes(settled), "a settled cluster causes no write")
	assert.Equal(t, before, w.versions(t))
}

func TestTouchesAndOtherSpellingsChangeNothingBelow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := startOperator(t, w)
	w.create(t, 2)
	w.awaitReady(t)
	settled := time.Now().Add(2 * time.Second)
	pause(time.Until(settled))
	before := w.versions(t)
	for range 20 {
		require.NoError(t, w.change(t, `{"metadata":{"annotations":{"example.test/touched":"`+time.Now().String()+`"}}}`))
	}
	pause(3 * time.Second)
	assert.Empty(t, o.Writes(settled))
	require.NoError(t, w.change(t, `{"spec":{"storage":{"size":"1024Mi"}}}`))
	w.awaitReady(t)
	assert.Equal(t, before, w.versions(t))
	for _, made := range o.Writes(settled) {
		assert.True(t, made.event() || made.resource == "postgresclusters/status", made.String())
	}
}

func TestAForbiddenEditIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	startOperator(t, w)
	w.create(t, 1, func(c *dbv1alpha1.PostgresCluster) { c.Spec.Storage.Size = "2Gi" })
	w.awaitReady(t)
	err := w.change(t, `{"spec":{"replicas":2,"storage":{"size":"1Gi"}}}`)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "spec.storage")
	require.NoError(t, w.change(t, `{"spec":{"replicas":2}}`))
	assert.Contains(t, w.awaitReady(t).Status.InstanceNames, "db-replica-1")
}

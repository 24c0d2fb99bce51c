package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
)

// Reads go to the cache, which needs list and watch, and get for the one live
// look before an object is made.
//
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// observe reads everything that decisions need, once, with one reading of the
// clock.
func (r *PostgresClusterReconciler) observe(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) (*state.Snapshot, error) {
	var (
		sets        appsv1.StatefulSetList
		deployments appsv1.DeploymentList
		pods        corev1.PodList
		claims      corev1.PersistentVolumeClaimList
		secrets     corev1.SecretList
	)
	for _, list := range []client.ObjectList{&sets, &deployments, &pods, &claims, &secrets} {
		if err := r.List(ctx, list, client.InNamespace(cluster.Namespace),
			client.MatchingLabels{naming.LabelCluster: cluster.Name}); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return state.New(state.Observed{
		Now: r.Now(), Cluster: cluster,
		StatefulSets: sets.Items, Deployments: deployments.Items, Pods: pods.Items,
		Claims: claims.Items, Secrets: secrets.Items,
		Reports: r.Reports.Reports(client.ObjectKeyFromObject(cluster)),
	}), nil
}

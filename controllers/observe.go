package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	name := client.ObjectKeyFromObject(cluster)
	lease, err := r.observeLease(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return state.New(state.Observed{
		Now: r.Now(), Cluster: cluster, Lease: lease, Cordoned: r.observeNodes(ctx, cluster, pods.Items),
		StatefulSets: sets.Items, Deployments: deployments.Items, Pods: pods.Items,
		Claims: claims.Items, Secrets: secrets.Items,
		Reports: r.Reports.Reports(name),
	}), nil
}

// A new primary is rather not put on a node that is about to be emptied. Where the
// operator may not read nodes, that is not known, and does not matter.
//
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get

// observeNodes finds the cordoned nodes, live, and only while another primary is
// about to be chosen: no node is watched.
func (r *PostgresClusterReconciler) observeNodes(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, pods []corev1.Pod) map[string]bool {
	change := cluster.Status.PrimaryChange
	choosing := change != nil && change.To == ""
	_, requested := cluster.Annotations[naming.AnnotationSwitchover]
	for i := range pods {
		if pods[i].Labels[naming.LabelInstance] == cluster.Status.TargetPrimary && pods[i].DeletionTimestamp != nil {
			choosing = true
		}
	}
	if !choosing && !requested {
		return nil
	}
	cordoned := map[string]bool{}
	for i := range pods {
		node := &corev1.Node{}
		if name := pods[i].Spec.NodeName; name != "" && r.Live.Get(ctx, types.NamespacedName{Name: name}, node) == nil {
			cordoned[name] = node.Spec.Unschedulable
		}
	}
	return cordoned
}

// observeLease is the Lease as the watch has shown it. One that seems to have
// expired is read once more from the API server: after a time in which the operator
// itself was cut off, the watch is behind, and the primary may have renewed all the
// while.
func (r *PostgresClusterReconciler) observeLease(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) (state.Lease, error) {
	name := client.ObjectKeyFromObject(cluster)
	known := r.Leases.Lease(name)
	if !known.Expired(r.Now()) || len(cluster.Status.InstanceNames) < 2 {
		return known, nil
	}
	lease := &coordinationv1.Lease{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: naming.PrimaryLease(name.Name)}, lease)
	if apierrors.IsNotFound(err) {
		return state.Lease{}, nil
	}
	if err != nil {
		return state.Lease{}, fmt.Errorf("read the Lease: %w", err)
	}
	r.Leases.OnAdd(lease, false)
	return r.Leases.Lease(name), nil
}

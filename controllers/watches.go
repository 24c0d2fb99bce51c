package controllers

import (
	"context"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// SetupWithManager sets up the watches. A filter over all of them
// (GenerationChangedPredicate) would hide that a child became ready, since
// readiness changes no generation; so each kind has its own.
func (r *PostgresClusterReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&dbv1alpha1.PostgresCluster{}, builder.WithPredicates(clusterChanged)).
		Owns(&appsv1.StatefulSet{}, builder.WithPredicates(childChanged)).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(childChanged)).
		Owns(&corev1.PersistentVolumeClaim{}, builder.WithPredicates(childChanged)).
		Owns(&corev1.Secret{}, builder.WithPredicates(childChanged)).
		Owns(&corev1.Service{}, builder.WithPredicates(childChanged)).
		Owns(&corev1.ServiceAccount{}, builder.WithPredicates(childChanged)).
		Owns(&rbacv1.Role{}, builder.WithPredicates(childChanged)).
		Owns(&rbacv1.RoleBinding{}, builder.WithPredicates(childChanged)).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(specChanged)).
		Owns(&networkingv1.NetworkPolicy{}, builder.WithPredicates(childChanged)).
		// The instances renew the Lease every few seconds; its metadata is ours.
		Owns(&coordinationv1.Lease{}, builder.WithPredicates(specChanged)).
		// Pods are owned by the workloads, so they are found by label.
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(clusterOfPod), builder.WithPredicates(podChanged)).
		// Reports come from the instances themselves, not from the API server.
		WatchesRawSource(source.TypedChannel(r.Leases.Events(), &handler.TypedEnqueueRequestForObject[*dbv1alpha1.PostgresCluster]{})).
		WatchesRawSource(source.TypedChannel(r.Reports.Events(), &handler.TypedEnqueueRequestForObject[*dbv1alpha1.PostgresCluster]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.Workers}).
		Complete(r)
}

func clusterOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[naming.LabelCluster]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// clusterChanged: what a person or a controller asks for. Status is our own.
var clusterChanged = updates(func(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!reflect.DeepEqual(before.GetFinalizers(), after.GetFinalizers())
})

// childChanged: anything but a repetition.
var childChanged = updates(func(before, after client.Object) bool {
	return before.GetResourceVersion() != after.GetResourceVersion()
})

// specChanged: metadata that is ours. For kinds whose status or spec moves by
// itself and is of no interest here.
var specChanged = updates(func(before, after client.Object) bool {
	_, isLease := after.(*coordinationv1.Lease) // a Lease has no generation, its spec is the instances'
	return (!isLease && before.GetGeneration() != after.GetGeneration()) ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
})

// podChanged: labels, deletion and the parts of the status that decisions read.
var podChanged = updates(func(before, after client.Object) bool {
	old, okOld := before.(*corev1.Pod)
	pod, okNew := after.(*corev1.Pod)
	return !okOld || !okNew ||
		!old.DeletionTimestamp.Equal(pod.DeletionTimestamp) ||
		!maps.Equal(old.Labels, pod.Labels) ||
		old.Status.Phase != pod.Status.Phase || old.Status.PodIP != pod.Status.PodIP ||
		!reflect.DeepEqual(old.Status.Conditions, pod.Status.Conditions) ||
		!reflect.DeepEqual(old.Status.ContainerStatuses, pod.Status.ContainerStatuses) ||
		!reflect.DeepEqual(old.Status.InitContainerStatuses, pod.Status.InitContainerStatuses)
})

// updates filters updates; creations and deletions always pass.
func updates(changed func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld != nil && e.ObjectNew != nil && changed(e.ObjectOld, e.ObjectNew)
	}}
}

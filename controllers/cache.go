package controllers

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// cacheOptions make the cache hold only objects with our label: other people's
// Secrets and pods never reach the operator's memory.
func cacheOptions(namespaces []string) cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{naming.LabelManagedBy: naming.ManagedBy})}
	options := cache.Options{
		DefaultTransform: dropManagedFields,
		ByObject: map[client.Object]cache.ByObject{
			&dbv1alpha1.PostgresCluster{}: {},
			&corev1.Pod{}:                 {Label: ours.Label, Transform: slimPod},
		},
	}
	for _, kind := range []client.Object{
		&appsv1.StatefulSet{}, &appsv1.Deployment{}, &corev1.PersistentVolumeClaim{}, &corev1.Secret{},
		&corev1.Service{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &coordinationv1.Lease{},
	} {
		options.ByObject[kind] = ours
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// dropManagedFields drops what we never read and what is a good part of an
// object.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// slimPod keeps of a pod's spec where it runs and the images it asks for. The
// rest is the template's, which the workload holds.
func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields = nil
	slim := corev1.PodSpec{NodeName: pod.Spec.NodeName}
	for _, container := range pod.Spec.InitContainers {
		slim.InitContainers = append(slim.InitContainers, corev1.Container{Name: container.Name, Image: container.Image})
	}
	for _, container := range pod.Spec.Containers {
		slim.Containers = append(slim.Containers, corev1.Container{Name: container.Name, Image: container.Image})
	}
	pod.Spec = slim
	return pod, nil
}

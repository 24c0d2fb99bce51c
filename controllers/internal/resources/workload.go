package resources

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// Workload is what the workload of an instance depends on.
type Workload struct {
	Cluster  *dbv1alpha1.PostgresCluster
	Instance string
	// Image holds PostgreSQL.
	Image string
	// ManagerImage is the operator's, from which the init container copies the
	// instance manager.
	ManagerImage      string
	ManagerPullPolicy corev1.PullPolicy
	// PlatformAssignsIDs: the platform chooses user and group ids (OpenShift).
	PlatformAssignsIDs bool
}

// keepRevisions of a template: nobody rolls back by them, the spec is the truth.
const keepRevisions = 2

// StatefulSet is the home of the primary: one pod at most, ever. Its pod is
// replaced by the operator alone (OnDelete).
func StatefulSet(w Workload) *appsv1.StatefulSet {
	meta := owned(w.Cluster, w.Instance)
	meta.Labels = instanceLabels(w.Cluster, w.Instance)
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			Replicas:             ptr.To[int32](1),
			ServiceName:          naming.PodsService(w.Cluster.Name),
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit: ptr.To[int32](keepRevisions),
			Selector:             &metav1.LabelSelector{MatchLabels: podSelector(w.Cluster, w.Instance)},
			Template:             podTemplate(w),
		},
	}
}

// Deployment is one replica. Recreate: two pods must not use one volume.
func Deployment(w Workload) *appsv1.Deployment {
	meta := owned(w.Cluster, w.Instance)
	meta.Labels = instanceLabels(w.Cluster, w.Instance)
	template := podTemplate(w)
	template.Spec.Hostname = naming.InstanceHostname(w.Cluster.Name, w.Instance)
	template.Spec.Subdomain = naming.PodsService(w.Cluster.Name)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             ptr.To[int32](1),
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			RevisionHistoryLimit: ptr.To[int32](keepRevisions),
			Selector:             &metav1.LabelSelector{MatchLabels: podSelector(w.Cluster, w.Instance)},
			Template:             template,
		},
	}
}

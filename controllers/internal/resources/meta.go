package resources

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// OwnerReference makes an object belong to the cluster: it goes with it, and its
// changes are noticed.
func OwnerReference(cluster *dbv1alpha1.PostgresCluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         dbv1alpha1.GroupVersion.String(),
		Kind:               "PostgresCluster",
		Name:               cluster.Name,
		UID:                cluster.UID,
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(true),
	}
}

// owned is the metadata of an object of the cluster.
func owned(cluster *dbv1alpha1.PostgresCluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       cluster.Namespace,
		Labels:          clusterLabels(cluster),
		OwnerReferences: []metav1.OwnerReference{OwnerReference(cluster)},
	}
}

func clusterLabels(cluster *dbv1alpha1.PostgresCluster) map[string]string {
	return map[string]string{
		naming.LabelCluster:   cluster.Name,
		naming.LabelManagedBy: naming.ManagedBy,
		naming.LabelName:      naming.AppName,
	}
}

func instanceLabels(cluster *dbv1alpha1.PostgresCluster, instance string) map[string]string {
	labels := clusterLabels(cluster)
	labels[naming.LabelInstance] = instance
	return labels
}

// podSelector are the labels by which a workload finds its pods. They never
// change: a selector cannot.
func podSelector(cluster *dbv1alpha1.PostgresCluster, instance string) map[string]string {
	return map[string]string{naming.LabelCluster: cluster.Name, naming.LabelApp: instance}
}

// podLabels are the user's labels and, over them, ours.
func podLabels(cluster *dbv1alpha1.PostgresCluster, instance string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, cluster.Spec.PodMetadata.Labels.Strings())
	maps.Copy(labels, instanceLabels(cluster, instance))
	maps.Copy(labels, podSelector(cluster, instance))
	return labels
}

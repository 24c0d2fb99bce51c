package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// DataClaim is the volume of an instance. The existing claim, if any, keeps what
// no claim can change: its class and access modes, and a size that is larger than
// the spec's (which admission refuses to shrink).
//
// The class is always set: "" asks for no class, which is not the same as unset.
func DataClaim(cluster *dbv1alpha1.PostgresCluster, instance string, existing *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	size, err := resource.ParseQuantity(cluster.Spec.Storage.Size)
	if err != nil {
		size = resource.Quantity{} // validated before; a claim without a size is refused
	}
	class := cluster.Spec.Storage.StorageClassName
	mode := cluster.Spec.Storage.AccessMode
	if mode == "" {
		mode = corev1.ReadWriteOnce // stored before there was a choice
	}
	modes := []corev1.PersistentVolumeAccessMode{mode}
	if existing != nil {
		modes = existing.Spec.AccessModes
		if existing.Spec.StorageClassName != nil {
			class = *existing.Spec.StorageClassName
		}
		if current := existing.Spec.Resources.Requests[corev1.ResourceStorage]; current.Cmp(size) > 0 {
			size = current
		}
	}
	meta := owned(cluster, naming.DataClaim(instance))
	meta.Labels = instanceLabels(cluster, instance)
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: meta,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      modes,
			StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}
}

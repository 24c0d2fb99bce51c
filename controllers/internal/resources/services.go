package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// PrimaryService is read-write: it follows the role label, not a workload, and not
// whether the pod is ready. The label says who the primary is; one that is started
// again takes connections a second before the kubelet and kube-proxy know that.
func PrimaryService(cluster *dbv1alpha1.PostgresCluster) *corev1.Service {
	service := roleService(cluster, naming.PrimaryService(cluster.Name), naming.RolePrimary)
	service.Spec.PublishNotReadyAddresses = true
	return service
}

// ReplicasService is read-only.
func ReplicasService(cluster *dbv1alpha1.PostgresCluster) *corev1.Service {
	return roleService(cluster, naming.ReplicasService(cluster.Name), naming.RoleReplica)
}

// PodsService gives each instance its DNS name, whether it is ready or not.
func PodsService(cluster *dbv1alpha1.PostgresCluster) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   serviceType,
		ObjectMeta: owned(cluster, naming.PodsService(cluster.Name)),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 map[string]string{naming.LabelCluster: cluster.Name, naming.LabelManagedBy: naming.ManagedBy},
			Ports: []corev1.ServicePort{
				servicePort(naming.PortNamePostgres, naming.PortPostgres),
				servicePort(naming.PortNameControl, naming.PortControl),
				servicePort(naming.PortNameMetrics, naming.PortMetrics),
			},
		},
	}
}

var serviceType = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}

func roleService(cluster *dbv1alpha1.PostgresCluster, name, role string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   serviceType,
		ObjectMeta: owned(cluster, name),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Selector: map[string]string{
				naming.LabelCluster: cluster.Name, naming.LabelManagedBy: naming.ManagedBy, naming.LabelRole: role,
			},
			Ports: []corev1.ServicePort{servicePort(naming.PortNamePostgres, naming.PortPostgres)},
		},
	}
}

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromString(name)}
}

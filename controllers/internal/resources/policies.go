package resources

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// DisruptionBudget lets one instance at a time be evicted. A cluster of one has none,
// since a budget over a single pod blocks every drain for ever; unless it asks for
// just that.
func DisruptionBudget(cluster *dbv1alpha1.PostgresCluster, members int) *policyv1.PodDisruptionBudget {
	unavailable := intstr.FromInt32(1)
	if members < 2 {
		if cluster.Spec.SingleInstanceEviction != dbv1alpha1.EvictionRefused {
			return nil
		}
		unavailable = intstr.FromInt32(0)
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: owned(cluster, naming.DisruptionBudget(cluster.Name)),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &unavailable,
			Selector:       podsOf(cluster),
			// A pod that does not serve anyway must not hold up a drain.
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// NetworkPolicy lets everybody reach PostgreSQL (which authenticates over TLS),
// the metrics and the health port (which tells nothing); the control port is for
// the cluster's own pods and the operator.
func NetworkPolicy(cluster *dbv1alpha1.PostgresCluster, operatorNamespace string) *networkingv1.NetworkPolicy {
	operator := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: operatorNamespace}},
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: owned(cluster, naming.NetworkPolicy(cluster.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *podsOf(cluster),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{Ports: policyPorts(naming.PortPostgres, naming.PortMetrics, naming.PortHealth)},
				{
					Ports: policyPorts(naming.PortControl),
					From:  []networkingv1.NetworkPolicyPeer{{PodSelector: podsOf(cluster)}, operator},
				},
			},
		},
	}
}

func podsOf(cluster *dbv1alpha1.PostgresCluster) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{
		naming.LabelCluster: cluster.Name, naming.LabelManagedBy: naming.ManagedBy,
	}}
}

func policyPorts(ports ...int32) []networkingv1.NetworkPolicyPort {
	var list []networkingv1.NetworkPolicyPort
	for _, port := range ports {
		list = append(list, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))})
	}
	return list
}

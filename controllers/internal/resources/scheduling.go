package resources

import (
	corev1 "k8s.io/api/core/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

// affinity is the user's, and, unless the user says otherwise, the wish to spread
// the instances over nodes. It is a wish: a cluster on few nodes still runs.
func affinity(cluster *dbv1alpha1.PostgresCluster) *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if cluster.Spec.Affinity != nil {
		affinity = cluster.Spec.Affinity.DeepCopy()
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 100,
				PodAffinityTerm: corev1.PodAffinityTerm{
					TopologyKey: corev1.LabelHostname, LabelSelector: podsOf(cluster),
				},
			}},
		}
	}
	return affinity
}

// spread is the user's; a constraint without a selector means this cluster's
// pods.
func spread(cluster *dbv1alpha1.PostgresCluster) []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, constraint := range cluster.Spec.TopologySpreadConstraints {
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = podsOf(cluster)
		}
		constraints = append(constraints, constraint)
	}
	return constraints
}

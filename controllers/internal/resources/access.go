package resources

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// ServiceAccount is who the instances are for the API server.
func ServiceAccount(cluster *dbv1alpha1.PostgresCluster) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: owned(cluster, naming.InstanceAccount(cluster.Name)),
	}
}

// Role is all that an instance may do: read its own cluster object, which holds
// its configuration and assignment, and hold its own Lease.
func Role(cluster *dbv1alpha1.PostgresCluster) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: owned(cluster, naming.InstanceAccount(cluster.Name)),
		Rules: []rbacv1.PolicyRule{
			{
				// list and watch with a field selector on the one name.
				APIGroups: []string{dbv1alpha1.GroupVersion.Group}, Resources: []string{"postgresclusters"},
				ResourceNames: []string{cluster.Name}, Verbs: []string{"get", "list", "watch"},
			},
			{
				// get to see the holder, update to take, renew and release.
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				ResourceNames: []string{naming.PrimaryLease(cluster.Name)}, Verbs: []string{"get", "update"},
			},
		},
	}
}

// RoleBinding gives the Role to the account.
func RoleBinding(cluster *dbv1alpha1.PostgresCluster) *rbacv1.RoleBinding {
	name := naming.InstanceAccount(cluster.Name)
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: owned(cluster, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: cluster.Namespace}},
	}
}

// PrimaryLease is the right to be writable. Its metadata is the operator's, its
// spec the instances'.
func PrimaryLease(cluster *dbv1alpha1.PostgresCluster) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: owned(cluster, naming.PrimaryLease(cluster.Name)),
	}
}

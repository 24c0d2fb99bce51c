//go:build envtest

package controllers

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

// childLists are lists of every kind that a cluster owns.
func childLists() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.SecretList{},
		&corev1.PersistentVolumeClaimList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &coordinationv1.LeaseList{},
	}
}

// create makes the cluster "db" with a number of instances.
func (w *world) create(t *testing.T, replicas int32, change ...func(*dbv1alpha1.PostgresCluster)) *dbv1alpha1.PostgresCluster {
	t.Helper()
	cluster := &dbv1alpha1.PostgresCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"}}
	cluster.Spec.Replicas = replicas
	cluster.Spec.PostgresVersion = "15.2"
	cluster.Spec.Storage.Size = "1Gi"
	cluster.Spec.Storage.StorageClassName = "standard"
	for _, c := range change {
		c(cluster)
	}
	require.NoError(t, api.Create(t.Context(), cluster))
	return cluster
}

// cluster reads the cluster "db".
func (w *world) cluster(t *testing.T) *dbv1alpha1.PostgresCluster {
	t.Helper()
	cluster := &dbv1alpha1.PostgresCluster{}
	require.NoError(t, api.Get(t.Context(), w.key("db"), cluster))
	return cluster
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// change patches the cluster "db" as kubectl patch would.
func (w *world) change(t *testing.T, patch string) error {
	t.Helper()
	return api.Patch(t.Context(), w.cluster(t), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// eventually waits for what has to come; told says how things stand if it does not.
func eventually(t *testing.T, what string, told func() string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			require.Fail(t, "did not come: "+what, told())
		}
		pause(tick)
	}
}

// pause lets time pass: between two looks, and to see that nothing happens.
func pause(duration time.Duration) { <-time.After(duration) }

// story is the status in one line.
func (w *world) story(t *testing.T) string {
	t.Helper()
	cluster := &dbv1alpha1.PostgresCluster{}
	if err := api.Get(t.Context(), w.key("db"), cluster); err != nil {
		return err.Error()
	}
	parts := []string{string(cluster.Status.Phase), cluster.Status.Ready}
	for _, c := range cluster.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s %s (%s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, "; ")
}

// awaitReady waits until the cluster is Ready and its present generation was seen.
func (w *world) awaitReady(t *testing.T) *dbv1alpha1.PostgresCluster {
	t.Helper()
	var cluster *dbv1alpha1.PostgresCluster
	eventually(t, "phase Ready", func() string { return w.story(t) }, func() bool {
		cluster = w.cluster(t)
		return cluster.Status.Phase == dbv1alpha1.PhaseReady && cluster.Status.ObservedGeneration == cluster.Generation &&
			cluster.Status.ReadyInstances == cluster.Spec.Replicas
	})
	return cluster
}

// awaitReason waits for a condition with a reason and returns its message.
func (w *world) awaitReason(t *testing.T, kind, reason string) string {
	t.Helper()
	message := ""
	eventually(t, kind+" "+reason, func() string { return w.story(t) }, func() bool {
		c := meta.FindStatusCondition(w.cluster(t).Status.Conditions, kind)
		if c == nil || c.Reason != reason {
			return false
		}
		message = c.Message
		return true
	})
	return message
}

// awaitGone waits until nothing of the cluster is left.
func (w *world) awaitGone(t *testing.T) {
	t.Helper()
	eventually(t, "the end of the cluster", func() string { return fmt.Sprint(w.story(t), w.names(t)) }, func() bool {
		cluster := &dbv1alpha1.PostgresCluster{}
		return client.IgnoreNotFound(api.Get(t.Context(), w.key("db"), cluster)) == nil && cluster.UID == "" && len(w.children(t)) == 0
	})
}

// children are all objects that a PostgresCluster controls, by kind and name.
func (w *world) children(t *testing.T) map[string]client.Object {
	t.Helper()
	found := map[string]client.Object{}
	for _, list := range childLists() {
		require.NoError(t, api.List(t.Context(), list, client.InNamespace(w.namespace)))
		objects, err := meta.ExtractList(list)
		require.NoError(t, err)
		for _, object := range objects {
			child := object.(client.Object)
			if owner := metav1.GetControllerOf(child); owner != nil && owner.Kind == "PostgresCluster" {
				found[fmt.Sprintf("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", child), "*"), child.GetName())] = child
			}
		}
	}
	return found
}

// names are the children as a sorted list, to compare worlds by.
func (w *world) names(t *testing.T) []string {
	t.Helper()
	names := []string{}
	for name := range w.children(t) {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// versions are the resource versions of the children. The Lease is renewed by the
// instances, so it is left out.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for name, child := range w.children(t) {
		if _, isLease := child.(*coordinationv1.Lease); !isLease {
			versions[name] = child.GetResourceVersion()
		}
	}
	return versions
}

// events are the reasons of the events about the cluster "db", with their number.
func (w *world) events(t *testing.T) map[string]int {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, api.List(t.Context(), &list, client.InNamespace(w.namespace)))
	reasons := map[string]int{}
	for _, event := range list.Items {
		count := 1
		if event.Series != nil {
			count = int(event.Series.Count)
		}
		reasons[event.Reason] += count
	}
	return reasons
}

package plan_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a cluster that tests change by hand, or that a simulation moves.
type world struct {
	cluster   *dbv1alpha1.PostgresCluster
	instances map[string]*member
	pods      int
	lease     state.Lease
}

// member is what exists of one instance.
type member struct {
	workload, claim bool
	generation      int64 // of the template that the workload has
	pod             *corev1.Pod
	podGeneration   int64
	report          state.ReportEntry
}

func newWorld(replicas int32) *world {
	return &world{
		cluster: &dbv1alpha1.PostgresCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "t", UID: "cluster", Generation: 1},
			Spec:       dbv1alpha1.PostgresClusterSpec{Replicas: replicas},
		},
		instances: map[string]*member{},
	}
}

// running adds an instance whose pod serves in the given role.
func (w *world) running(name string, role protocol.Role) *member {
	m := &member{workload: true, claim: true, generation: 1}
	w.instances[name] = m
	w.startPod(name, m)
	w.serve(m, role)
	return m
}

func (w *world) startPod(name string, m *member) {
	w.pods++
	uid := types.UID(fmt.Sprintf("%s-%d", name, w.pods))
	kind := "ReplicaSet"
	owner := name + "-abc"
	if name == "db-primary" {
		kind, owner = "StatefulSet", name
	}
	m.podGeneration = m.generation
	m.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: string(uid), UID: uid, CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(w.pods) * time.Second)),
		Labels: map[string]string{naming.LabelInstance: name, naming.LabelCluster: "db",
			appsv1.ControllerRevisionHashLabelKey: fmt.Sprint(m.generation)},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: ptr.To(true)}},
	}}
	m.report = state.ReportEntry{}
}

func (w *world) serve(m *member, role protocol.Role) {
	m.pod.Status.Phase = corev1.PodRunning
	m.pod.Status.PodIP = "10.0.0.1"
	m.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	m.report = state.ReportEntry{Known: true, Report: protocol.Report{
		State: protocol.StateRunning, Role: role, Streaming: role == protocol.RoleReplica,
		SystemIdentifier: "7000", ConfigGeneration: w.cluster.Generation}}
}

func (m *member) stopServing() {
	m.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

func (w *world) snapshot() *state.Snapshot {
	o := state.Observed{Now: epoch, Cluster: w.cluster, Lease: w.lease, Cordoned: map[string]bool{"cordoned": true},
		Reports: map[types.UID]state.ReportEntry{}}
	for name, m := range w.instances {
		meta := metav1.ObjectMeta{Name: name, Generation: m.generation, Labels: map[string]string{naming.LabelInstance: name},
			OwnerReferences: []metav1.OwnerReference{{UID: "cluster", Controller: ptr.To(true)}}}
		if m.workload && name == "db-primary" {
			o.StatefulSets = append(o.StatefulSets, appsv1.StatefulSet{ObjectMeta: meta, Status: appsv1.StatefulSetStatus{
				ObservedGeneration: m.generation, UpdateRevision: fmt.Sprint(m.generation)}})
		} else if m.workload {
			updated := int32(0)
			if m.pod != nil && m.podGeneration == m.generation {
				updated = 1
			}
			o.Deployments = append(o.Deployments, appsv1.Deployment{ObjectMeta: meta, Status: appsv1.DeploymentStatus{
				ObservedGeneration: m.generation, Replicas: updated, UpdatedReplicas: updated}})
		}
		if m.claim {
			claim := corev1.PersistentVolumeClaim{ObjectMeta: *meta.DeepCopy()}
			claim.Name = naming.DataClaim(name)
			o.Claims = append(o.Claims, claim)
		}
		if m.pod != nil {
			o.Pods = append(o.Pods, *m.pod)
			o.Reports[m.pod.UID] = m.report
		}
	}
	return state.New(o)
}

// settled is a cluster of which everything is as it should be.
func settled(t *testing.T, replicas int32) *world {
	t.Helper()
	w := newWorld(replicas)
	for ordinal := range int(replicas) {
		role := protocol.RoleReplica
		if ordinal == 0 {
			role = protocol.RolePrimary
		}
		name := naming.Instance("db", ordinal)
		w.running(name, role)
		w.cluster.Status.InstanceNames = append(w.cluster.Status.InstanceNames, name)
	}
	w.cluster.Status.TargetPrimary, w.cluster.Status.CurrentPrimary = "db-primary", "db-primary"
	w.cluster.Status.SystemIdentifier = "7000"
	return w
}

package status_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/controllers/internal/status"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// scene is a cluster of one instance that tests change.
type scene struct {
	cluster *dbv1alpha1.PostgresCluster
	pod     *corev1.Pod
	report  state.ReportEntry
	plan    plan.Plan
	faults  []status.Fault
}

// serving is a cluster that is as it should be.
func serving() *scene {
	return &scene{
		cluster: &dbv1alpha1.PostgresCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "t", UID: "cluster", Generation: 3},
			Spec:       dbv1alpha1.PostgresClusterSpec{Replicas: 1},
		},
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "db-primary-0", UID: "pod",
				Labels:          map[string]string{naming.LabelInstance: "db-primary", naming.LabelRole: naming.RolePrimary},
				OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db-primary", Controller: ptr.To(true)}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "postgres", Image: "example.com/postgres:15.20"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7",
				ContainerStatuses: []corev1.ContainerStatus{{Name: "postgres", State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-time.Hour))}}}},
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
		report: state.ReportEntry{Known: true, At: now, Report: protocol.Report{State: protocol.StateRunning, Role: protocol.RolePrimary}},
		plan: plan.Plan{Assignment: plan.Assignment{Members: []string{"db-primary"}, TargetPrimary: "db-primary",
			CurrentPrimary: "db-primary", SystemIdentifier: "7000"}},
	}
}

func (s *scene) compute() dbv1alpha1.PostgresClusterStatus {
	snapshot := state.New(state.Observed{
		Now: now, Cluster: s.cluster, Pods: []corev1.Pod{*s.pod},
		StatefulSets: []appsv1.StatefulSet{{ObjectMeta: metav1.ObjectMeta{Name: "db-primary",
			OwnerReferences: []metav1.OwnerReference{{UID: "cluster", Controller: ptr.To(true)}}}}},
		Reports: map[types.UID]state.ReportEntry{"pod": s.report},
	})
	return status.Compute(status.Input{Snapshot: snapshot, Plan: s.plan, Faults: s.faults})
}

func (s *scene) notReady() {
	s.pod.Status.Conditions[0].Status = corev1.ConditionFalse
}

func (s *scene) waiting(reason string, restarts int32) {
	s.notReady()
	s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "postgres", RestartCount: restarts,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
}

func TestServingClusterIsReady(t *testing.T) {
	got := serving().compute()
	assert.Equal(t, dbv1alpha1.PhaseReady, got.Phase)
	assert.Equal(t, "10.0.0.7", got.PrimaryHost)
	assert.Equal(t, "1/1", got.Ready)
	assert.Equal(t, int32(1), got.Instances)
	assert.Equal(t, int64(3), got.ObservedGeneration)
	for kind, want := range map[string]metav1.ConditionStatus{
		dbv1alpha1.ConditionReady: metav1.ConditionTrue, dbv1alpha1.ConditionAvailable: metav1.ConditionTrue,
		dbv1alpha1.ConditionProgressing: metav1.ConditionFalse, dbv1alpha1.ConditionDegraded: metav1.ConditionFalse,
	} {
		condition := meta.FindStatusCondition(got.Conditions, kind)
		require.NotNil(t, condition, kind)
		assert.Equal(t, want, condition.Status, kind)
		assert.Equal(t, int64(3), condition.ObservedGeneration, kind)
		assert.NotEmpty(t, condition.Reason, kind)
	}
}

func TestDegraded(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*scene)
		reason  string
		message string
	}{
		"image that cannot be pulled": {func(s *scene) { s.waiting("ImagePullBackOff", 0) },
			dbv1alpha1.ReasonImageUnavailable, `"example.com/postgres:15.20"`},
		"container that ends again and again": {func(s *scene) { s.waiting("CrashLoopBackOff", 3) },
			dbv1alpha1.ReasonCrashLooping, "db-primary-0"},
		"pod without a node": {func(s *scene) {
			s.notReady()
			s.pod.Status.Conditions = append(s.pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled,
				Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"})
		}, dbv1alpha1.ReasonUnschedulable, "0/3 nodes"},
		"what the instance says": {func(s *scene) {
			s.notReady()
			s.report.Report.Problem = &protocol.Problem{Reason: protocol.ProblemForeignData, Message: "PGDATA belongs to 8000"}
		}, "ForeignData", "belongs to 8000"},
		"an instance that does not answer for long": {func(s *scene) {
			s.report.Error, s.report.FailedSince = "refused", now.Add(-time.Minute)
		}, dbv1alpha1.ReasonInstanceUnreachable, "db-primary"},
		"a fault of the pass": {func(s *scene) {
			s.faults = []status.Fault{{Reason: dbv1alpha1.ReasonApplyFailed, Message: "services: refused"}}
		}, dbv1alpha1.ReasonApplyFailed, "services"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving()
			c.change(s)
			got := s.compute()
			condition := meta.FindStatusCondition(got.Conditions, dbv1alpha1.ConditionDegraded)
			require.NotNil(t, condition)
			assert.Equal(t, metav1.ConditionTrue, condition.Status)
			assert.Equal(t, c.reason, condition.Reason)
			assert.Contains(t, condition.Message, c.message)
			assert.Equal(t, dbv1alpha1.PhaseFailed, got.Phase)
			ready := meta.FindStatusCondition(got.Conditions, dbv1alpha1.ConditionReady)
			assert.Equal(t, c.reason, ready.Reason)
		})
	}
}

func TestPassingTroubleIsNotDegraded(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"one missed report": func(s *scene) { s.report.Error, s.report.FailedSince = "timeout", now.Add(-time.Second) },
		"a container that has just started": func(s *scene) {
			s.report.Error, s.report.FailedSince = "refused", now.Add(-time.Minute)
			s.pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(now.Add(-time.Second))
		},
		"nothing known yet":       func(s *scene) { s.report = state.ReportEntry{} },
		"the first restart":       func(s *scene) { s.waiting("CrashLoopBackOff", 1) },
		"a container being made":  func(s *scene) { s.waiting("ContainerCreating", 0) },
		"a pod that is not ready": func(s *scene) { s.notReady() },
	} {
		t.Run(name, func(t *testing.T) {
			s := serving()
			change(s)
			got := s.compute()
			assert.True(t, meta.IsStatusConditionFalse(got.Conditions, dbv1alpha1.ConditionDegraded))
			assert.NotEqual(t, dbv1alpha1.PhaseFailed, got.Phase)
		})
	}
}

func TestAvailableNeedsTheLabelOfTheService(t *testing.T) {
	s := serving()
	delete(s.pod.Labels, naming.LabelRole)
	got := s.compute()
	assert.True(t, meta.IsStatusConditionFalse(got.Conditions, dbv1alpha1.ConditionAvailable))
	assert.NotEqual(t, dbv1alpha1.PhaseReady, got.Phase)
}

func TestWaitingIsProgressing(t *testing.T) {
	s := serving()
	s.plan.Waits = []plan.Wait{{Reason: dbv1alpha1.ReasonCloning, Message: "instance db-replica-1 is being cloned"}}
	got := s.compute()
	assert.Equal(t, dbv1alpha1.PhaseCreating, got.Phase)
	assert.Equal(t, dbv1alpha1.ReasonCloning, meta.FindStatusCondition(got.Conditions, dbv1alpha1.ConditionProgressing).Reason)
	assert.True(t, meta.IsStatusConditionTrue(got.Conditions, dbv1alpha1.ConditionAvailable))
}

func TestAPendingRestartLeavesTheClusterReady(t *testing.T) {
	s := serving()
	s.plan.Waits = []plan.Wait{{Reason: dbv1alpha1.ReasonRestartPending, Message: "shared_buffers"}}
	got := s.compute()
	assert.Equal(t, dbv1alpha1.PhaseReady, got.Phase)
	assert.True(t, meta.IsStatusConditionTrue(got.Conditions, dbv1alpha1.ConditionProgressing))
}

func TestTheSameWorldGivesTheSameStatus(t *testing.T) {
	s := serving()
	s.cluster.Status = s.compute()
	moved := now
	now = now.Add(time.Hour)
	defer func() { now = moved }()
	assert.Equal(t, s.cluster.Status, s.compute(), "a later look changes nothing, not even a time")
}

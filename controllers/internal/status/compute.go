package status

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
)

// Fault is something that went wrong in the pass itself.
type Fault struct {
	// Reason is one of the condition reasons of the API.
	Reason  string
	Message string
}

// Input is all that a status depends on.
type Input struct {
	Snapshot *state.Snapshot
	Plan     plan.Plan
	// Faults of the pass, most important first.
	Faults []Fault
	// Deleting says what the deletion waits for; empty if nothing is deleted.
	Deleting string
}

// Compute makes the whole status.
func Compute(in Input) dbv1alpha1.PostgresClusterStatus {
	cluster := in.Snapshot.Cluster
	a := in.Plan.Assignment
	status := dbv1alpha1.PostgresClusterStatus{
		ObservedGeneration: cluster.Generation,
		Selector:           naming.LabelCluster + "=" + cluster.Name,
		Conditions:         slices.Clone(cluster.Status.Conditions),
	}
	a.Record(&status)
	for _, instance := range in.Snapshot.Instances {
		if !instance.Exists() {
			continue
		}
		status.Instances++
		if !instance.Serving() {
			continue
		}
		status.ReadyInstances++
		if instance.Name == a.TargetPrimary {
			status.PrimaryHost = instance.Pod.Status.PodIP
		} else {
			status.ReplicaHosts = append(status.ReplicaHosts, instance.Pod.Status.PodIP)
		}
	}
	status.PendingChange = in.Plan.Pending
	status.Ready = fmt.Sprintf("%d/%d", status.ReadyInstances, cluster.Spec.Replicas)
	setConditions(in, &status)
	return status
}

// setConditions computes the conditions in the order in which they depend on
// each other, and the phase last.
func setConditions(in Input, status *dbv1alpha1.PostgresClusterStatus) {
	available := available(in)
	degraded := degraded(in)
	progressing := progressing(in)
	ready := ready(in, available, progressing, degraded)
	conditions := []metav1.Condition{ready, available, progressing, degraded}
	if in.Snapshot.Cluster.Spec.Replication.Synchronous == nil {
		meta.RemoveStatusCondition(&status.Conditions, dbv1alpha1.ConditionSynchronous)
	} else {
		conditions = append(conditions, synchronous(in))
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = in.Snapshot.Cluster.Generation
		condition.LastTransitionTime = metav1.NewTime(in.Snapshot.Now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	switch {
	case ready.Status == metav1.ConditionTrue:
		status.Phase = dbv1alpha1.PhaseReady
	case degraded.Status == metav1.ConditionTrue:
		status.Phase = dbv1alpha1.PhaseFailed
	default:
		status.Phase = dbv1alpha1.PhaseCreating
	}
}

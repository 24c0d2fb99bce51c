package status

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// available: the primary accepts connections through its Service.
func available(in Input) metav1.Condition {
	target := in.Snapshot.Instance(in.Plan.Assignment.TargetPrimary)
	if target.Serving() && target.Pod.Labels[naming.LabelRole] == naming.RolePrimary {
		return condition(dbv1alpha1.ConditionAvailable, metav1.ConditionTrue, dbv1alpha1.ReasonPrimaryServing,
			fmt.Sprintf("primary %s accepts connections through Service %s", target.Name, naming.PrimaryService(in.Snapshot.Cluster.Name)))
	}
	return condition(dbv1alpha1.ConditionAvailable, metav1.ConditionFalse, dbv1alpha1.ReasonPrimaryNotServing,
		fmt.Sprintf("no primary accepts connections through Service %s", naming.PrimaryService(in.Snapshot.Cluster.Name)))
}

// progressing: something is under way that ends by itself.
func progressing(in Input) metav1.Condition {
	if in.Deleting != "" {
		return condition(dbv1alpha1.ConditionProgressing, metav1.ConditionTrue, dbv1alpha1.ReasonDeleting, in.Deleting)
	}
	if len(in.Plan.Waits) > 0 {
		first := in.Plan.Waits[0]
		return condition(dbv1alpha1.ConditionProgressing, metav1.ConditionTrue, first.Reason, first.Message)
	}
	return condition(dbv1alpha1.ConditionProgressing, metav1.ConditionFalse, dbv1alpha1.ReasonSettled, "everything is as the spec says")
}

// degraded: something is wrong that does not pass by itself, or not soon. The
// checks are asked in order, the first that finds something wins.
func degraded(in Input) metav1.Condition {
	for _, check := range Checks {
		if fault := check.Find(in); fault != nil {
			return condition(dbv1alpha1.ConditionDegraded, metav1.ConditionTrue, fault.Reason, fault.Message)
		}
	}
	return condition(dbv1alpha1.ConditionDegraded, metav1.ConditionFalse, dbv1alpha1.ReasonHealthy, "nothing is wrong")
}

// ready: the summary of the three others.
func ready(in Input, available, progressing, degraded metav1.Condition) metav1.Condition {
	switch {
	case degraded.Status == metav1.ConditionTrue:
		return condition(dbv1alpha1.ConditionReady, metav1.ConditionFalse, degraded.Reason, degraded.Message)
	case progressing.Status == metav1.ConditionTrue && progressing.Reason != dbv1alpha1.ReasonRestartPending:
		return condition(dbv1alpha1.ConditionReady, metav1.ConditionFalse, progressing.Reason, progressing.Message)
	case available.Status != metav1.ConditionTrue:
		return condition(dbv1alpha1.ConditionReady, metav1.ConditionFalse, available.Reason, available.Message)
	}
	return condition(dbv1alpha1.ConditionReady, metav1.ConditionTrue, dbv1alpha1.ReasonReady,
		fmt.Sprintf("%d of %d instances serve", in.Snapshot.Cluster.Spec.Replicas, in.Snapshot.Cluster.Spec.Replicas))
}

// synchronous: commits are acknowledged by as many replicas as asked for.
func synchronous(in Input) metav1.Condition {
	spec := in.Snapshot.Cluster.Spec.Replication.Synchronous
	number := spec.Acknowledgements()
	recorded := in.Plan.Assignment.Synchronous
	primary := in.Snapshot.Instance(in.Plan.Assignment.TargetPrimary)
	if recorded == nil || !primary.IsPrimary() {
		return condition(dbv1alpha1.ConditionSynchronous, metav1.ConditionUnknown, dbv1alpha1.ReasonPrimaryNotServing, "no primary says what commits wait for")
	}
	var streaming int32
	for _, connection := range primary.Report.Report.Replicas {
		if connection.State == "streaming" && slices.Contains(recorded.Wanted.Standbys, connection.Instance) {
			streaming++
		}
	}
	switch {
	case len(recorded.Possible) != 1:
		return condition(dbv1alpha1.ConditionSynchronous, metav1.ConditionFalse, dbv1alpha1.ReasonApplyingConfiguration,
			fmt.Sprintf("primary %s is loading what commits wait for", primary.Name))
	case streaming >= number:
		return condition(dbv1alpha1.ConditionSynchronous, metav1.ConditionTrue, dbv1alpha1.ReasonSynchronous,
			fmt.Sprintf("a commit is acknowledged when %d replicas have it, of which %d stream", number, streaming))
	case spec.DataDurability == dbv1alpha1.DurabilityPreferred:
		return condition(dbv1alpha1.ConditionSynchronous, metav1.ConditionFalse, dbv1alpha1.ReasonTooFewReplicas,
			fmt.Sprintf("a commit is acknowledged when %d replicas have it instead of %d: more have to stream", streaming, number))
	}
	return condition(dbv1alpha1.ConditionSynchronous, metav1.ConditionFalse, dbv1alpha1.ReasonTooFewReplicas,
		fmt.Sprintf("commits wait until %d replicas stream, of which %d do: mend them, or make spec.replication.synchronous.dataDurability preferred", number, streaming))
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
)

// recordChanges tells in events what became different: one event a change, none
// for a status that stays.
func (r *PostgresClusterReconciler) recordChanges(before, after *dbv1alpha1.PostgresCluster) {
	if primary := after.Status.CurrentPrimary; primary != before.Status.CurrentPrimary {
		r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, "PrimaryChanged", "Assign", "instance %s is the primary", primary)
	}
	r.recordCondition(before, after, dbv1alpha1.ConditionDegraded, metav1.ConditionTrue, corev1.EventTypeWarning)
	r.recordCondition(before, after, dbv1alpha1.ConditionReady, metav1.ConditionTrue, corev1.EventTypeNormal)
}

// recordCondition tells that a condition has the given status now, with a reason
// that it did not have before.
func (r *PostgresClusterReconciler) recordCondition(before, after *dbv1alpha1.PostgresCluster, kind string, value metav1.ConditionStatus, level string) {
	now := meta.FindStatusCondition(after.Status.Conditions, kind)
	if now == nil || now.Status != value {
		return
	}
	then := meta.FindStatusCondition(before.Status.Conditions, kind)
	if then != nil && then.Status == now.Status && then.Reason == now.Reason {
		return
	}
	r.Recorder.Eventf(after, nil, level, now.Reason, "Reconcile", "%s", now.Message)
}

// recordNotices tells what was decided, once it is on record.
func (r *PostgresClusterReconciler) recordNotices(cluster *dbv1alpha1.PostgresCluster, notices []plan.Notice) {
	for _, notice := range notices {
		level := corev1.EventTypeNormal
		if notice.Warning {
			level = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(cluster, nil, level, notice.Reason, "Decide", "%s", notice.Message)
	}
}

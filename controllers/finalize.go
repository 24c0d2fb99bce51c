package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/kube"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/controllers/internal/status"
	"github.com/my-org/postgres-operator/internal/naming"
)

// finalize deletes what a deleted cluster leaves: it stops the workloads, then
// deletes the volumes, then lets the object go (promise 7). Everything else goes
// with the object, through its owner references. Nothing is created.
//
// Each step is found again in the world, so it does not matter where a former
// operator ended.
func (r *PostgresClusterReconciler) finalize(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) (ctrl.Result, error) {
	name := client.ObjectKeyFromObject(cluster)
	r.Reports.Forget(name)
	if !controllerutil.ContainsFinalizer(cluster, naming.Finalizer) {
		return ctrl.Result{}, nil
	}
	snapshot, err := r.observe(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	waiting, err := r.deleteInstances(ctx, snapshot)
	if err != nil {
		return ctrl.Result{}, err
	}
	if waiting == "" {
		if err := kube.RemoveFinalizer(ctx, r.Client, cluster, naming.Finalizer); err != nil {
			return again(err)
		}
		return ctrl.Result{}, nil
	}
	in := status.Input{Snapshot: snapshot, Deleting: waiting, Plan: plan.Plan{Assignment: plan.Recorded(cluster.Status)}}
	return again(r.report(ctx, in))
}

// deleteInstances takes the next step for each instance and says what is
// awaited; nothing once all is gone.
func (r *PostgresClusterReconciler) deleteInstances(ctx context.Context, snapshot *state.Snapshot) (string, error) {
	var failures []error
	var pods, claims []string
	for _, instance := range snapshot.Instances {
		if instance.Workload != nil {
			failures = append(failures, kube.Delete(ctx, r.Client, instance.Workload.Object().(client.Object),
				client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}
		if instance.Workload != nil || instance.HasPods() {
			pods = append(pods, instance.Name)
		}
	}
	if len(pods) > 0 || errors.Join(failures...) != nil {
		return fmt.Sprintf("the pods of %s have to end before volumes are deleted", strings.Join(pods, ", ")), errors.Join(failures...)
	}
	for _, instance := range snapshot.Instances {
		if instance.Claim == nil {
			continue
		}
		failures = append(failures, kube.Delete(ctx, r.Client, instance.Claim))
		claims = append(claims, claimWithHolders(instance))
	}
	if len(claims) > 0 {
		return fmt.Sprintf("volume claims have to go: %s", strings.Join(claims, ", ")), errors.Join(failures...)
	}
	return "", nil
}

// claimWithHolders names a claim and the finalizers of others that hold it.
func claimWithHolders(instance *state.Instance) string {
	var holders []string
	for _, finalizer := range instance.Claim.Finalizers {
		if finalizer != "kubernetes.io/pvc-protection" {
			holders = append(holders, finalizer)
		}
	}
	if len(holders) == 0 {
		return instance.Claim.Name
	}
	return fmt.Sprintf("%s (held by the finalizer %s: whoever set it has to remove it)", instance.Claim.Name, strings.Join(holders, ", "))
}

package controllers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/kube"
	"github.com/my-org/postgres-operator/controllers/internal/leases"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/reports"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/controllers/internal/status"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/validation"
)

const (
	// retryNotOurs: somebody else's object is not in our cache, so no watch tells
	// when it has gone.
	retryNotOurs = 30 * time.Second
	// certificateCheck: certificates are renewed weeks before they end; a look a
	// day finds the moment. Jitter comes from the clusters' different start times.
	certificateCheck = 24 * time.Hour
	// unknownLook is how often an instance is looked at of which nothing is known yet:
	// after an outage of the API server the cache may be behind for a while.
	unknownLook = 5 * time.Second
	// retryStale is about as long as an event takes to reach the cache.
	retryStale = 50 * time.Millisecond
)

// Options are the operator-wide settings of the reconciler.
type Options struct {
	// ManagerImage is the image of the operator itself, from which pods copy the
	// instance manager.
	ManagerImage      string
	ManagerPullPolicy corev1.PullPolicy
	// OperatorNamespace is where the operator runs.
	OperatorNamespace string
	// PostgresRepository is the image repository whose tags are versions.
	PostgresRepository string
	// LookupEnv finds the RELATED_IMAGE_ variables; os.LookupEnv in production.
	LookupEnv func(string) (string, bool)
	// PlatformAssignsIDs: the platform chooses user and group ids (OpenShift).
	PlatformAssignsIDs bool
	// Workers is the number of clusters that are worked on at once.
	Workers int
}

// PostgresClusterReconciler makes the world be as PostgresCluster objects say.
type PostgresClusterReconciler struct {
	client.Client
	// Live reads from the API server: see kube.Applier.
	Live     client.Reader
	Recorder events.EventRecorder
	Reports  *reports.Collector
	Leases   *leases.Tracker
	Now      func() time.Time
	Options  Options
}

// The reconciler reads and watches clusters, adds and removes its finalizer
// (patch), sets status, and, on platforms that enforce it, needs update on the
// finalizers to set blocking owner references.
//
// +kubebuilder:rbac:groups=db.my-domain.com,resources=postgresclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=db.my-domain.com,resources=postgresclusters/status,verbs=patch
// +kubebuilder:rbac:groups=db.my-domain.com,resources=postgresclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes one pass: load, admit, observe, plan, assign, act, report.
func (r *PostgresClusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &dbv1alpha1.PostgresCluster{}
	if err := r.Get(ctx, req.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.Reports.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("read PostgresCluster: %w", err)
	}
	cluster = cluster.DeepCopy() // the cache's copy is not ours to change
	if cluster.DeletionTimestamp != nil {
		return r.finalize(ctx, cluster)
	}
	if err := kube.EnsureFinalizer(ctx, r.Client, cluster, naming.Finalizer); err != nil {
		return again(err)
	}
	snapshot, err := r.observe(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if invalid := validation.Validate(cluster); len(invalid) > 0 {
		return again(r.reportInvalid(ctx, snapshot, invalid.ToAggregate().Error()))
	}
	build, err := r.newBuild(snapshot)
	if err != nil {
		return again(r.reportInvalid(ctx, snapshot, err.Error()))
	}
	decided := plan.Decide(snapshot, build.wanted())
	if err := r.assign(ctx, snapshot, decided.Assignment); err != nil {
		return again(err)
	}
	r.recordNotices(cluster, decided.Notices)
	faults, actErr := r.act(ctx, snapshot, build, decided)
	in := status.Input{Snapshot: snapshot, Plan: decided, Faults: faults}
	reportErr := r.report(ctx, in)
	switch {
	case actErr != nil:
		return ctrl.Result{}, actErr // tried again with growing pauses
	case reportErr != nil:
		return again(reportErr)
	}
	return ctrl.Result{RequeueAfter: nextLook(snapshot, decided, faults)}, nil
}

// nextLook is when the clock alone can change the outcome of a pass.
func nextLook(snapshot *state.Snapshot, decided plan.Plan, faults []status.Fault) time.Duration {
	next := certificateCheck
	if decided.Again > 0 {
		next = min(next, decided.Again)
	}
	for _, fault := range faults {
		if fault.Reason == dbv1alpha1.ReasonNotOurs {
			next = min(next, retryNotOurs)
		}
	}
	for _, instance := range snapshot.Instances {
		if instance.Pod != nil && !instance.Report.Known {
			next = min(next, unknownLook)
		}
		if instance.Report.Error == "" {
			continue
		}
		since := snapshot.Now.Sub(instance.Report.FailedSince)
		if since < status.UnreachableAfter {
			next = min(next, status.UnreachableAfter-since+time.Second)
		}
	}
	return next
}

// assign writes the assignment before anything is done, so that the instances
// and a successor of this operator see what was decided. A stale copy of the
// cluster is refused by its version, and the pass begins anew.
func (r *PostgresClusterReconciler) assign(ctx context.Context, snapshot *state.Snapshot, a plan.Assignment) error {
	cluster := snapshot.Cluster
	before := cluster.DeepCopy()
	a.Record(&cluster.Status)
	return r.patchStatus(ctx, before, cluster)
}

// report writes the status, if it is not so already, and tells in an event what
// became different.
func (r *PostgresClusterReconciler) report(ctx context.Context, in status.Input) error {
	cluster := in.Snapshot.Cluster
	before := cluster.DeepCopy()
	cluster.Status = status.Compute(in)
	if err := r.patchStatus(ctx, before, cluster); err != nil {
		return err
	}
	r.recordChanges(before, cluster)
	return nil
}

// reportInvalid reports a spec that cannot be carried out. What runs goes on.
func (r *PostgresClusterReconciler) reportInvalid(ctx context.Context, snapshot *state.Snapshot, message string) error {
	in := status.Input{
		Snapshot: snapshot,
		Plan:     plan.Plan{Assignment: plan.Recorded(snapshot.Cluster.Status)},
		Faults:   []status.Fault{{Reason: dbv1alpha1.ReasonInvalidSpec, Message: message}},
	}
	return r.report(ctx, in)
}

func (r *PostgresClusterReconciler) patchStatus(ctx context.Context, before, after *dbv1alpha1.PostgresCluster) error {
	if reflect.DeepEqual(before.Status, after.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("write the status of PostgresCluster %s: %w", after.Name, err)
	}
	return nil
}

// again turns the error of a write of the cluster into the result of the pass. A
// conflict means that the cache was behind our own last write, whose event the
// watch leaves out; so the pass is made again in a moment.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: retryStale}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

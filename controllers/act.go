package controllers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/kube"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/reports"
	"github.com/my-org/postgres-operator/controllers/internal/resources"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/controllers/internal/status"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/pki"
)

// pass is what the steps of one pass share.
type pass struct {
	*PostgresClusterReconciler
	applier  kube.Applier
	snapshot *state.Snapshot
	build    *build
	plan     plan.Plan
	// ca is the certificate authority's Secret as this pass has it.
	ca *corev1.Secret
}

func (p *pass) cluster() *dbv1alpha1.PostgresCluster { return p.snapshot.Cluster }

// steps are carried out in this order. One that fails does not hold up those
// that can do without it: each makes what it needs itself, or fails too.
var steps = []struct {
	name string
	do   func(*pass, context.Context) error
}{
	// What clients wait for comes first.
	{"lease", (*pass).lease},
	{"roles", (*pass).roles},
	{"request", (*pass).request},
	{"certificates", (*pass).certificates},
	{"credentials", (*pass).credentials},
	{"permissions", (*pass).permissions},
	{"services", (*pass).services},
	{"policies", (*pass).policies},
	{"instances", (*pass).instances},
	{"restarts", (*pass).restarts},
	{"removals", (*pass).removals},
	{"reports", (*pass).reports},
}

// act carries out the plan. It returns what a person has to know, and the errors
// that are worth a retry.
func (r *PostgresClusterReconciler) act(ctx context.Context, snapshot *state.Snapshot, build *build, decided plan.Plan) ([]status.Fault, error) {
	p := &pass{
		PostgresClusterReconciler: r, snapshot: snapshot, build: build, plan: decided,
		applier: kube.Applier{Client: r.Client, Live: r.Live},
	}
	var faults []status.Fault
	var failures []error
	for _, step := range steps {
		err := step.do(p, ctx)
		var foreign *kube.NotOursError
		var terminating *kube.TerminatingError
		switch {
		case err == nil:
		case errors.As(err, &foreign):
			faults = append(faults, status.Fault{Reason: dbv1alpha1.ReasonNotOurs, Message: foreign.Error()})
		case errors.As(err, &terminating):
			// Its end is an event, which brings the next pass.
			faults = append(faults, status.Fault{Reason: dbv1alpha1.ReasonTerminating, Message: terminating.Error()})
		case apierrors.IsConflict(err):
			// The world is another than the one seen: nothing that a person has to know.
			failures = append(failures, fmt.Errorf("%s: %w", step.name, err))
		default:
			faults = append(faults, status.Fault{Reason: dbv1alpha1.ReasonApplyFailed,
				Message: fmt.Sprintf("%s: %v", step.name, err)})
			failures = append(failures, fmt.Errorf("%s: %w", step.name, err))
		}
	}
	return faults, errors.Join(failures...)
}

func (p *pass) apply(ctx context.Context, desired ...client.Object) error {
	for _, object := range desired {
		if err := p.applier.Apply(ctx, p.cluster(), object); err != nil {
			return err
		}
	}
	return nil
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch

// certificates makes the authority and the certificates, and renews them.
func (p *pass) certificates(ctx context.Context) error {
	now := p.snapshot.Now
	name := p.cluster().Name
	ca, err := resources.CASecret(p.cluster(), p.snapshot.Secret(naming.CASecret(name)), now)
	if err != nil {
		return err
	}
	if err := p.apply(ctx, ca); err != nil {
		return err
	}
	p.ca = ca
	server, err := resources.ServerSecret(p.cluster(), ca, p.snapshot.Secret(naming.ServerSecret(name)), now)
	if err != nil {
		return err
	}
	replication, err := resources.ReplicationSecret(p.cluster(), ca, p.snapshot.Secret(naming.ReplicationSecret(name)), now)
	if err != nil {
		return err
	}
	return p.apply(ctx, server, replication)
}

// credentials makes the application user's Secret. A password that exists stays.
func (p *pass) credentials(ctx context.Context) error {
	if p.ca == nil {
		return nil // the step that made it has failed and said so
	}
	existing := p.snapshot.Secret(naming.AppSecret(p.cluster().Name))
	secret, err := resources.AppSecret(p.cluster(), p.ca, existing, pki.NewPassword)
	if err != nil {
		return err
	}
	return p.apply(ctx, secret)
}

// The operator may grant only what it has itself: the rights of the instances'
// Role (get, list and watch of the cluster; get, update and patch of the Lease)
// are among its own.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update;patch

// permissions makes the instances' account and the Lease they hold.
func (p *pass) permissions(ctx context.Context) error {
	cluster := p.cluster()
	return p.apply(ctx, resources.ServiceAccount(cluster), resources.Role(cluster), resources.RoleBinding(cluster),
		resources.PrimaryLease(cluster))
}

// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch

func (p *pass) services(ctx context.Context) error {
	cluster := p.cluster()
	return p.apply(ctx, resources.PrimaryService(cluster), resources.ReplicasService(cluster), resources.PodsService(cluster))
}

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete

// policies makes the NetworkPolicy and the disruption budget. A cluster of one
// has no budget: it would block every drain.
func (p *pass) policies(ctx context.Context) error {
	cluster := p.cluster()
	if err := p.apply(ctx, resources.NetworkPolicy(cluster, p.Options.OperatorNamespace)); err != nil {
		return err
	}
	keep := map[string]bool{}
	if budget := resources.DisruptionBudget(cluster, len(p.plan.Assignment.Members)); budget != nil {
		keep[budget.Name] = true
		if err := p.apply(ctx, budget); err != nil {
			return err
		}
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := p.List(ctx, &budgets, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{naming.LabelCluster: cluster.Name}); err != nil {
		return fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	return kube.Prune(ctx, p.Client, cluster, &budgets, keep)
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets;deployments,verbs=get;list;watch;create;patch;delete

// instances makes the volume and the workload of each member. Each is tried,
// whatever becomes of the others.
func (p *pass) instances(ctx context.Context) error {
	var failures []error
	for _, name := range p.plan.Assignment.Members {
		failures = append(failures, p.instance(ctx, name))
	}
	return errors.Join(failures...)
}

func (p *pass) instance(ctx context.Context, name string) error {
	var existing *corev1.PersistentVolumeClaim
	if known := p.snapshot.Instance(name); known != nil {
		existing = known.Claim
	}
	if err := p.apply(ctx, resources.DataClaim(p.cluster(), name, existing)); err != nil {
		return err
	}
	if !slices.Contains(p.plan.Apply, name) {
		return nil
	}
	workload, err := p.build.workload(name)
	if err != nil {
		return err
	}
	return p.apply(ctx, workload)
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=delete;patch

// restarts deletes the pods whose turn it is to be replaced. Promise 8: the
// instance manager stops PostgreSQL with a checkpoint, and the same instance
// comes back on the same volume.
func (p *pass) restarts(ctx context.Context) error {
	var failures []error
	for _, restart := range p.plan.Restart {
		failures = append(failures, kube.Delete(ctx, p.Client, p.snapshot.Instance(restart.Instance).Pod))
	}
	return errors.Join(failures...)
}

// removals deletes the workloads of former members, and the volumes of those
// whose pods are gone. The plan never names the primary.
func (p *pass) removals(ctx context.Context) error {
	var failures []error
	for _, name := range p.plan.Remove {
		workload := p.snapshot.Instance(name).Workload
		failures = append(failures, kube.Delete(ctx, p.Client, workload.Object().(client.Object),
			client.PropagationPolicy(metav1.DeletePropagationForeground)))
	}
	for _, name := range p.plan.RemoveVolume {
		failures = append(failures, kube.Delete(ctx, p.Client, p.snapshot.Instance(name).Claim))
	}
	return errors.Join(failures...)
}

// lease frees the Lease of a holder that cannot lead any more. The version that
// was judged is part of the write: a renewal in between refuses it. Promise 1: the
// successor has to take the Lease before it opens for writes. If the operator dies
// right after this, the assignment, which is on record, goes on.
func (p *pass) lease(ctx context.Context) error {
	if !p.plan.FreeLease {
		return nil
	}
	seen := p.snapshot.Lease
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = p.cluster().Namespace, naming.PrimaryLease(p.cluster().Name)
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:null}},"spec":{"holderIdentity":""}}`, seen.Version, naming.AnnotationFinalLSN)
	err := p.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(naming.FieldOwner))
	if err != nil { // a conflict: its holder has renewed it
		return fmt.Errorf("free the Lease of %s: %w", seen.Holder, err)
	}
	return nil
}

// request removes annotations that ask for something, once that is on record, done or
// refused: so one request is one switchover.
func (p *pass) request(ctx context.Context) error {
	for _, annotation := range p.plan.Clear {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotation)
		target := &dbv1alpha1.PostgresCluster{}
		target.Namespace, target.Name = p.cluster().Namespace, p.cluster().Name
		if err := p.Patch(ctx, target, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return fmt.Errorf("remove the annotation %s: %w", annotation, err)
		}
		// Ours is the only change: the status that is written next is not a stale one's.
		p.cluster().ResourceVersion = target.ResourceVersion
		delete(p.cluster().Annotations, annotation)
	}
	return nil
}

// roles moves the Services: the label is taken from every other pod before it is
// given to the primary, so that at no moment two pods have it.
func (p *pass) roles(ctx context.Context) error {
	ordered := slices.Clone(p.plan.Roles)
	slices.SortStableFunc(ordered, func(a, b plan.PodRole) int {
		return rank(a.Role) - rank(b.Role)
	})
	for _, role := range ordered {
		instance := p.snapshot.Instance(role.Pod.Instance)
		pods := instance.Pods()
		at := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.UID == role.Pod.UID })
		if at < 0 {
			continue
		}
		pod := pods[at]
		if err := kube.SetLabel(ctx, p.Client, pod, naming.LabelRole, role.Role); err != nil {
			return err
		}
		if pod == instance.Pod { // which the status tells of
			instance.Pod = pod.DeepCopy()
			metav1.SetMetaDataLabel(&instance.Pod.ObjectMeta, naming.LabelRole, role.Role)
		}
	}
	return nil
}

func rank(role string) int {
	if role == naming.RolePrimary {
		return 1
	}
	return 0
}

// reports says which pods are asked for their reports, and with which
// certificate.
func (p *pass) reports(context.Context) error {
	if p.ca == nil {
		return nil // the step that made it has failed and said so
	}
	var targets []reports.Target
	for _, instance := range p.snapshot.Instances {
		if pod := instance.Pod; pod != nil && pod.Status.PodIP != "" {
			targets = append(targets, reports.Target{Instance: instance.Name, PodUID: pod.UID, Host: pod.Status.PodIP})
		}
	}
	p.Reports.Hasten(client.ObjectKeyFromObject(p.cluster()), p.plan.Urgent)
	key := pki.ControlClientKey(p.ca.Data, p.snapshot.Now)
	cluster := p.cluster()
	return p.Reports.Sync(client.ObjectKeyFromObject(cluster), targets, key, func() (*tls.Config, error) {
		return pki.ControlClient(p.ca.Data, naming.ServiceHost(naming.PodsService(cluster.Name), cluster.Namespace), p.snapshot.Now)
	})
}

package leases

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
)

// lookEvery is how often it is looked for Leases that are overdue.
const lookEvery = 250 * time.Millisecond

// Tracker knows when each Lease was last seen to change. It is an event handler of
// the Leases' informer.
type Tracker struct {
	now    func() time.Time
	events chan event.TypedGenericEvent[*dbv1alpha1.PostgresCluster]

	mutex   sync.Mutex
	entries map[types.NamespacedName]*entry
}

type entry struct {
	state.Lease
	// told is how much of the silence the controller has been told: 0 nothing, 1
	// overdue, 2 expired.
	told int
}

// New makes a Tracker. The clock is injected for tests.
func New(now func() time.Time) *Tracker {
	return &Tracker{
		now: now, entries: map[types.NamespacedName]*entry{},
		events: make(chan event.TypedGenericEvent[*dbv1alpha1.PostgresCluster], 1024),
	}
}

// Events tells which clusters have a Lease that is overdue, has expired, or has
// changed its holder.
func (t *Tracker) Events() <-chan event.TypedGenericEvent[*dbv1alpha1.PostgresCluster] {
	return t.events
}

// Lease is what is known of the Lease of a cluster.
func (t *Tracker) Lease(cluster types.NamespacedName) state.Lease {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if known := t.entries[cluster]; known != nil {
		return known.Lease
	}
	return state.Lease{}
}

// OnAdd implements cache.ResourceEventHandler.
func (t *Tracker) OnAdd(object any, _ bool) { t.see(object) }

// OnUpdate implements cache.ResourceEventHandler.
func (t *Tracker) OnUpdate(_, object any) { t.see(object) }

// OnDelete implements cache.ResourceEventHandler.
func (t *Tracker) OnDelete(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if lease, ok := object.(*coordinationv1.Lease); ok {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		delete(t.entries, clusterOf(lease))
	}
}

func (t *Tracker) see(object any) {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || lease.Labels[naming.LabelCluster] == "" {
		return
	}
	name := clusterOf(lease)
	seen := state.Lease{
		Known: true, Holder: ptr.Deref(lease.Spec.HolderIdentity, ""), Version: lease.ResourceVersion, ChangedAt: t.now(),
		Duration:    time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
		AcquiredAt:  ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time,
		Transitions: ptr.Deref(lease.Spec.LeaseTransitions, 0), FinalLSN: lease.Annotations[naming.AnnotationFinalLSN],
	}
	t.mutex.Lock()
	before := t.entries[name]
	if before != nil && before.Version == seen.Version {
		t.mutex.Unlock()
		return // a resync
	}
	t.entries[name] = &entry{Lease: seen}
	t.mutex.Unlock()
	if before != nil && before.Holder != seen.Holder {
		t.tell(name)
	}
}

// Start implements manager.Runnable.
func (t *Tracker) Start(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			for _, name := range t.overdue() {
				t.tell(name)
			}
		}
	}
}

// overdue returns the clusters whose Lease has passed another mark.
func (t *Tracker) overdue() []types.NamespacedName {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var names []types.NamespacedName
	now := t.now()
	for name, known := range t.entries {
		passed := 0
		if known.Overdue(now) {
			passed = 1
		}
		if known.Expired(now) {
			passed = 2
		}
		if passed > known.told {
			known.told = passed
			names = append(names, name)
		}
	}
	return names
}

// tell asks for a pass. One that finds no room comes with the next mark, and the
// controller's own timers.
func (t *Tracker) tell(name types.NamespacedName) {
	object := &dbv1alpha1.PostgresCluster{}
	object.Namespace, object.Name = name.Namespace, name.Name
	select {
	case t.events <- event.TypedGenericEvent[*dbv1alpha1.PostgresCluster]{Object: object}:
	default:
	}
}

func clusterOf(lease *coordinationv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: lease.Namespace, Name: lease.Labels[naming.LabelCluster]}
}

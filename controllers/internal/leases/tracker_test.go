package leases_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/my-org/postgres-operator/controllers/internal/leases"
	"github.com/my-org/postgres-operator/internal/naming"
)

var name = types.NamespacedName{Namespace: "t", Name: "db"}

func object(version, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "db-primary", Namespace: "t", ResourceVersion: version,
			Labels: map[string]string{naming.LabelCluster: "db"}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](10), LeaseTransitions: ptr.To[int32](3)},
	}
}

func TestTheEndOfALeaseIsCountedOnTheOperatorsClock(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tracker := leases.New(func() time.Time { return now })
	assert.False(t, tracker.Lease(name).Known, "never seen")

	tracker.OnAdd(object("1", "db-primary/uid"), true)
	lease := tracker.Lease(name)
	assert.True(t, lease.HeldBy("db-primary"))
	assert.False(t, lease.HeldBy("db"))
	assert.Equal(t, "uid", lease.HolderPod())
	assert.Equal(t, int32(3), lease.Transitions)

	now = now.Add(5 * time.Second)
	assert.True(t, tracker.Lease(name).Overdue(now))
	assert.False(t, tracker.Lease(name).Expired(now))
	tracker.OnUpdate(nil, object("1", "db-primary/uid"))
	assert.True(t, tracker.Lease(name).Overdue(now), "a resync is no renewal")

	now = now.Add(5 * time.Second)
	assert.True(t, tracker.Lease(name).Expired(now))
	tracker.OnUpdate(nil, object("2", "db-primary/uid"))
	assert.False(t, tracker.Lease(name).Overdue(now), "it was renewed")

	tracker.OnUpdate(nil, object("3", ""))
	now = now.Add(time.Hour)
	assert.True(t, tracker.Lease(name).Free())
	assert.False(t, tracker.Lease(name).Expired(now), "what nobody holds does not expire")

	tracker.OnDelete(cache.DeletedFinalStateUnknown{Obj: object("3", "")})
	assert.False(t, tracker.Lease(name).Known)
}

func TestOnlyAnOverdueLeaseAsksForAPass(t *testing.T) {
	start := time.Now()
	moved := make(chan time.Duration, 1)
	moved <- 0
	tracker := leases.New(func() time.Time {
		offset := <-moved
		moved <- offset
		return start.Add(offset)
	})
	move := func(offset time.Duration) { <-moved; moved <- offset }
	tracker.OnAdd(object("1", "db-primary/uid"), true)
	go func() { _ = tracker.Start(t.Context()) }()
	asked := func() bool {
		select {
		case event := <-tracker.Events():
			assert.Equal(t, "db", event.Object.Name)
			return true
		case <-time.After(time.Second):
			return false
		}
	}
	tracker.OnUpdate(nil, object("2", "db-primary/uid"))
	assert.False(t, asked(), "a renewal is none of the controller's business")
	move(6 * time.Second)
	assert.Eventually(t, asked, 10*time.Second, time.Millisecond, "it is overdue")
	assert.False(t, asked(), "once")
	move(11 * time.Second)
	assert.Eventually(t, asked, 10*time.Second, time.Millisecond, "it has expired")
	tracker.OnUpdate(nil, object("3", "db-replica-1/uid"))
	assert.Eventually(t, asked, 10*time.Second, time.Millisecond, "another holds it")
}

package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// server keeps one Lease as an API server would.
type server struct {
	lease   coordinationv1.Lease
	version int
	err     error
}

func (s *server) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return s.lease.DeepCopy(), s.err
}

func (s *server) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if s.err != nil {
		return nil, s.err
	}
	if lease.ResourceVersion != s.lease.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "db-primary", errors.New("it was changed"))
	}
	s.version++
	s.lease = *lease.DeepCopy()
	s.lease.ResourceVersion = string(rune('a' + s.version))
	return s.lease.DeepCopy(), nil
}

func contenders() (*server, *time.Time, *Lease, *Lease) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &server{}
	clock := func() time.Time { return now }
	return s, &now, &Lease{Client: s, Holder: "a/1", Now: clock}, &Lease{Client: s, Holder: "b/2", Now: clock}
}

func acquire(t *testing.T, l *Lease) bool {
	t.Helper()
	held, err := l.Acquire(t.Context(), 10*time.Second)
	require.NoError(t, err)
	return held
}

func TestALeaseHasOneHolderUntilItIsReleased(t *testing.T) {
	s, _, a, b := contenders()
	assert.True(t, acquire(t, a))
	assert.False(t, acquire(t, b))
	assert.True(t, acquire(t, a), "renewed")
	require.NoError(t, b.Release(t.Context(), ""), "nothing to give up")
	assert.Equal(t, "a/1", *s.lease.Spec.HolderIdentity)
	require.NoError(t, a.Release(t.Context(), ""))
	assert.True(t, acquire(t, b), "at once")
	assert.EqualValues(t, 2, *s.lease.Spec.LeaseTransitions)
}

func TestALeaseIsTakenOnlyAfterItWasSeenUnchangedForAsLongAsItLasts(t *testing.T) {
	_, now, a, b := contenders()
	assert.True(t, acquire(t, a))
	*now = now.Add(time.Hour) // whatever the clocks say
	assert.False(t, acquire(t, b))
	*now = now.Add(9 * time.Second)
	assert.True(t, acquire(t, a))
	*now = now.Add(2 * time.Second)
	assert.False(t, acquire(t, b), "it was renewed meanwhile")
	*now = now.Add(10*time.Second + time.Second)
	assert.True(t, acquire(t, b))

	held, err := a.Acquire(t.Context(), 10*time.Second)
	require.NoError(t, err)
	assert.False(t, held, "the former holder learns it from the conflict")
	assert.False(t, acquire(t, a))
}

func TestTheSameLifeOfAPodHasItsLeaseBackAtOnce(t *testing.T) {
	s, now, a, _ := contenders()
	assert.True(t, acquire(t, a))
	again := &Lease{Client: s, Holder: a.Holder, Now: func() time.Time { return *now }}
	assert.True(t, acquire(t, again))
}

func TestAnAPIServerThatIsAwayGivesNoRight(t *testing.T) {
	s, _, a, _ := contenders()
	s.err = errors.New("connection refused")
	held, err := a.Acquire(t.Context(), 10*time.Second)
	assert.False(t, held)
	assert.ErrorContains(t, err, "connection refused")
}

func TestAnotherPodOfTheSameInstanceNeedsNotWait(t *testing.T) {
	s, now, a, b := contenders()
	assert.True(t, acquire(t, a))
	next := &Lease{Client: s, Holder: "a/2", Now: func() time.Time { return *now }}
	assert.True(t, acquire(t, next), "it has the lock of the volume")
	assert.False(t, acquire(t, b))
}

func TestWhatWasGivenUpIsNotRenewed(t *testing.T) {
	s, _, a, b := contenders()
	assert.True(t, acquire(t, a))
	held, err := a.Renew(t.Context(), 10*time.Second)
	require.NoError(t, err)
	assert.True(t, held)
	require.NoError(t, a.Release(t.Context(), "0/5000060"))
	_, err = a.Renew(t.Context(), 10*time.Second)
	require.Error(t, err)
	assert.Empty(t, *s.lease.Spec.HolderIdentity)

	lacks := func(final string) error { return errors.New("lacks what came before " + final) }
	_, err = b.AcquireIf(t.Context(), 10*time.Second, lacks)
	require.EqualError(t, err, "lacks what came before 0/5000060")
	assert.Empty(t, *s.lease.Spec.HolderIdentity, "what is refused is not taken for a moment either")
	assert.NotEmpty(t, s.lease.Annotations)

	assert.True(t, acquire(t, b))
	assert.Empty(t, s.lease.Annotations, "it is about the former holder, and is used once")
	again := &Lease{Client: s, Holder: b.Holder, Now: b.Now}
	held, err = again.AcquireIf(t.Context(), 10*time.Second, lacks)
	require.NoError(t, err)
	assert.True(t, held, "an earlier process of this pod has met the condition")
	b.Forget()
	_, held = b.Renewed()
	assert.False(t, held)
}

func TestTheTimeOfTakingIsThatOfTheProcess(t *testing.T) {
	s, now, a, _ := contenders()
	assert.True(t, acquire(t, a))
	first := s.lease.Spec.AcquireTime.Time
	*now = now.Add(3 * time.Second)
	assert.True(t, acquire(t, a), "renewed")
	assert.Equal(t, first, s.lease.Spec.AcquireTime.Time)
	again := &Lease{Client: s, Holder: a.Holder, Now: a.Now}
	assert.True(t, acquire(t, again), "a restarted container")
	assert.Equal(t, *now, s.lease.Spec.AcquireTime.Time, "so that the end of the one before is not taken for its end")
	assert.EqualValues(t, 1, *s.lease.Spec.LeaseTransitions)
}

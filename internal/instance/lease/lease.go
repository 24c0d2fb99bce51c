package lease

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/my-org/postgres-operator/internal/naming"
)

// requestTime bounds one request.
const requestTime = 2 * time.Second

// Client is what this package needs of the API server: client-go's Leases of one
// namespace.
type Client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Lease is the Lease as one holder sees it. Its methods may be called from
// several goroutines.
type Lease struct {
	Client Client
	Name   string
	// Holder is the instance and the UID of its pod, with a slash between.
	Holder string
	Now    func() time.Time

	requests sync.Mutex // one at a time
	// held is the Lease as this holder last wrote it; nil if it has to be read first.
	held *coordinationv1.Lease
	// transitions of the Lease when this holder had it: with another number,
	// somebody else had it in between.
	transitions int32
	// seen and since say how another holder's Lease was first seen: its end is
	// counted on this clock, from then, so that clocks need not agree.
	seen  string
	since time.Time

	state   sync.Mutex
	renewed time.Time // when the last successful request was begun; zero if not held
	lasts   time.Duration
}

// Condition tells whether a Lease that is another's so far may be taken; its error
// says why not. It is given where the WAL of the former holder ends; empty if that did
// not say.
type Condition func(finalLSN string) error

// Acquire tries once to take or renew the Lease for a duration. It tells whether it
// is held afterwards; not held without an error means that somebody else holds it.
//
// Another's Lease is taken only after it was seen unchanged for as long as it
// lasts; except another pod's of the same instance. The caller holds the lock of
// the instance's volume, so no server of that other pod runs.
func (l *Lease) Acquire(ctx context.Context, duration time.Duration) (bool, error) {
	return l.AcquireIf(ctx, duration, nil)
}

// AcquireIf is Acquire on a condition, which may be nil, and which is asked before.
// Whoever has taken the Lease has met it, though its process may have ended since.
func (l *Lease) AcquireIf(ctx context.Context, duration time.Duration, condition Condition) (bool, error) {
	l.requests.Lock()
	defer l.requests.Unlock()
	return l.acquire(ctx, duration, false, condition)
}

// Renew is Acquire for one that holds the Lease: what was given up meanwhile, or
// what somebody else has had in between, is not taken again.
func (l *Lease) Renew(ctx context.Context, duration time.Duration) (bool, error) {
	l.requests.Lock()
	defer l.requests.Unlock()
	if _, held := l.Renewed(); !held {
		return false, fmt.Errorf("renew Lease %s: it was given up", l.Name)
	}
	return l.acquire(ctx, duration, true, nil)
}

func (l *Lease) acquire(ctx context.Context, duration time.Duration, renewing bool, condition Condition) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	held, err := l.attempt(ctx, duration, renewing, condition)
	if apierrors.IsConflict(err) {
		// Somebody wrote it since. If it was another holder, that is known at once.
		l.held = nil
		held, err = l.attempt(ctx, duration, renewing, condition)
	}
	return held, err
}

func (l *Lease) attempt(ctx context.Context, duration time.Duration, renewing bool, condition Condition) (bool, error) {
	began := l.Now()
	current := l.held
	if current == nil {
		var err error
		if current, err = l.Client.Get(ctx, l.Name, metav1.GetOptions{}); err != nil {
			return false, fmt.Errorf("read Lease %s: %w", l.Name, err)
		}
		if !l.free(current) || (renewing && ptr.Deref(current.Spec.LeaseTransitions, 0) != l.transitions) {
			return false, nil
		}
		if condition != nil && instanceOf(ptr.Deref(current.Spec.HolderIdentity, "")) != instanceOf(l.Holder) {
			if err := condition(current.Annotations[naming.AnnotationFinalLSN]); err != nil {
				return false, err
			}
		}
	}
	now := metav1.NewMicroTime(began)
	updated := current.DeepCopy()
	if l.held == nil && !renewing {
		// Also if an earlier process of this pod had it: the kubelet's word that a
		// container has ended is about that one, if it ended before.
		updated.Spec.AcquireTime = &now
	}
	if ptr.Deref(updated.Spec.HolderIdentity, "") != l.Holder {
		updated.Spec.HolderIdentity = ptr.To(l.Holder)
		updated.Spec.LeaseTransitions = ptr.To(ptr.Deref(updated.Spec.LeaseTransitions, 0) + 1)
		delete(updated.Annotations, naming.AnnotationFinalLSN)
	}
	updated.Spec.RenewTime = &now
	updated.Spec.LeaseDurationSeconds = ptr.To(int32(duration / time.Second))
	l.state.Lock()
	if l.lasts > duration {
		l.lasts = duration // even if the answer is lost
	}
	l.state.Unlock()
	saved, err := l.Client.Update(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		return false, fmt.Errorf("renew Lease %s: %w", l.Name, err)
	}
	l.held, l.transitions = saved, ptr.Deref(saved.Spec.LeaseTransitions, 0)
	l.state.Lock()
	defer l.state.Unlock()
	if renewing && l.renewed.IsZero() {
		return false, fmt.Errorf("renew Lease %s: it was given up meanwhile", l.Name)
	}
	l.renewed, l.lasts = began, duration.Truncate(time.Second)
	return true, nil
}

// Renewed is when the request that last took or renewed the Lease was begun: its
// duration counts from no earlier. False if it is not held.
func (l *Lease) Renewed() (time.Time, bool) {
	l.state.Lock()
	defer l.state.Unlock()
	return l.renewed, !l.renewed.IsZero()
}

// Lasts is the duration with which it was last taken or renewed: everybody else goes
// by that, whatever the spec says by now.
func (l *Lease) Lasts() time.Duration {
	l.state.Lock()
	defer l.state.Unlock()
	return l.lasts
}

// Reachable tells whether the API server does its work: it knows the Lease, or has
// a reason of its own not to show it. One that answers that its storage is away
// serves nobody, and counts as away.
func (l *Lease) Reachable(ctx context.Context) bool {
	_, err := l.Client.Get(ctx, l.Name, metav1.GetOptions{})
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsTooManyRequests(err)
}

// NotSaved tells whether an error is the word of an API server that was reached and
// cannot save, as when its storage is full or has no quorum: so it is for everybody.
func NotSaved(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// Forget gives up a right that could not be renewed, without a request, and without
// waiting for one that hangs: should that still succeed, it gives no right.
func (l *Lease) Forget() {
	l.state.Lock()
	defer l.state.Unlock()
	l.renewed = time.Time{}
}

// Release gives the Lease up, so that a successor need not wait for its end, and
// says where the WAL ends, if that is known. The caller has stopped PostgreSQL.
func (l *Lease) Release(ctx context.Context, finalLSN string) error {
	l.requests.Lock()
	defer l.requests.Unlock()
	if l.held == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := l.release(ctx, l.held, finalLSN)
	if apierrors.IsConflict(err) {
		var current *coordinationv1.Lease
		if current, err = l.Client.Get(ctx, l.Name, metav1.GetOptions{}); err == nil && ptr.Deref(current.Spec.HolderIdentity, "") == l.Holder {
			err = l.release(ctx, current, finalLSN) // only its labels or the like were written
		}
	}
	if err != nil {
		return fmt.Errorf("release Lease %s: %w", l.Name, err)
	}
	l.held = nil
	l.Forget()
	return nil
}

func (l *Lease) release(ctx context.Context, held *coordinationv1.Lease, finalLSN string) error {
	released := held.DeepCopy()
	released.Spec.HolderIdentity = ptr.To("")
	released.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	delete(released.Annotations, naming.AnnotationFinalLSN)
	if finalLSN != "" {
		metav1.SetMetaDataAnnotation(&released.ObjectMeta, naming.AnnotationFinalLSN, finalLSN)
	}
	_, err := l.Client.Update(ctx, released, metav1.UpdateOptions{})
	return err
}

// free tells whether the Lease may be taken.
func (l *Lease) free(current *coordinationv1.Lease) bool {
	holder := ptr.Deref(current.Spec.HolderIdentity, "")
	if holder == "" || instanceOf(holder) == instanceOf(l.Holder) {
		return true
	}
	version := current.ResourceVersion
	if version != l.seen {
		l.seen, l.since = version, l.Now()
		return false
	}
	lasts := time.Duration(ptr.Deref(current.Spec.LeaseDurationSeconds, 0)) * time.Second
	return l.Now().Sub(l.since) > lasts
}

func instanceOf(holder string) string {
	instance, _, _ := strings.Cut(holder, "/")
	return instance
}

package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/my-org/postgres-operator/internal/naming"
)

const (
	// Duration of the right after the last renewal.
	Duration = 10 * time.Second
	// RenewEvery leaves room for two lost renewals.
	RenewEvery = 3 * time.Second
	// requestTime bounds one request.
	requestTime = 2 * time.Second
)

// Client is what this package needs of the API server: client-go's Leases of one
// namespace.
type Client interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Lease is the Lease as one holder sees it.
type Lease struct {
	Client Client
	Name   string
	// Holder is unique to one life of one pod.
	Holder string
	Now    func() time.Time

	held *coordinationv1.Lease
	// final is where the WAL of the former holder ends, if it said so.
	final string
	// seen and since say how another holder's Lease was first seen: its end is
	// counted on this clock, from then, so that clocks need not agree.
	seen  string
	since time.Time
}

// Acquire tries once to take or renew the Lease. It tells whether it is held
// afterwards. Another's Lease is taken only after it was seen unchanged for as
// long as it lasts.
func (l *Lease) Acquire(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	current := l.held
	if current == nil {
		var err error
		if current, err = l.Client.Get(ctx, l.Name, metav1.GetOptions{}); err != nil {
			return false, fmt.Errorf("read Lease %s: %w", l.Name, err)
		}
		if !l.free(current) {
			return false, nil
		}
	}
	now := metav1.NewMicroTime(l.Now())
	updated := current.DeepCopy()
	if ptr.Deref(updated.Spec.HolderIdentity, "") != l.Holder {
		updated.Spec.HolderIdentity = ptr.To(l.Holder)
		updated.Spec.AcquireTime = &now
		updated.Spec.LeaseTransitions = ptr.To(ptr.Deref(updated.Spec.LeaseTransitions, 0) + 1)
		l.final = updated.Annotations[naming.AnnotationFinalLSN]
		delete(updated.Annotations, naming.AnnotationFinalLSN)
	}
	updated.Spec.RenewTime = &now
	updated.Spec.LeaseDurationSeconds = ptr.To(int32(Duration / time.Second))
	saved, err := l.Client.Update(ctx, updated, metav1.UpdateOptions{})
	if err != nil {
		if apierrors.IsConflict(err) {
			l.held = nil // somebody wrote it since: look again
		}
		return false, fmt.Errorf("renew Lease %s: %w", l.Name, err)
	}
	l.held = saved
	return true, nil
}

// FinalLSN is where the WAL of the former holder ended, if it released the Lease
// to this one and said so.
func (l *Lease) FinalLSN() string { return l.final }

// Release gives the Lease up, so that a successor need not wait for its end, and
// says where the WAL ends, if that is known. The caller has stopped PostgreSQL.
func (l *Lease) Release(ctx context.Context, finalLSN string) error {
	if l.held == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	released := l.held.DeepCopy()
	released.Spec.HolderIdentity = ptr.To("")
	released.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	delete(released.Annotations, naming.AnnotationFinalLSN)
	if finalLSN != "" {
		metav1.SetMetaDataAnnotation(&released.ObjectMeta, naming.AnnotationFinalLSN, finalLSN)
	}
	if _, err := l.Client.Update(ctx, released, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("release Lease %s: %w", l.Name, err)
	}
	l.held = nil
	return nil
}

// free tells whether the Lease may be taken.
func (l *Lease) free(current *coordinationv1.Lease) bool {
	holder := ptr.Deref(current.Spec.HolderIdentity, "")
	if holder == "" || holder == l.Holder {
		return true
	}
	version := current.ResourceVersion
	if version != l.seen {
		l.seen, l.since = version, l.Now()
		return false
	}
	lasts := time.Duration(ptr.Deref(current.Spec.LeaseDurationSeconds, int32(Duration/time.Second))) * time.Second
	return l.Now().Sub(l.since) > lasts
}

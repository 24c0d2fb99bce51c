package state

import (
	"strings"
	"time"
)

// Lease is the right to be writable, as the operator sees it.
type Lease struct {
	Known bool
	// Holder is the instance and the UID of its pod, with a slash between; empty if
	// the Lease is free.
	Holder string
	// Version of the object; a change of it is a renewal.
	Version string
	// ChangedAt is the operator's clock when it was last seen to change. The
	// instances' clocks do not matter.
	ChangedAt time.Time
	// AcquiredAt is when the process that holds it took it, on the clock of its node;
	// zero if unknown.
	AcquiredAt time.Time
	// Duration of the right since a renewal.
	Duration time.Duration
	// Transitions counts the holders.
	Transitions int32
	// FinalLSN is where the WAL of the holder ended that released it; empty if it did
	// not say.
	FinalLSN string
}

// Free tells whether nobody holds the Lease.
func (l Lease) Free() bool { return l.Known && l.Holder == "" }

// HeldBy tells whether a pod of the instance holds the Lease.
func (l Lease) HeldBy(instance string) bool {
	holder, _, _ := strings.Cut(l.Holder, "/")
	return l.Known && holder != "" && holder == instance
}

// HolderPod is the UID of the pod that holds the Lease.
func (l Lease) HolderPod() string {
	_, pod, _ := strings.Cut(l.Holder, "/")
	return pod
}

// Overdue tells whether a held Lease was not renewed for half of its duration: a
// sign that it is worth asking its holder.
func (l Lease) Overdue(now time.Time) bool { return l.unchangedFor(now, l.Duration/2) }

// Expired tells whether a held Lease was not renewed for all of its duration, as
// far as the operator was there to see.
func (l Lease) Expired(now time.Time) bool { return l.unchangedFor(now, l.Duration) }

func (l Lease) unchangedFor(now time.Time, duration time.Duration) bool {
	return l.Known && l.Holder != "" && l.Duration > 0 && now.Sub(l.ChangedAt) >= duration
}

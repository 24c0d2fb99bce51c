package isolation

import (
	"time"

	"github.com/my-org/postgres-operator/internal/protocol"
)

// Verdict on a primary.
type Verdict string

// Verdicts.
const (
	// Continue: it has the right to be written to.
	Continue Verdict = "Continue"
	// AskPeers: it still has, and needs their word to keep it.
	AskPeers Verdict = "AskPeers"
	// Stop: its right ends before it could be renewed.
	Stop Verdict = "Stop"
)

const (
	// StopTime is what it takes at most to end every process of PostgreSQL, on a busy
	// machine: they are killed.
	StopTime = 2 * time.Second
	// AskTime bounds one question to all peers.
	AskTime = 1500 * time.Millisecond
	// AskAhead is how long before its end the right is looked after, once a renewal
	// has failed: enough for a second and a third question, since a lost packet alone
	// takes a second.
	AskAhead = 3 * AskTime
)

// Input is all that the verdict depends on. Times are durations on the primary's
// own clock, each counted from before the request was sent.
type Input struct {
	// Alone: the cluster has no other member, so nobody else could be the primary.
	Alone bool
	// OtherHolder: somebody else holds the Lease.
	OtherHolder bool
	// SinceRenewal of the Lease, and how long it lasts.
	SinceRenewal, LeaseDuration time.Duration
	// RenewalFailed: one has since the last that did not.
	RenewalFailed bool
	// Granted: every peer has said that it does not reach the API server either, and
	// holds still for a while; SinceGrant is how long ago they were asked.
	Granted    bool
	SinceGrant time.Duration
}

// Decide gives the verdict.
func Decide(in Input) Verdict {
	switch {
	case in.Alone:
		return Continue
	case in.OtherHolder:
		return Stop
	}
	left := in.LeaseDuration - StopTime - in.SinceRenewal
	if in.Granted {
		left = max(left, protocol.GrantTime-StopTime-in.SinceGrant)
	}
	ahead := AskTime
	if in.RenewalFailed {
		ahead = AskAhead
	}
	switch {
	case left > ahead:
		return Continue
	case left > 0:
		return AskPeers
	}
	return Stop
}

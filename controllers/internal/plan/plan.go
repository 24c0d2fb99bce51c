package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
)

// Plan is what one pass shall bring about.
type Plan struct {
	// Assignment goes into the cluster's status before anything is done; the
	// instances carry it out.
	Assignment Assignment

	// Apply are the members whose workload is made, or kept as it is wanted.
	Apply []string
	// Hold are the members whose workload exists and differs from what is wanted,
	// and whose turn has not come: it is left alone.
	Hold []string
	// Restart are pods that run on an outdated template, which nobody else
	// replaces.
	Restart []PodRef
	// Remove are instances whose workload is deleted; RemoveVolume those whose
	// pods are gone, so that their volume follows.
	Remove       []string
	RemoveVolume []string
	// Roles is the role label of each pod; pods that are not named are left alone.
	Roles []PodRole

	// FreeLease: the holder of the Lease cannot lead any more, and the Lease, as it
	// was seen, is to be freed.
	FreeLease bool
	// Clear are annotations of the cluster that ask for something, and have been dealt
	// with.
	Clear []string
	// Pending is what the difference between the spec and the world will do; nil if
	// there is none.
	Pending *dbv1alpha1.PendingChange
	// Failback: the primary would go home, and waits for the maintenance window.
	Failback bool
	// Urgent: the instances are to be asked at short intervals.
	Urgent bool
	// Notices are for the events of the cluster.
	Notices []Notice
	// Again is when to look again although nothing has happened; 0 if only events
	// matter.
	Again time.Duration

	refused bool

	// Waits say what is awaited, most important first.
	Waits []Wait
}

// Assignment is what the operator assigns to the instances.
type Assignment struct {
	Members          []string
	TargetPrimary    string
	CurrentPrimary   string
	SystemIdentifier string
	Timeline         int64
	Change           *dbv1alpha1.PrimaryChange
	LastChange       *dbv1alpha1.PrimaryChange
	Rejoining        string
	Restarting       *dbv1alpha1.RestartStatus
	Synchronous      *dbv1alpha1.SynchronousStatus
}

// Notice is something that a person may want to know of, once.
type Notice struct {
	Warning         bool
	Reason, Message string
}

// PodRef is one pod, by identity.
type PodRef struct {
	Instance string
	Name     string
	UID      types.UID
}

// PodRole is the role label that a pod shall have; "" removes it.
type PodRole struct {
	Pod  PodRef
	Role string
}

// Wait is something that will happen by itself.
type Wait struct {
	// Reason is one of the condition reasons of the API.
	Reason string
	// Message names the object and the next expected event.
	Message string
}

// Wanted is what the builders made of the spec, as far as decisions need it.
type Wanted struct {
	// Changed tells for each instance with a workload whether what is wanted
	// differs from it in a way that restarts its pod.
	Changed map[string]bool
}

// Decide makes the plan of one pass.
func Decide(s *state.Snapshot, wanted Wanted) Plan {
	var p Plan
	p.Assignment = assign(s)
	endRestart(s, wanted, &p.Assignment)
	choosePrimary(s, wanted, &p)
	tellLoss(s, &p)
	synchronize(s, &p.Assignment)
	allowRejoin(s, &p.Assignment)
	scaleDown(s, &p)
	tellPending(s, wanted, &p)
	rollOut(s, wanted, &p)
	p.Roles = roles(s, p.Assignment)
	p.Waits = append(p.Waits, waits(s, p.Assignment)...)
	waitForWindow(s, wanted, &p)
	return p
}

func (p *Plan) notify(warning bool, reason, format string, arguments ...any) {
	p.Notices = append(p.Notices, Notice{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, arguments...)})
}

// again asks for another look after a time, if none is due before.
func (p *Plan) again(after time.Duration) {
	if p.Again == 0 || after < p.Again {
		p.Again = after
	}
}

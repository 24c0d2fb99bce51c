package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// changeRest is how long the primary stays where it is after a change, before it
	// goes home, or a change that failed is tried again: the reason may come again.
	changeRest = time.Minute
	// failbackLag is how far home may lag behind and count as caught up, in bytes:
	// one segment of WAL, a moment of a busy primary.
	failbackLag = 16 << 20
	// reasonRequested is the reason of a change that a person asked for.
	reasonRequested = "Requested"
)

// choosePrimary decides who is and who shall be the primary. It begins a change of
// the primary, or takes the one that is under way one step further. Every step is
// written into the status before it has an effect, so that another operator goes on
// where this one ended: one incident, one promotion.
func choosePrimary(s *state.Snapshot, wanted Wanted, p *Plan) {
	a := &p.Assignment
	if a.Change == nil {
		observePrimary(s, a)
		beginChange(s, wanted, p)
	} else {
		if requested(s) && !asksFor(s, *a.Change) {
			p.refuse("instance %s is being replaced as the primary already: ask again when that has ended", a.Change.From)
		}
		continueChange(s, p)
	}
	if requested(s) && (a.Change != nil || p.refused) {
		p.Clear = append(p.Clear, naming.AnnotationSwitchover)
	}
	freeLease(s, p)
	p.Urgent = a.Change != nil || (len(a.Members) > 1 && s.Lease.Overdue(s.Now))
}

// observePrimary records what the primary says of itself.
func observePrimary(s *state.Snapshot, a *Assignment) {
	target := s.Instance(a.TargetPrimary)
	if !target.IsPrimary() {
		return
	}
	report := target.Report.Report
	a.CurrentPrimary = a.TargetPrimary
	// Recorded once, from the instance that was told to initialise. From then on no
	// instance initialises anew, whatever happens to volumes.
	if a.SystemIdentifier == "" {
		a.SystemIdentifier = report.SystemIdentifier
	}
	if report.Timeline > 0 {
		a.Timeline = int64(report.Timeline)
	}
}

// beginChange starts a failover or a switchover, if there is a reason to and the
// cluster has ever had a primary. What a person asks for comes after what cannot
// wait, and before what the policy wants.
func beginChange(s *state.Snapshot, wanted Wanted, p *Plan) {
	a := &p.Assignment
	if a.CurrentPrimary == "" || a.CurrentPrimary != a.TargetPrimary || a.SystemIdentifier == "" || len(a.Members) < 2 {
		if requested(s) {
			p.refuse("the cluster has no primary and replica yet")
		}
		return
	}
	if naming.Fenced(s.Cluster.Annotations, a.TargetPrimary) {
		if requested(s) {
			p.refuse("instance %s is fenced: remove the annotation %s first", a.TargetPrimary, naming.AnnotationFence)
		}
		return
	}
	if lost := findLoss(s, p); lost != nil {
		if lost.handover {
			if to := bestHandover(s, *a); to != "" {
				p.begin(s, dbv1alpha1.PrimaryChangeSwitchover, to, lost.reason, lost.message)
			}
			return
		}
		if why := nobody(s, *a); lost.answers && why != "" {
			p.wait(dbv1alpha1.ReasonNoCandidate, "%s, and %s", lost.message, why)
			return
		}
		p.begin(s, dbv1alpha1.PrimaryChangeFailover, "", lost.reason, lost.message)
		return
	}
	if requested(s) {
		beginRequested(s, p)
		return
	}
	if !beginUpdate(s, wanted, p) {
		beginFailback(s, p)
	}
}

// begin writes down a change. A failover has no target yet: the former primary
// stays the target of the assignment, so that nobody else leads, while the change
// forbids it to.
func (p *Plan) begin(s *state.Snapshot, kind dbv1alpha1.PrimaryChangeType, to, reason, message string) {
	a := &p.Assignment
	number := int64(1)
	if a.LastChange != nil {
		number = a.LastChange.Number + 1
	}
	a.Change = &dbv1alpha1.PrimaryChange{
		Number: number, Type: kind, From: a.CurrentPrimary, To: to, Reason: reason, Message: message,
		StartedAt: metav1.NewTime(s.Now.Truncate(time.Second)), LeaseTransitions: s.Lease.Transitions,
	}
	if to != "" {
		a.TargetPrimary = to
	}
	p.notify(kind == dbv1alpha1.PrimaryChangeFailover, string(kind)+"Started", "%s from %s: %s", kind, a.CurrentPrimary, message)
}

// end writes down how the change ended.
func (p *Plan) end(s *state.Snapshot, result, message string) {
	a := &p.Assignment
	done := *a.Change
	completed := metav1.NewTime(s.Now.Truncate(time.Second))
	done.CompletedAt, done.Result = &completed, result
	if message != "" {
		done.Message += "; " + message
	}
	a.LastChange, a.Change = &done, nil
	if result == dbv1alpha1.PrimaryChangePromoted {
		p.notify(false, string(done.Type)+"Completed", "instance %s is the primary, after %s as of %s",
			done.To, completed.Sub(done.StartedAt.Time), done.From)
		return
	}
	p.notify(true, string(done.Type)+"Reverted", "instance %s stays the primary: %s", done.From, message)
}

func requested(s *state.Snapshot) bool {
	_, asked := s.Cluster.Annotations[naming.AnnotationSwitchover]
	return asked
}

// asksFor tells whether the request is what a change under way was begun for.
func asksFor(s *state.Snapshot, change dbv1alpha1.PrimaryChange) bool {
	to := s.Cluster.Annotations[naming.AnnotationSwitchover]
	return change.Reason == reasonRequested && (to == "" || to == change.To)
}

// beginRequested carries out the switchover that a person asks for, or says why
// not.
func beginRequested(s *state.Snapshot, p *Plan) {
	a := p.Assignment
	to := s.Cluster.Annotations[naming.AnnotationSwitchover]
	switch {
	case to == "":
		if to = bestHandover(s, a); to == "" {
			p.refuse("no replica streams from the primary")
			return
		}
	case to == a.CurrentPrimary:
		p.refuse("instance %s is the primary already", to)
		return
	case !slices.Contains(a.Members, to):
		p.refuse("there is no instance %q: choose one of %v", to, a.Members)
		return
	}
	if why := unfitForHandover(s, a, to); why != "" {
		p.refuse("%s", why)
		return
	}
	p.begin(s, dbv1alpha1.PrimaryChangeSwitchover, to, reasonRequested, "asked for by the annotation "+naming.AnnotationSwitchover)
}

// refuse drops the request, and tells why.
func (p *Plan) refuse(format string, arguments ...any) {
	p.refused = true
	p.notify(true, "SwitchoverRefused", "the switchover that was asked for is refused: "+format, arguments...)
}

// beginFailback brings the primary home, if the policy says so and home is fit.
func beginFailback(s *state.Snapshot, p *Plan) {
	a := p.Assignment
	home := naming.HomeInstance(s.Cluster.Name)
	if s.Cluster.Spec.Failover.Failback != dbv1alpha1.FailbackAutomatic || a.CurrentPrimary == home ||
		!slices.Contains(a.Members, home) || unfitForHandover(s, a, home) != "" || !caughtUp(s, a.CurrentPrimary, home) {
		return
	}
	if a.LastChange != nil && a.LastChange.CompletedAt != nil {
		if rest := changeRest - s.Now.Sub(a.LastChange.CompletedAt.Time); rest > 0 {
			p.again(rest)
			return
		}
	}
	if p.Failback = !mayDisrupt(s); p.Failback {
		p.again(nextWindow(s).Sub(s.Now))
		return
	}
	p.begin(s, dbv1alpha1.PrimaryChangeSwitchover, home, "Failback", "spec.failover.failback is Automatic, and the home instance streams again")
}

// caughtUp tells whether the primary has seen a replica stream, and have nearly all
// of its WAL.
func caughtUp(s *state.Snapshot, primary, replica string) bool {
	if !leads(s.Instance(primary)) {
		return false
	}
	report := s.Instance(primary).Report.Report
	written, err := postgres.ParseLSN(report.WrittenLSN)
	if err != nil {
		return false
	}
	for _, connection := range report.Replicas {
		flushed, err := postgres.ParseLSN(connection.FlushLSN)
		if connection.Instance == replica && connection.State == "streaming" && err == nil {
			return written <= flushed+failbackLag
		}
	}
	return false
}

// bestHandover is the replica that a planned change would best go to: one that
// streams; the preferred one among them.
func bestHandover(s *state.Snapshot, a Assignment) string {
	for _, name := range byPreference(s, a.Members) {
		if name != a.CurrentPrimary && unfitForHandover(s, a, name) == "" {
			return name
		}
	}
	return ""
}

// unfitForHandover says why an instance cannot take over without loss.
func unfitForHandover(s *state.Snapshot, a Assignment, name string) string {
	instance := s.Instance(name)
	report, known := lastReport(instance)
	switch {
	case naming.Fenced(s.Cluster.Annotations, name):
		return "instance " + name + " is fenced"
	case instance == nil || instance.Pod == nil || !known:
		return "instance " + name + " does not answer"
	case report.State != protocol.StateRunning || report.Role != protocol.RoleReplica:
		return "instance " + name + " is not a running replica"
	case a.Timeline > 0 && int64(report.Timeline) != a.Timeline:
		return "instance " + name + " is not on the primary's timeline"
	case !report.Streaming && !hasAll(s.Lease, report):
		return "instance " + name + " does not stream from the primary"
	}
	return ""
}

// hasAll tells whether a replica has received what a primary that has stopped
// left behind.
func hasAll(lease state.Lease, report protocol.Report) bool {
	final, err := postgres.ParseLSN(lease.FinalLSN)
	if err != nil || !lease.Free() {
		return false
	}
	received, err := postgres.ParseLSN(report.ReceivedLSN)
	return err == nil && received > final
}

func lastReport(instance *state.Instance) (protocol.Report, bool) {
	if instance == nil || !instance.Report.Current() {
		return protocol.Report{}, false
	}
	return instance.Report.Report, true
}

// byPreference orders instances as spec.failover.priority does, the others behind
// by ordinal; behind all of them those on nodes that are about to be emptied.
func byPreference(s *state.Snapshot, members []string) []string {
	priority := s.Cluster.Spec.Failover.Priority
	rank := func(name string) int {
		if at := slices.Index(priority, name); at >= 0 {
			return at
		}
		return len(priority)
	}
	ordered := slices.Clone(members) // by ordinal
	slices.SortStableFunc(ordered, func(x, y string) int {
		if cordoned := s.OnCordonedNode(x); cordoned != s.OnCordonedNode(y) {
			return order(cordoned)
		}
		return rank(x) - rank(y)
	})
	return ordered
}

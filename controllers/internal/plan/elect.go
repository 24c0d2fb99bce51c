package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// cutTime is how long replicas may take to stop receiving before those that
	// have are compared without them.
	cutTime = 5 * time.Second
	// handoverTime is how long a planned change may take before the former primary,
	// if it is there, leads again. A checkpoint may be in it.
	handoverTime = 60 * time.Second
	// stepTime is how often a change that is under way is looked at although nothing
	// has happened.
	stepTime = time.Second
)

// continueChange takes the change that is under way one step further.
func continueChange(s *state.Snapshot, p *Plan) {
	p.again(stepTime)
	change := p.Assignment.Change
	switch {
	case change.To == "":
		elect(s, p)
	case leads(s.Instance(change.To)):
		observePrimary(s, &p.Assignment)
		p.end(s, dbv1alpha1.PrimaryChangePromoted, "")
	case change.Type == dbv1alpha1.PrimaryChangeSwitchover:
		watchHandover(s, p)
	default:
		watchPromotion(s, p)
	}
}

// elect chooses the successor: of those that answer, have cut their stream and are
// on the known timeline, the one that has received most. With synchronous
// replication, enough of them must have answered to prove that it has every
// acknowledged commit.
func elect(s *state.Snapshot, p *Plan) {
	change := p.Assignment.Change
	candidates, heard, pending := candidates(s, p.Assignment)
	waited := s.Now.Sub(change.StartedAt.Time)
	if len(pending) > 0 && waited < cutTime {
		p.wait(dbv1alpha1.ReasonFailingOver, "%s have to stop receiving before they are compared", strings.Join(pending, ", "))
		return
	}
	proof, why := proven(s, change.From, heard)
	if len(candidates) == 0 {
		why = noCandidate(p.Assignment)
	}
	if why != "" {
		if waited < cutTime || !revertElection(s, p) {
			p.wait(dbv1alpha1.ReasonNoCandidate, "primary %s is lost, and %s", change.From, why)
		}
		return
	}
	next := *change
	next.To, next.LeaseTransitions = most(s, candidates), s.Lease.Transitions
	if proof {
		nothing := int64(0)
		next.LostBytesAtMost = &nothing
	}
	p.Assignment.Change, p.Assignment.TargetPrimary = &next, next.To
	p.wait(dbv1alpha1.ReasonFailingOver, "instance %s has to be promoted", next.To)
}

// revertElection gives the incident up if the former primary is well after all,
// since nobody can take its place.
func revertElection(s *state.Snapshot, p *Plan) bool {
	from := p.Assignment.Change.From
	report, answers := lastReport(s.Instance(from))
	if !answers || report.State == protocol.StateFenced || report.State == protocol.StateBlocked || diskFull(report) {
		return false
	}
	p.end(s, dbv1alpha1.PrimaryChangeReverted, "instance "+from+" answers again, and no replica could take over")
	return true
}

// candidates are the replicas that may lead; those that were heard, which is all
// that have cut their stream, whatever timeline they are on; and those that are
// still to cut it or have not answered yet.
func candidates(s *state.Snapshot, a Assignment) (ready, heard, pending []string) {
	replicas, unknown := replicasOf(s, a, a.Change.From)
	for _, name := range replicas {
		if s.Instance(name).Report.Report.StreamCut == a.Change.Number {
			heard = append(heard, name)
		} else {
			pending = append(pending, name)
		}
	}
	return onTimeline(s, a, heard), heard, append(pending, unknown...)
}

// replicasOf are the replicas that answer, beside one instance; and those of which
// this operator, which has just started, knows nothing yet. One that is fenced is
// neither.
func replicasOf(s *state.Snapshot, a Assignment, former string) (answering, unknown []string) {
	for _, name := range a.Members {
		instance := s.Instance(name)
		if name == former || instance == nil || instance.Pod == nil || naming.Fenced(s.Cluster.Annotations, name) {
			continue
		}
		switch entry := instance.Report; {
		case entry.Error == "" && !entry.Known:
			unknown = append(unknown, name)
		case entry.Current() && entry.Report.Role == protocol.RoleReplica:
			answering = append(answering, name)
		}
	}
	return answering, unknown
}

// onTimeline are those that are on the known timeline; a later one is that of a
// primary which nobody has seen lead.
func onTimeline(s *state.Snapshot, a Assignment, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return int64(s.Instance(name).Report.Report.Timeline) < a.Timeline
	})
}

// nobody says why no replica could take over from the primary, as far as is known;
// empty if one could.
func nobody(s *state.Snapshot, a Assignment) string {
	replicas, _ := replicasOf(s, a, a.CurrentPrimary)
	if len(onTimeline(s, a, replicas)) == 0 {
		return noCandidate(a)
	}
	_, why := proven(s, a.CurrentPrimary, replicas)
	return why
}

func noCandidate(a Assignment) string {
	return fmt.Sprintf("no replica can take over: one has to answer that has finished its copy, is on timeline %d and is not fenced", a.Timeline)
}

// most is the candidate that has received most; the preferred one among equals.
func most(s *state.Snapshot, candidates []string) string {
	// Of equals, MaxFunc returns the first.
	return slices.MaxFunc(byPreference(s, candidates), func(x, y string) int {
		return cmp.Or(cmp.Compare(timelineOf(s, x), timelineOf(s, y)), cmp.Compare(receivedBy(s, x), receivedBy(s, y)))
	})
}

func timelineOf(s *state.Snapshot, name string) uint32 {
	report, _ := lastReport(s.Instance(name))
	return report.Timeline
}

func receivedBy(s *state.Snapshot, name string) postgres.LSN {
	report, _ := lastReport(s.Instance(name))
	lsn, err := postgres.ParseLSN(report.ReceivedLSN)
	if err != nil {
		return 0
	}
	return lsn
}

// proven tells whether the best of the replicas that were heard must have every acknowledged
// commit. It says why nobody may be promoted if that was promised and cannot be
// shown: under each rule that may have been in force, a commit is on `number` of
// the replicas that count, so one of any R answering ones has it if R + number is
// more than there are.
func proven(s *state.Snapshot, from string, heard []string) (bool, string) {
	synchronous := s.Cluster.Status.Synchronous
	if synchronous == nil {
		return false, ""
	}
	proof := true
	for _, rule := range synchronous.Possible {
		if rule.Number == 0 {
			proof = false
			continue
		}
		standbys := rule.Replicas(from)
		answering := 0
		for _, name := range standbys {
			if slices.Contains(heard, name) {
				answering++
			}
		}
		if answering+int(rule.Number) <= len(standbys) {
			return false, fmt.Sprintf("a commit was acknowledged by %d of %v, of which %d answer: %d have to, so that none is lost",
				rule.Number, standbys, answering, len(standbys)-int(rule.Number)+1)
		}
	}
	return proof, ""
}

// watchHandover waits for the successor of a planned change, and gives the change
// up if it cannot lead: the former primary, which stopped cleanly, then leads
// again. If that is lost too, it is a failover from here on.
func watchHandover(s *state.Snapshot, p *Plan) {
	change := p.Assignment.Change
	to := s.Instance(change.To)
	report, answers := lastReport(to)
	refused := answers && report.Refusal != nil && report.Refusal.Change == change.Number
	late := s.Now.Sub(change.StartedAt.Time) >= handoverTime
	gone := to == nil || to.Pod == nil || s.Dead(to)
	unclean := cameBack(s, change.From)
	if (!refused && !late && !gone && !unclean) || (holds(s, change.To) && !s.Dead(to)) {
		p.wait(dbv1alpha1.ReasonSwitchingOver, "instance %s has to stop, and %s to be promoted", change.From, change.To)
		return
	}
	why := "instance " + change.To + " did not become the primary in time"
	switch {
	case refused:
		why = report.Refusal.Message
	case unclean:
		why = "it did not stop cleanly, and is back with another pod"
	case gone:
		why = "the pod of instance " + change.To + " is gone"
	}
	from := change.From
	if _, answers := lastReport(s.Instance(from)); (answers || s.Lease.HeldBy(from)) && (refused || !mayHaveLed(s, change)) {
		p.Assignment.TargetPrimary = from
		p.end(s, dbv1alpha1.PrimaryChangeReverted, why)
		return
	}
	led := !refused && mayHaveLed(s, change)
	if limit := s.Cluster.Spec.Failover.PrimaryDown(); !led && s.Now.Sub(change.StartedAt.Time) < limit {
		p.wait(dbv1alpha1.ReasonSwitchingOver, "%s; instance %s has to come back within %s of the start of the change", why, from, limit)
		return
	}
	p.restart(s, led, "ChangeFailed", why+", and instance "+from+" cannot go on")
}

// cameBack tells whether an instance runs in another pod than the one that holds the
// Lease, and which is gone: so it never stopped cleanly, and nobody gives up the Lease.
// The new pod has the volume, on which nothing of the old one is left.
func cameBack(s *state.Snapshot, name string) bool {
	instance := s.Instance(name)
	report, answers := lastReport(instance)
	if !answers || !s.Lease.HeldBy(name) || report.State == protocol.StateWaitingForVolume || report.State == protocol.StateStarting {
		return false
	}
	return !slices.ContainsFunc(instance.Pods(), func(pod *corev1.Pod) bool { return string(pod.UID) == s.Lease.HolderPod() })
}

// holds tells whether an instance has the Lease, and with it the right to lead.
func holds(s *state.Snapshot, name string) bool {
	return s.Lease.HeldBy(name) && !s.Lease.Expired(s.Now)
}

// mayHaveLed tells whether the chosen one may have accepted writes: it has taken
// the Lease, which nobody else could.
func mayHaveLed(s *state.Snapshot, change *dbv1alpha1.PrimaryChange) bool {
	return !s.Lease.Known || s.Lease.Transitions > change.LeaseTransitions
}

// watchPromotion waits for the chosen one, and holds another election if it is
// lost meanwhile.
func watchPromotion(s *state.Snapshot, p *Plan) {
	change := p.Assignment.Change
	to := s.Instance(change.To)
	report, answers := lastReport(to)
	down, isDown := downFor(s, to)
	switch {
	case to == nil || to.Pod == nil || s.Dead(to):
	case to.Report.Error != "" && s.Now.Sub(to.Report.FailedSince) >= cutTime && !holds(s, change.To):
	case answers && report.State == protocol.StateBlocked:
	case isDown && down >= s.Cluster.Spec.Failover.PrimaryDown():
	default:
		p.wait(dbv1alpha1.ReasonFailingOver, "instance %s has to be promoted", change.To)
		return
	}
	p.restart(s, mayHaveLed(s, change), "CandidateLost", "instance "+change.To+" was lost before it was promoted")
}

// restart makes a new election of a change that cannot end as it was begun. It has
// a number of its own, since the streams have to be cut anew. If the chosen one may
// have led, it is the one that was lost: its predecessor lacks what it accepted.
func (p *Plan) restart(s *state.Snapshot, led bool, reason, message string) {
	a := &p.Assignment
	former := *a.Change
	if led {
		a.CurrentPrimary = former.To
	}
	a.LastChange = &former // for the number
	a.TargetPrimary = a.CurrentPrimary
	p.begin(s, dbv1alpha1.PrimaryChangeFailover, "", reason, message)
	a.LastChange = s.Cluster.Status.LastPrimaryChange
}

// freeLease frees the Lease of a holder that cannot lead any more, while the
// primary is being changed: it has expired and its holder does not answer, or the
// kubelet reports that the holder's container has ended. Whoever is the target
// still has to take it.
func freeLease(s *state.Snapshot, p *Plan) {
	change := p.Assignment.Change
	lease := s.Lease
	if change == nil || !lease.Known || lease.Holder == "" || holds(s, change.To) {
		return
	}
	for _, instance := range s.Instances {
		for _, pod := range instance.Pods() {
			if string(pod.UID) != lease.HolderPod() {
				continue
			}
			asked := pod == instance.Pod && leads(instance)
			p.FreeLease = s.PodDead(instance, pod) || (lease.Expired(s.Now) && !asked)
			return
		}
	}
	// The holder's pod is not there: nobody can ask it, and only time tells.
	p.FreeLease = lease.Expired(s.Now)
}

// leads tells whether an instance answers that its PostgreSQL runs as a primary.
func leads(instance *state.Instance) bool {
	report, answers := lastReport(instance)
	return answers && report.State == protocol.StateRunning && report.Role == protocol.RolePrimary
}

package plan

import (
	"time"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// restartTime is how long the kubelet may take to put a new container in the
	// place of one that has ended. It does so at once the first time; later it
	// waits for longer and longer, and says so. An instance manager has as long to
	// start a PostgreSQL that it stopped itself.
	restartTime = 3 * time.Second
	// silentTime is how long the primary must leave questions unanswered, while its
	// Lease expires: one question without an answer is nothing.
	silentTime = time.Second
)

// loss is why the primary needs a successor. A handover is one that the primary
// itself takes part in, or has: it stops cleanly, and says where its WAL ends.
type loss struct {
	handover bool
	// answers: its instance manager does, so that it may also come back by itself;
	// without anybody who could take over, it is left to that.
	answers         bool
	reason, message string
}

// findLoss tells whether the primary is lost. Unknown is not lost: each answer
// leans on something that was seen.
func findLoss(s *state.Snapshot, p *Plan) *loss {
	name := p.Assignment.TargetPrimary
	primary := s.Instance(name)
	switch {
	case primary == nil || primary.Pod == nil:
		return withoutPod(s, p, name, primary)
	case s.Lease.Free() && s.Lease.FinalLSN != "" && !primary.IsPrimary() && !justReverted(s, p) && !restarts(s, p, primary) && !inPlace(s, p, name):
		return &loss{handover: true, reason: "PrimaryStopped", message: "instance " + name + " has stopped cleanly"}
	case s.Dead(primary):
		return deadContainer(s, p, name, primary)
	case s.Lease.HeldBy(name) && s.Lease.Expired(s.Now):
		return silent(s, p, name, primary)
	}
	return down(s, p, name, primary)
}

// restarts tells whether PostgreSQL of an instance was stopped by its manager, which
// starts it again: a fence was lifted. That is as fast as a switchover.
func restarts(s *state.Snapshot, p *Plan, primary *state.Instance) bool {
	report, answers := lastReport(primary)
	since, _ := downFor(s, primary)
	if !answers || report.State == protocol.StateStopping || report.State == protocol.StateBlocked || since >= restartTime {
		return false
	}
	p.again(restartTime - since)
	return true
}

// inPlace tells whether the primary is being restarted where it is, as planned: it has
// as long as after a crash. It has stopped cleanly, so that nothing is lost if a
// replica takes over after all.
func inPlace(s *state.Snapshot, p *Plan, name string) bool {
	restart := p.Assignment.Restarting
	if restart == nil || restart.Instance != name {
		return false
	}
	left := s.Cluster.Spec.Failover.PrimaryDown() - s.Now.Sub(restart.StartedAt.Time)
	if left > 0 {
		p.again(left)
	}
	return left > 0
}

// justReverted tells whether a change was given up a moment ago: the former
// primary is on its way back, and its Lease is still as the successor left it.
func justReverted(s *state.Snapshot, p *Plan) bool {
	last := p.Assignment.LastChange
	return last != nil && last.Result == dbv1alpha1.PrimaryChangeReverted && last.CompletedAt != nil &&
		s.Now.Sub(last.CompletedAt.Time) < handoverTime
}

// withoutPod: the pod is being deleted, or has gone. A pod that is being deleted
// stops its server cleanly; one that has gone without releasing the Lease has to
// be waited for.
func withoutPod(s *state.Snapshot, p *Plan, name string, primary *state.Instance) *loss {
	switch {
	case s.Lease.HeldBy(name) && s.Lease.Expired(s.Now):
		return &loss{reason: "LeaseExpired", message: "the pod of instance " + name + " is going or gone, and its Lease has expired"}
	case inPlace(s, p, name):
		p.wait(dbv1alpha1.ReasonRollingOut, "primary %s is being restarted where it is", name)
		return nil
	case primary != nil && len(primary.Terminating) > 0:
		return &loss{handover: true, reason: "PodDeleted", message: "the pod of instance " + name + " is being deleted"}
	case s.Lease.Free():
		return &loss{handover: s.Lease.FinalLSN != "", reason: "PodGone", message: "the pod of instance " + name + " has gone"}
	}
	p.wait(dbv1alpha1.ReasonFailingOver, "the pod of primary %s has gone; its Lease has to be released or to expire", name)
	return nil
}

// deadContainer: the kubelet reports that the container has ended. It starts
// another at once, which is faster than a failover and loses nothing; unless it
// has ended again and again.
func deadContainer(s *state.Snapshot, p *Plan, name string, primary *state.Instance) *loss {
	if primary.Looping() || (primary.Report.Error != "" && s.Now.Sub(primary.Report.FailedSince) >= restartTime) {
		return &loss{reason: "ContainerDead", message: "the kubelet reports that the container of instance " + name + " has ended"}
	}
	p.again(restartTime)
	return nil
}

// silent: the Lease has expired. That is a permission and no reason: a primary
// that answers, and is one, goes on.
func silent(s *state.Snapshot, p *Plan, name string, primary *state.Instance) *loss {
	report := primary.Report
	if report.Error != "" {
		if s.Now.Sub(report.FailedSince) >= silentTime {
			return &loss{reason: "Unreachable", message: "instance " + name + " neither renews its Lease nor answers"}
		}
		p.again(silentTime)
		return nil
	}
	if report.Known && report.Report.Role == protocol.RoleNone && !diskFull(report.Report) {
		return &loss{answers: true, reason: "Isolated", message: "instance " + name + " does not renew its Lease, and has stopped PostgreSQL"}
	}
	return nil
}

// down: the instance manager answers, and perhaps PostgreSQL does not run. A full disk is
// not cured by a failover.
func down(s *state.Snapshot, p *Plan, name string, primary *state.Instance) *loss {
	report := primary.Report.Report
	since, isDown := downFor(s, primary)
	if !isDown || diskFull(report) {
		return nil
	}
	limit := s.Cluster.Spec.Failover.PrimaryDown()
	if since < limit {
		p.again(limit - since)
		return nil
	}
	why := "PostgreSQL of instance " + name + " has been down for " + limit.String()
	if report.Problem != nil {
		why += ": " + report.Problem.Message
	}
	return &loss{answers: true, reason: "PrimaryDown", message: why}
}

// downFor is how long an instance that answers has been without a PostgreSQL that
// runs; false if it runs, or does not answer.
func downFor(s *state.Snapshot, instance *state.Instance) (time.Duration, bool) {
	if _, answers := lastReport(instance); !answers || instance.Report.DownSince.IsZero() {
		return 0, false
	}
	return s.Now.Sub(instance.Report.DownSince), true
}

func diskFull(report protocol.Report) bool {
	return report.Problem != nil && report.Problem.Reason == protocol.ProblemDiskFull
}

package plan

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
)

// reasonUpdate is the reason of a change of the primary that an update begins.
const reasonUpdate = "Update"

// update is what has to be restarted.
type update struct {
	// outdated have another pod template than is wanted; pending wait for a restart of
	// PostgreSQL alone.
	outdated, pending []*state.Instance
	// unsettled is an instance that is up to date and has to serve, and to stream,
	// before the next one is restarted; empty if there is none.
	unsettled string
	// next is the one whose turn it is; nil if there is none. Pods are replaced first:
	// that restarts PostgreSQL too.
	next *state.Instance
}

// findUpdate looks for what has to be restarted: one instance after the other,
// replicas first, each well before the next, the primary last.
//
// An outdated instance that does not serve anyway goes first, and does not have
// to serve before: its health is not needed for its own replacement, so a broken
// version can be taken back.
func findUpdate(s *state.Snapshot, wanted Wanted, a Assignment) update {
	var u update
	for _, name := range a.Members {
		instance := s.Instance(name)
		report, _ := lastReport(instance)
		switch {
		case !instance.Exists():
			continue
		case wanted.Changed[name] || instance.OutdatedPod():
			u.outdated = append(u.outdated, instance)
			continue
		case len(report.PendingRestart) > 0:
			u.pending = append(u.pending, instance)
		}
		if !isWell(s, instance, a) {
			u.unsettled = name
		}
	}
	if u.next = nextOf(u.outdated, a.TargetPrimary); u.next == nil {
		u.next = nextOf(u.pending, a.TargetPrimary)
	}
	return u
}

// isWell tells whether an instance serves, as the primary or streaming from it, and has
// loaded the configuration: before, it is not known whether it has to restart.
func isWell(s *state.Snapshot, instance *state.Instance, a Assignment) bool {
	report, answers := lastReport(instance)
	return answers && report.ConfigGeneration >= s.Cluster.Generation && instance.Serving() && !instance.Replacing() && (leads(instance) && instance.Name == a.TargetPrimary || report.Streaming)
}

// nextOf chooses whose turn it is: those that do not serve before those that do, the
// primary last among its like, higher ordinals first.
func nextOf(instances []*state.Instance, primary string) *state.Instance {
	if len(instances) == 0 {
		return nil
	}
	return slices.MinFunc(instances, func(a, b *state.Instance) int {
		if a.Serving() != b.Serving() {
			return order(a.Serving())
		}
		if (a.Name == primary) != (b.Name == primary) {
			return order(a.Name == primary)
		}
		return b.Ordinal - a.Ordinal
	})
}

// all are the instances that have to be restarted, in either way.
func (u update) all() []*state.Instance { return slices.Concat(u.outdated, u.pending) }

// mayBegin tells whether the next instance may be restarted now.
func (u update) mayBegin(s *state.Snapshot) bool {
	if u.next == nil || (u.unsettled != "" && u.next.Serving()) {
		return false
	}
	return !u.next.Serving() || mayDisrupt(s)
}

// successor is the replica to which the primary moves before it is restarted; empty if
// it is restarted where it is: because the spec says so, or no replica is fit for it.
// One that keeps a parameter as the primary has it would have to restart itself as
// soon as it led. Those that wait for a restart themselves count only for what is to
// come later.
func (u update) successor(s *state.Snapshot, a Assignment, later bool) string {
	if s.Cluster.Spec.Update.Primary == dbv1alpha1.PrimaryUpdateRestart {
		return ""
	}
	for _, name := range byPreference(s, a.Members) {
		if name == a.CurrentPrimary || unfitForHandover(s, a, name) != "" {
			continue
		}
		if report, _ := lastReport(s.Instance(name)); (later || len(report.PendingRestart) == 0) && len(report.HeldParameters) == 0 {
			return name
		}
	}
	return ""
}

// movesFirst tells whether it is the turn of the primary, and it moves away before.
func (u update) movesFirst(s *state.Snapshot, a Assignment) bool {
	return u.next != nil && u.next.Name == a.CurrentPrimary && u.next.Serving() && u.successor(s, a, false) != ""
}

// beginUpdate moves the primary away when it is its turn to be restarted; it tells
// whether there is any update, so that nothing else moves the primary.
func beginUpdate(s *state.Snapshot, wanted Wanted, p *Plan) bool {
	a := &p.Assignment
	u := findUpdate(s, wanted, *a)
	if !u.mayBegin(s) || !u.movesFirst(s, *a) || a.Restarting != nil {
		return u.next != nil
	}
	if last := a.LastChange; last != nil && last.Result == dbv1alpha1.PrimaryChangeReverted && last.CompletedAt != nil {
		if rest := changeRest - s.Now.Sub(last.CompletedAt.Time); rest > 0 {
			p.again(rest)
			return true
		}
	}
	p.begin(s, dbv1alpha1.PrimaryChangeSwitchover, u.successor(s, *a, false), reasonUpdate, "instance "+u.next.Name+" has to be restarted")
	return true
}

// rollOut makes the missing workloads at once, and brings outdated ones up to date one
// at a time. Then it lets those restart PostgreSQL that wait for it.
func rollOut(s *state.Snapshot, wanted Wanted, p *Plan) {
	u := findUpdate(s, wanted, p.Assignment)
	for _, name := range p.Assignment.Members {
		if !slices.Contains(u.outdated, s.Instance(name)) {
			p.Apply = append(p.Apply, name)
		}
	}
	begins := p.Assignment.Change == nil && u.mayBegin(s) && !u.movesFirst(s, p.Assignment) && (p.Assignment.Restarting == nil || p.Assignment.Restarting.Instance == u.next.Name || !u.next.Serving())
	for _, instance := range u.outdated {
		if !begins || instance != u.next {
			p.Hold = append(p.Hold, instance.Name)
			continue
		}
		p.restartNow(s, instance, dbv1alpha1.RestartPod)
		p.Apply = append(p.Apply, instance.Name)
		// Before the StatefulSet has its new template, its controller would make
		// the same pod again; so the restart comes in the pass after.
		if !wanted.Changed[instance.Name] && instance.OutdatedPod() {
			p.Restart = append(p.Restart, ref(instance, instance.Pod))
		}
	}
	if begins && len(u.outdated) == 0 {
		p.restartNow(s, u.next, dbv1alpha1.RestartPostgreSQL)
	}
	p.tellUpdate(u, begins)
}

// restartNow assigns an instance its turn: PostgreSQL is to restart on it, or its pod.
// The primary, while it has it, is not taken for lost.
func (p *Plan) restartNow(s *state.Snapshot, instance *state.Instance, what dbv1alpha1.RestartTarget) {
	if now := p.Assignment.Restarting; now == nil || now.Instance != instance.Name || now.What != what {
		p.Assignment.Restarting = &dbv1alpha1.RestartStatus{Instance: instance.Name, What: what, StartedAt: metav1.NewTime(s.Now.Truncate(time.Second))}
	}
}

// endRestart ends the turn of an instance that is up to date and well.
func endRestart(s *state.Snapshot, wanted Wanted, a *Assignment) {
	if a.Restarting == nil {
		return
	}
	instance := s.Instance(a.Restarting.Instance)
	report, answers := lastReport(instance)
	done := answers && len(report.PendingRestart) == 0 && isWell(s, instance, *a)
	if !slices.Contains(a.Members, a.Restarting.Instance) || (done && !slices.Contains(findUpdate(s, wanted, *a).outdated, instance)) {
		a.Restarting = nil
	}
}

// tellUpdate says what the update waits for.
func (p *Plan) tellUpdate(u update, begins bool) {
	more := len(u.all()) - 1
	switch {
	case p.Assignment.Change != nil || (u.next == nil && p.Assignment.Restarting == nil):
	case p.Assignment.Restarting != nil && !begins:
		p.wait(dbv1alpha1.ReasonRollingOut, "instance %s has to serve again after its restart; %d more to go", p.Assignment.Restarting.Instance, len(u.all()))
	case begins && len(u.outdated) > 0:
		p.wait(dbv1alpha1.ReasonRollingOut, "instance %s is being restarted with the changed pod template; %d more to go", u.next.Name, more)
	case begins:
		p.wait(dbv1alpha1.ReasonRollingOut, "PostgreSQL of instance %s is being restarted for %s; %d more to go", u.next.Name, strings.Join(parametersOf(u.next), ", "), more)
	case u.unsettled != "":
		p.wait(dbv1alpha1.ReasonRollingOut, "instance %s has to serve before the next of %d outdated instances is restarted", u.unsettled, len(u.all()))
	}
}

func parametersOf(instance *state.Instance) []string {
	report, _ := lastReport(instance)
	return report.PendingRestart
}

// order puts the one for which later holds behind the other.
func order(later bool) int {
	if later {
		return 1
	}
	return -1
}

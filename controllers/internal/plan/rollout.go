package plan

import (
	"slices"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
)

// rollOut makes the missing workloads at once, and brings outdated ones up to
// date one at a time: replicas first, each serving again before the next, the
// primary last.
//
// An outdated instance that does not serve anyway goes first, and does not have
// to serve before: its health is not needed for its own replacement, so a broken
// version can be taken back.
func rollOut(s *state.Snapshot, wanted Wanted, p *Plan) {
	var outdated []*state.Instance
	unsettled := ""
	for _, name := range p.Assignment.Members {
		instance := s.Instance(name)
		switch {
		case !instance.Exists():
			p.Apply = append(p.Apply, name)
		case wanted.Changed[name] || instance.OutdatedPod():
			outdated = append(outdated, instance)
		default:
			p.Apply = append(p.Apply, name)
			if !instance.Serving() || instance.Replacing() {
				unsettled = name
			}
		}
	}
	if p.Assignment.Change != nil {
		for _, instance := range outdated { // one thing at a time
			p.Hold = append(p.Hold, instance.Name)
		}
		return
	}
	next := nextOutdated(outdated, p.Assignment.TargetPrimary)
	for _, instance := range outdated {
		if instance != next || (unsettled != "" && instance.Serving()) {
			p.Hold = append(p.Hold, instance.Name)
			continue
		}
		p.Apply = append(p.Apply, instance.Name)
		// Before the StatefulSet has its new template, its controller would make
		// the same pod again; so the restart comes in the pass after.
		if !wanted.Changed[instance.Name] && instance.OutdatedPod() {
			p.Restart = append(p.Restart, ref(instance, instance.Pod))
		}
		p.wait(dbv1alpha1.ReasonRollingOut, "instance %s is being restarted with the changed pod template; %d more to go", instance.Name, len(outdated)-1)
	}
	if unsettled != "" && len(p.Hold) > 0 {
		p.wait(dbv1alpha1.ReasonRollingOut, "instance %s has to serve before the next of %d outdated instances is restarted", unsettled, len(p.Hold))
	}
}

// nextOutdated chooses whose turn it is: those that do not serve before those
// that do, the primary last among its like, higher ordinals first.
func nextOutdated(outdated []*state.Instance, primary string) *state.Instance {
	if len(outdated) == 0 {
		return nil
	}
	return slices.MinFunc(outdated, func(a, b *state.Instance) int {
		if a.Serving() != b.Serving() {
			return order(a.Serving())
		}
		if (a.Name == primary) != (b.Name == primary) {
			return order(a.Name == primary)
		}
		return b.Ordinal - a.Ordinal
	})
}

// order puts the one for which later holds behind the other.
func order(later bool) int {
	if later {
		return 1
	}
	return -1
}

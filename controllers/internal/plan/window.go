package plan

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
)

// mayDisrupt tells whether what interrupts clients, and can wait, may begin now.
func mayDisrupt(s *state.Snapshot) bool {
	_, now := s.Cluster.Annotations[naming.AnnotationApplyNow]
	return now || nextWindow(s).IsZero()
}

// nextWindow is when the maintenance window opens; zero if it is open, or there is
// none.
func nextWindow(s *state.Snapshot) time.Time {
	window := s.Cluster.Spec.MaintenanceWindow
	if window == nil {
		return time.Time{}
	}
	zone, err := window.Location()
	if err != nil {
		return time.Time{} // refused before it came here
	}
	now := s.Now.In(zone)
	hour, minute := window.StartsAt()
	for day := -1; day <= 7; day++ {
		// The clock of the zone: a day that is longer or shorter has its window too.
		opens := time.Date(now.Year(), now.Month(), now.Day()+day, hour, minute, 0, 0, zone)
		if len(window.Days) > 0 && !slices.Contains(window.Days, dbv1alpha1.Weekday(opens.Weekday().String())) {
			continue
		}
		switch {
		case opens.After(now):
			return opens
		case now.Before(opens.Add(window.Lasts())):
			return time.Time{}
		}
	}
	return time.Time{} // a week always has one
}

// waitForWindow says that restarts wait for the maintenance window, and looks again
// when it opens. A request not to wait has been dealt with when nothing is left.
func waitForWindow(s *state.Snapshot, wanted Wanted, p *Plan) {
	a := p.Assignment
	u := findUpdate(s, wanted, a)
	if u.next != nil && a.Change == nil && a.Restarting == nil && u.unsettled == "" && u.next.Serving() && !mayDisrupt(s) {
		opens := nextWindow(s)
		p.again(opens.Sub(s.Now))
		p.wait(dbv1alpha1.ReasonRestartPending, "%s; it waits for the maintenance window, which opens at %s: to let it through now, set the annotation %s",
			p.Pending.Message, opens.Format(time.RFC3339), naming.AnnotationApplyNow)
	}
	if _, asked := s.Cluster.Annotations[naming.AnnotationApplyNow]; asked && p.Pending == nil && len(p.Waits) == 0 {
		p.Clear = append(p.Clear, naming.AnnotationApplyNow)
	}
}

// tellPending says what the difference between the spec and the world will do.
func tellPending(s *state.Snapshot, wanted Wanted, p *Plan) {
	a := p.Assignment
	u := findUpdate(s, wanted, a)
	var pending dbv1alpha1.PendingChange
	var words []string
	add := func(action dbv1alpha1.PendingAction, message string, names ...string) {
		pending.Actions = append(pending.Actions, action)
		words = append(words, message)
		for _, name := range names {
			if !slices.Contains(pending.Instances, name) {
				pending.Instances = append(pending.Instances, name)
			}
		}
	}
	if missing := without(a.Members, func(name string) bool { return s.Instance(name).Exists() }); len(missing) > 0 && a.SystemIdentifier != "" {
		add(dbv1alpha1.PendingClone, "the primary is copied to "+strings.Join(missing, ", "), missing...)
	}
	if old := without(a.Members, func(name string) bool { return !loads(s, name) }); len(old) > 0 {
		add(dbv1alpha1.PendingReload, strings.Join(old, ", ")+" load the configuration", old...)
	}
	restarts := u.all()
	slices.SortFunc(restarts, func(x, y *state.Instance) int { // in the order in which they come
		if (x.Name == a.TargetPrimary) != (y.Name == a.TargetPrimary) {
			return order(x.Name == a.TargetPrimary)
		}
		return y.Ordinal - x.Ordinal
	})
	var replicas []string
	primary := false
	for _, instance := range restarts {
		if instance.Name == a.TargetPrimary {
			primary = true
		} else {
			replicas = append(replicas, instance.Name)
		}
	}
	if len(replicas) > 0 {
		add(dbv1alpha1.PendingRestartReplicas, "one after the other, "+strings.Join(replicas, ", ")+" are restarted", replicas...)
	}
	switch {
	case primary && u.successor(s, a, true) != "":
		add(dbv1alpha1.PendingSwitchover, "the primary moves from "+a.TargetPrimary+", which is restarted then", a.TargetPrimary)
	case primary:
		add(dbv1alpha1.PendingRestartPrimary, "primary "+a.TargetPrimary+" is restarted", a.TargetPrimary)
	}
	if p.Failback {
		add(dbv1alpha1.PendingSwitchover, "the primary goes home from "+a.TargetPrimary, a.TargetPrimary)
	}
	if len(pending.Actions) == 0 {
		return
	}
	pending.Message = strings.Join(words, "; ")
	if opens := nextWindow(s); !opens.IsZero() && !mayDisrupt(s) && (len(restarts) > 0 || p.Failback) {
		at := metav1.NewTime(opens.UTC())
		pending.NotBefore = &at
	}
	p.Pending = &pending
}

// loads tells whether an instance is known to run with an older configuration.
func loads(s *state.Snapshot, name string) bool {
	report, answers := lastReport(s.Instance(name))
	return answers && report.ConfigGeneration > 0 && report.ConfigGeneration < s.Cluster.Generation
}

func without(names []string, drop func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), drop)
}

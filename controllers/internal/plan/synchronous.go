package plan

import (
	"reflect"
	"slices"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// synchronize decides what commits wait for. Another rule is written down before
// the primary may follow it, beside those that may still be in force; these are
// forgotten when the primary has said that it follows the new one. So every commit
// was acknowledged under one of the rules on record.
func synchronize(s *state.Snapshot, a *Assignment) {
	wanted := wantedRule(s, *a)
	if a.Synchronous == nil && wanted.Number == 0 {
		return
	}
	next := &dbv1alpha1.SynchronousStatus{Wanted: wanted}
	if a.Synchronous == nil {
		next.Possible = []dbv1alpha1.SynchronousRule{{Method: wanted.Method}}
	} else {
		next.Possible = slices.Clone(a.Synchronous.Possible)
	}
	known := func(rule dbv1alpha1.SynchronousRule) bool { return reflect.DeepEqual(rule, wanted) }
	if !slices.ContainsFunc(next.Possible, known) {
		next.Possible = append(next.Possible, wanted)
	}
	// What is in force counts only if it was on record when the primary said so.
	recorded := a.Synchronous != nil && reflect.DeepEqual(a.Synchronous.Wanted, wanted) && slices.ContainsFunc(a.Synchronous.Possible, known)
	if recorded && inForce(s, *a, wanted) {
		next.Possible = []dbv1alpha1.SynchronousRule{wanted}
		if wanted.Number == 0 {
			next = nil // asked for no more
		}
	}
	a.Synchronous = next
}

// wantedRule is the rule that the spec asks for, with the replicas of the moment.
func wantedRule(s *state.Snapshot, a Assignment) dbv1alpha1.SynchronousRule {
	spec := s.Cluster.Spec.Replication.Synchronous
	if spec == nil || len(a.Members) < 2 {
		return dbv1alpha1.SynchronousRule{Method: dbv1alpha1.SynchronousAny}
	}
	rule := dbv1alpha1.SynchronousRule{Method: spec.Method, Number: spec.Acknowledgements(), Standbys: byPreference(s, a.Members)}
	if rule.Method == "" {
		rule.Method = dbv1alpha1.SynchronousAny
	}
	if spec.DataDurability != dbv1alpha1.DurabilityPreferred {
		return rule
	}
	primary := s.Instance(a.TargetPrimary)
	if a.Change != nil || !leads(primary) {
		// Nobody knows who is there; what was wanted stays.
		if a.Synchronous != nil {
			return a.Synchronous.Wanted
		}
		return rule
	}
	rule.Standbys = slices.DeleteFunc(rule.Standbys, func(name string) bool {
		for _, connection := range primary.Report.Report.Replicas {
			if connection.Instance == name && connection.State == "streaming" {
				return false
			}
		}
		return true
	})
	rule.Number = min(rule.Number, int32(len(rule.Standbys)))
	return rule
}

// inForce tells whether the primary says that it follows a rule.
func inForce(s *state.Snapshot, a Assignment, rule dbv1alpha1.SynchronousRule) bool {
	primary := s.Instance(a.TargetPrimary)
	if a.Change != nil || !leads(primary) {
		return false
	}
	return primary.Report.Report.SynchronousNames ==
		postgres.SynchronousNames(string(rule.Method), int(rule.Number), rule.Replicas(a.TargetPrimary))
}

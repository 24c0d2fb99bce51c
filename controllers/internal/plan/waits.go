package plan

import (
	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// waits names what each member is on its way to.
func waits(s *state.Snapshot, a Assignment) []Wait {
	var p Plan
	for _, name := range a.Members {
		instance := s.Instance(name)
		current, known := instance.State()
		switch {
		case !instance.Exists() || instance.Pod == nil:
			p.wait(dbv1alpha1.ReasonStartingInstances, "instance %s: its pod has to be created", name)
		case !known:
			p.wait(dbv1alpha1.ReasonStartingInstances, "instance %s: pod %s has to start", name, instance.Pod.Name)
		case current == protocol.StateInitializing:
			p.wait(dbv1alpha1.ReasonInitializing, "instance %s is initialising the database", name)
		case current == protocol.StateWaitingToRejoin || current == protocol.StateRejoining:
			p.wait(dbv1alpha1.ReasonRejoining, "instance %s rebuilds its data (%s)", name, rejoinOf(instance))
		case current == protocol.StateFenced:
			continue // a person lifts it
		case current == protocol.StateCloning:
			p.wait(dbv1alpha1.ReasonCloning, "instance %s is being cloned from the primary", name)
		case current == protocol.StateWaitingForPrimary:
			p.wait(dbv1alpha1.ReasonStartingInstances, "instance %s waits for a primary that it can follow", name)
		case current == protocol.StateWaitingForVolume:
			p.wait(dbv1alpha1.ReasonStartingInstances, "instance %s waits for the volume, which another pod still uses", name)
		case name == a.TargetPrimary && !instance.IsPrimary():
			p.wait(dbv1alpha1.ReasonStartingInstances, "instance %s has to accept connections as the primary", name)
		case !instance.Serving() || instance.Replacing():
			p.wait(dbv1alpha1.ReasonStartingInstances, "instance %s has to become ready", name)
		case name != a.TargetPrimary && !instance.Report.Report.Streaming && leads(s.Instance(a.TargetPrimary)):
			p.wait(dbv1alpha1.ReasonStartingInstances, "instance %s has to stream from the primary", name)
		case instance.Report.Report.ConfigGeneration < s.Cluster.Generation && instance.Report.Report.Problem == nil:
			p.wait(dbv1alpha1.ReasonApplyingConfiguration, "instance %s is loading the configuration", name)
		}
	}
	return p.Waits
}

// rejoinOf says what an instance has to do to follow the primary again, and why.
func rejoinOf(instance *state.Instance) string {
	rejoin := instance.Report.Report.Rejoin
	if rejoin == nil {
		return "it is about to say how"
	}
	return string(rejoin.Method) + ": " + rejoin.Message
}

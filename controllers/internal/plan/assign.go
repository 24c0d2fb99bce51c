package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// Recorded is the assignment as it stands in a status.
func Recorded(status dbv1alpha1.PostgresClusterStatus) Assignment {
	return Assignment{
		Members:          status.InstanceNames,
		TargetPrimary:    status.TargetPrimary,
		CurrentPrimary:   status.CurrentPrimary,
		SystemIdentifier: status.SystemIdentifier,
		Timeline:         status.Timeline,
		Change:           status.PrimaryChange,
		LastChange:       status.LastPrimaryChange,
		Rejoining:        status.Rejoining,
		Restarting:       status.Restarting,
		Synchronous:      status.Synchronous,
	}
}

// Record writes the assignment into a status.
func (a Assignment) Record(status *dbv1alpha1.PostgresClusterStatus) {
	status.InstanceNames = a.Members
	status.TargetPrimary = a.TargetPrimary
	status.CurrentPrimary = a.CurrentPrimary
	status.SystemIdentifier = a.SystemIdentifier
	status.Timeline = a.Timeline
	status.PrimaryChange = a.Change
	status.LastPrimaryChange = a.LastChange
	status.Rejoining = a.Rejoining
	status.Restarting = a.Restarting
	status.Synchronous = a.Synchronous
}

// assign begins with what was assigned before, and decides who is a member.
func assign(s *state.Snapshot) Assignment {
	a := Recorded(s.Cluster.Status)
	if a.TargetPrimary == "" {
		a.TargetPrimary = naming.HomeInstance(s.Cluster.Name)
	}
	if a.Change != nil {
		return a // one thing at a time
	}
	a.Members = members(s, a.TargetPrimary)
	return a
}

// members are the instances that shall exist, by ordinal: those that do, less
// the highest ordinals if they are too many, plus the lowest free ones if they
// are too few. The primary always stays.
func members(s *state.Snapshot, primary string) []string {
	ordinals := map[int]bool{}
	add := func(name string) {
		if ordinal, ok := naming.Ordinal(s.Cluster.Name, name); ok {
			ordinals[ordinal] = true
		}
	}
	add(primary)
	for _, name := range s.Cluster.Status.InstanceNames {
		add(name)
	}
	// A status that was lost is made good from the world.
	if len(s.Cluster.Status.InstanceNames) == 0 {
		for _, instance := range s.Instances {
			if instance.Exists() {
				add(instance.Name)
			}
		}
	}
	want := int(s.Cluster.Spec.Replicas)
	for ordinal := 0; len(ordinals) < want; ordinal++ {
		ordinals[ordinal] = true
	}
	primaryOrdinal, _ := naming.Ordinal(s.Cluster.Name, primary)
	for ordinal := naming.MaxInstances; len(ordinals) > want && ordinal >= 0; ordinal-- {
		if ordinal != primaryOrdinal {
			delete(ordinals, ordinal)
		}
	}
	var names []string
	for ordinal := range ordinals {
		names = append(names, naming.Instance(s.Cluster.Name, ordinal))
	}
	slices.SortFunc(names, func(a, b string) int {
		x, _ := naming.Ordinal(s.Cluster.Name, a)
		y, _ := naming.Ordinal(s.Cluster.Name, b)
		return x - y
	})
	return names
}

// roles labels the pods. The read-write Service gets a pod only after the system
// identifier was recorded: so nobody can have written to a database of which the
// operator does not know that it exists.
//
// A pod that does not answer, or whose server does not run at the moment, keeps a
// label that fits: its readiness already decides whether it is served. In a planned
// change the former primary keeps its label for as long as its server runs; one
// that is lost has none. It goes before the new one gets its own, and not in the
// same moment, because kube-proxy carries out one change in a second.
func roles(s *state.Snapshot, a Assignment) []PodRole {
	leader := a.TargetPrimary
	switch {
	case a.SystemIdentifier == "" || (a.Change != nil && a.Change.Type == dbv1alpha1.PrimaryChangeFailover):
		leader = ""
	case a.Change != nil:
		leader = a.Change.From
	}
	var roles []PodRole
	for _, instance := range s.Instances {
		for _, pod := range instance.Terminating { // it takes no connections any more
			if pod.Labels[naming.LabelRole] == naming.RolePrimary {
				roles = append(roles, PodRole{Pod: ref(instance, pod)})
			}
		}
		if instance.Pod == nil {
			continue
		}
		said := protocol.RoleNone
		if instance.Report.Known {
			said = instance.Report.Report.Role
		}
		label := instance.Pod.Labels[naming.LabelRole]
		role := ""
		switch {
		case instance.Name == leader:
			if said == protocol.RolePrimary || (said == protocol.RoleNone && label == naming.RolePrimary && a.Change == nil) {
				role = naming.RolePrimary
			}
		case said == protocol.RoleReplica || (said == protocol.RoleNone && label == naming.RoleReplica):
			role = naming.RoleReplica
		}
		roles = append(roles, PodRole{Pod: ref(instance, instance.Pod), Role: role})
	}
	return roles
}

func ref(instance *state.Instance, pod *corev1.Pod) PodRef {
	return PodRef{Instance: instance.Name, Name: pod.Name, UID: pod.UID}
}

package plan

import (
	"slices"

	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// assign decides who is a member and who shall be the primary.
func assign(s *state.Snapshot) Assignment {
	status := s.Cluster.Status
	a := Assignment{
		TargetPrimary:    status.TargetPrimary,
		CurrentPrimary:   status.CurrentPrimary,
		SystemIdentifier: status.SystemIdentifier,
	}
	if a.TargetPrimary == "" {
		a.TargetPrimary = naming.HomeInstance(s.Cluster.Name)
	}
	target := s.Instance(a.TargetPrimary)
	if target.IsPrimary() {
		a.CurrentPrimary = a.TargetPrimary
		// Recorded once, from the instance that was told to initialise. From then on
		// no instance initialises anew, whatever happens to volumes.
		if a.SystemIdentifier == "" {
			a.SystemIdentifier = target.Report.Report.SystemIdentifier
		}
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
func roles(s *state.Snapshot, a Assignment) []PodRole {
	var roles []PodRole
	for _, instance := range s.Instances {
		if instance.Pod == nil {
			continue
		}
		role := naming.RoleReplica
		if instance.Name == a.TargetPrimary {
			role = ""
			if a.SystemIdentifier != "" && !contradicts(instance) {
				role = naming.RolePrimary
			}
		}
		roles = append(roles, PodRole{Pod: ref(instance), Role: role})
	}
	return roles
}

// contradicts tells whether the instance says that it is in recovery, or has
// another database than the cluster's.
func contradicts(instance *state.Instance) bool {
	return instance.Report.Known && instance.Report.Report.Role == protocol.RoleReplica
}

func ref(instance *state.Instance) PodRef {
	return PodRef{Instance: instance.Name, Name: instance.Pod.Name, UID: instance.Pod.UID}
}

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// simulation moves a world at random: the operator passes (or dies half-way),
// pods start, become ready and break, people scale and change the template.
type simulation struct {
	*world
	random *rand.Rand
	wanted int64 // the generation of the template that the spec asks for
	trace  []string
}

// TestSimulatedLife: after each step no invariant is broken, and once nothing
// interferes any more everything becomes as the spec says.
func TestSimulatedLife(t *testing.T) {
	for seed := range uint64(300) {
		s := &simulation{world: newWorld(3), random: rand.New(rand.NewPCG(seed, 1)), wanted: 1}
		for range 60 {
			s.step(t, seed)
		}
		for range 60 {
			s.pass(t, seed, len(s.instances)+100)
			s.platform(true)
		}
		p := plan.Decide(s.snapshot(), s.changed())
		require.Empty(t, p.Waits, "seed %d never ends:\n%s", seed, strings.Join(s.trace, "\n"))
		require.Len(t, s.instances, int(s.cluster.Spec.Replicas), "seed %d leaves instances:\n%s", seed, strings.Join(s.trace, "\n"))
		for name, m := range s.instances {
			require.Equal(t, s.wanted, m.podGeneration, "seed %d: %s is outdated:\n%s", seed, name, strings.Join(s.trace, "\n"))
		}
	}
}

func (s *simulation) step(t *testing.T, seed uint64) {
	switch s.random.IntN(8) {
	case 0:
		s.cluster.Spec.Replicas = 1 + s.random.Int32N(4)
		s.log("a person scales to %d", s.cluster.Spec.Replicas)
	case 1:
		s.wanted++
		s.log("a person changes the template to %d", s.wanted)
	case 2, 3:
		s.platform(false)
	default:
		s.pass(t, seed, s.random.IntN(4)) // the operator may die after any write
	}
}

func (s *simulation) changed() plan.Wanted {
	wanted := plan.Wanted{Changed: map[string]bool{}}
	for name, m := range s.instances {
		wanted.Changed[name] = m.workload && m.generation != s.wanted
	}
	return wanted
}

// pass carries out at most a number of writes of the plan, after the assignment.
func (s *simulation) pass(t *testing.T, seed uint64, writes int) {
	before := s.serving()
	p := plan.Decide(s.snapshot(), s.changed())
	status := &s.cluster.Status
	status.InstanceNames, status.TargetPrimary = p.Assignment.Members, p.Assignment.TargetPrimary
	status.CurrentPrimary, status.SystemIdentifier = p.Assignment.CurrentPrimary, p.Assignment.SystemIdentifier
	s.check(t, seed, p)
	disrupted := 0
	for _, write := range s.writes(p, &disrupted) {
		if writes == 0 {
			s.log("the operator dies")
			break
		}
		write()
		writes--
	}
	require.LessOrEqual(t, disrupted, 1, "seed %d: %d instances disrupted in one pass with %d serving:\n%s",
		seed, disrupted, before, strings.Join(s.trace, "\n"))
}

func (s *simulation) writes(p plan.Plan, disrupted *int) []func() {
	var writes []func()
	for _, name := range p.Apply {
		writes = append(writes, func() {
			m := s.instances[name]
			if m == nil {
				m = &member{}
				s.instances[name] = m
			}
			if m.workload && m.generation != s.wanted && name != "db-primary" {
				*disrupted++
				m.pod = nil // Recreate
			}
			m.workload, m.claim, m.generation = true, true, s.wanted
			s.log("applied %s", name)
		})
	}
	for _, restart := range p.Restart {
		writes = append(writes, func() {
			*disrupted++
			s.instances[restart.Instance].pod = nil
			s.log("restarted %s", restart.Instance)
		})
	}
	for _, name := range p.Remove {
		writes = append(writes, func() { s.instances[name].workload = false; s.log("removed %s", name) })
	}
	for _, name := range p.RemoveVolume {
		writes = append(writes, func() { delete(s.instances, name); s.log("removed the volume of %s", name) })
	}
	return writes
}

// check holds for every plan.
func (s *simulation) check(t *testing.T, seed uint64, p plan.Plan) {
	fail := func(format string, arguments ...any) {
		require.Fail(t, fmt.Sprintf(format, arguments...), "seed %d:\n%s", seed, strings.Join(s.trace, "\n"))
	}
	primaries := 0
	for _, role := range p.Roles {
		if role.Role == naming.RolePrimary {
			primaries++
		}
	}
	if primaries > 1 {
		fail("%d pods are labelled primary", primaries)
	}
	for _, removed := range slices.Concat(p.Remove, p.RemoveVolume) {
		if removed == p.Assignment.TargetPrimary {
			fail("the primary %s is removed", removed)
		}
	}
	for _, name := range p.RemoveVolume {
		if s.instances[name].pod != nil {
			fail("the volume of %s is deleted under its pod", name)
		}
	}
	if !slices.Contains(p.Assignment.Members, p.Assignment.TargetPrimary) {
		fail("the primary is no member")
	}
}

// platform does what Kubernetes and the instances do: at random, or all of it.
func (s *simulation) platform(all bool) {
	var names []string
	for name := range s.instances {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		m := s.instances[name]
		if !all && s.random.IntN(3) > 0 {
			continue
		}
		switch {
		case !m.workload, m.pod != nil && name != "db-primary" && m.podGeneration != m.generation:
			m.pod = nil // garbage, and what Recreate replaces
		case m.pod == nil:
			s.startPod(name, m)
			s.log("pod of %s starts", name)
		case !all && s.random.IntN(4) == 0:
			m.stopServing()
			s.log("%s stops serving", name)
		default:
			role := protocol.RoleReplica
			if name == s.cluster.Status.TargetPrimary {
				role = protocol.RolePrimary
			}
			s.serve(m, role)
		}
	}
}

func (s *simulation) serving() int {
	count := 0
	for _, instance := range s.snapshot().Instances {
		if instance.Serving() {
			count++
		}
	}
	return count
}

func (s *simulation) log(format string, arguments ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, arguments...))
}

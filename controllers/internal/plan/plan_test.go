package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

func roleOf(p plan.Plan, instance string) (string, bool) {
	for _, role := range p.Roles {
		if role.Pod.Instance == instance {
			return role.Role, true
		}
	}
	return "", false
}

func TestFirstPassMakesEveryInstanceAtOnce(t *testing.T) {
	p := plan.Decide(newWorld(3).snapshot(), plan.Wanted{})
	assert.Equal(t, []string{"db-primary", "db-replica-1", "db-replica-2"}, p.Assignment.Members)
	assert.Equal(t, "db-primary", p.Assignment.TargetPrimary)
	assert.Equal(t, p.Assignment.Members, p.Apply, "replicas do not wait for the primary")
	assert.Empty(t, p.Assignment.SystemIdentifier)
}

func TestSettledClusterHasNothingToWaitFor(t *testing.T) {
	p := plan.Decide(settled(t, 3).snapshot(), plan.Wanted{})
	assert.Empty(t, p.Waits)
	assert.Empty(t, p.Hold)
	assert.Empty(t, p.Restart)
	assert.Empty(t, p.Remove)
}

func TestAReplicaThatDoesNotStreamIsWaitedFor(t *testing.T) {
	w := settled(t, 3)
	w.instances["db-replica-2"].report.Report.Streaming = false // its pod stays ready for a while
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	require.Len(t, p.Waits, 1)
	assert.Equal(t, "instance db-replica-2 has to stream from the primary", p.Waits[0].Message)
}

func TestReadWriteServiceOpensOnlyAfterTheSystemIdentifierIsRecorded(t *testing.T) {
	w := newWorld(1)
	m := w.running("db-primary", protocol.RolePrimary)
	m.report.Known = false
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	role, _ := roleOf(p, "db-primary")
	assert.Empty(t, role, "nothing is known of the database yet")

	m.report.Known = true
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, "7000", p.Assignment.SystemIdentifier, "and the label comes in the pass that has written it down first")
	role, _ = roleOf(p, "db-primary")
	assert.Equal(t, naming.RolePrimary, role)
}

func TestSystemIdentifierIsNeverReplaced(t *testing.T) {
	w := settled(t, 1)
	w.instances["db-primary"].report.Report.SystemIdentifier = "8000"
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, "7000", p.Assignment.SystemIdentifier)
}

func TestInstanceInRecoveryIsNeverLabelledPrimary(t *testing.T) {
	w := settled(t, 2)
	w.instances["db-primary"].report.Report.Role = protocol.RoleReplica
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	role, known := roleOf(p, "db-primary")
	require.True(t, known)
	assert.Empty(t, role)
}

func TestMembers(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int32
		names    []string
		primary  string
		want     []string
	}{
		"scale up takes the lowest free ordinals": {4, []string{"db-primary", "db-replica-2"}, "db-primary",
			[]string{"db-primary", "db-replica-1", "db-replica-2", "db-replica-3"}},
		"scale down takes the highest ordinals": {2, []string{"db-primary", "db-replica-1", "db-replica-2"}, "db-primary",
			[]string{"db-primary", "db-replica-1"}},
		"the primary survives whatever its ordinal": {1, []string{"db-primary", "db-replica-1", "db-replica-2"}, "db-replica-2",
			[]string{"db-replica-2"}},
		"order is by number, not by letter": {11, nil, "db-primary", []string{"db-primary", "db-replica-1", "db-replica-2", "db-replica-3",
			"db-replica-4", "db-replica-5", "db-replica-6", "db-replica-7", "db-replica-8", "db-replica-9", "db-replica-10"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.replicas)
			w.cluster.Status.InstanceNames, w.cluster.Status.TargetPrimary = c.names, c.primary
			assert.Equal(t, c.want, plan.Decide(w.snapshot(), plan.Wanted{}).Assignment.Members)
		})
	}
}

func TestLostStatusIsMadeGoodFromTheWorld(t *testing.T) {
	w := settled(t, 3)
	w.cluster.Status = dbv1alpha1.PostgresClusterStatus{}
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Len(t, p.Assignment.Members, 3)
	assert.Equal(t, "7000", p.Assignment.SystemIdentifier)
	assert.Empty(t, p.Remove)
}

func TestScaleDownRemovesWorkloadThenVolume(t *testing.T) {
	w := settled(t, 3)
	w.cluster.Spec.Replicas = 2
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, []string{"db-replica-2"}, p.Remove)
	assert.Empty(t, p.RemoveVolume)

	w.instances["db-replica-2"].workload = false
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Empty(t, p.RemoveVolume, "its pod still uses the volume")

	w.instances["db-replica-2"].pod.DeletionTimestamp = &metav1.Time{Time: epoch}
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Empty(t, p.RemoveVolume, "a terminating pod still uses the volume")

	w.instances["db-replica-2"].pod = nil
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, []string{"db-replica-2"}, p.RemoveVolume)
	require.NotEmpty(t, p.Waits)
	assert.Equal(t, dbv1alpha1.ReasonScalingDown, p.Waits[0].Reason)
}

func TestRolloutOrder(t *testing.T) {
	all := map[string]bool{"db-primary": true, "db-replica-1": true, "db-replica-2": true}

	w := settled(t, 3)
	p := plan.Decide(w.snapshot(), plan.Wanted{Changed: all})
	assert.Equal(t, []string{"db-replica-2"}, p.Apply, "one replica")
	assert.Equal(t, []string{"db-primary", "db-replica-1"}, p.Hold)

	// The first one has the new template and is not back yet.
	w.instances["db-replica-2"].stopServing()
	rest := map[string]bool{"db-primary": true, "db-replica-1": true}
	p = plan.Decide(w.snapshot(), plan.Wanted{Changed: rest})
	assert.Equal(t, []string{"db-primary", "db-replica-1"}, p.Hold, "the next waits")

	// A broken version is taken back: the broken one is outdated now, and first.
	p = plan.Decide(w.snapshot(), plan.Wanted{Changed: map[string]bool{"db-replica-2": true}})
	assert.Contains(t, p.Apply, "db-replica-2")
	assert.Empty(t, p.Hold)

	// The primary is last. It moves away first, and is restarted as a replica.
	w = settled(t, 3)
	p = plan.Decide(w.snapshot(), plan.Wanted{Changed: map[string]bool{"db-primary": true}})
	require.NotNil(t, p.Assignment.Change)
	assert.Equal(t, "Update", p.Assignment.Change.Reason)
	assert.Equal(t, dbv1alpha1.PrimaryChangeSwitchover, p.Assignment.Change.Type)
	assert.Equal(t, []string{"db-primary"}, p.Hold)

	// Or it stays; its pod is deleted by us once the set is changed.
	w.cluster.Spec.Update.Primary = dbv1alpha1.PrimaryUpdateRestart
	p = plan.Decide(w.snapshot(), plan.Wanted{Changed: map[string]bool{"db-primary": true}})
	assert.Nil(t, p.Assignment.Change)
	assert.Contains(t, p.Apply, "db-primary")
	assert.Empty(t, p.Restart)
	w.instances["db-primary"].generation++
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	require.Len(t, p.Restart, 1)
	assert.Equal(t, w.instances["db-primary"].pod.UID, p.Restart[0].UID)
}

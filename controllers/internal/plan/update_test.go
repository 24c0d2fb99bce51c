package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// pass makes one pass and writes its assignment down.
func (w *world) pass(wanted plan.Wanted) plan.Plan {
	p := plan.Decide(w.snapshot(), wanted)
	p.Assignment.Record(&w.cluster.Status)
	return p
}

// waitsForRestart makes instances wait for a restart.
func (w *world) waitsForRestart(names ...string) {
	for _, name := range names {
		w.instances[name].report.Report.PendingRestart = []string{"shared_buffers"}
	}
}

func TestPostgreSQLRestartsOneInstanceAfterTheOther(t *testing.T) {
	w := settled(t, 3)
	w.waitsForRestart("db-primary", "db-replica-1", "db-replica-2")
	p := w.pass(plan.Wanted{})
	require.NotNil(t, p.Assignment.Restarting)
	assert.Equal(t, "db-replica-2", p.Assignment.Restarting.Instance)
	assert.Equal(t, dbv1alpha1.RestartPostgreSQL, p.Assignment.Restarting.What)
	require.NotEmpty(t, p.Waits)
	assert.Equal(t, dbv1alpha1.ReasonRollingOut, p.Waits[0].Reason)
	assert.Equal(t, "PostgreSQL of instance db-replica-2 is being restarted for shared_buffers; 2 more to go", p.Waits[0].Message)
	assert.Equal(t, []dbv1alpha1.PendingAction{dbv1alpha1.PendingRestartReplicas, dbv1alpha1.PendingSwitchover}, p.Pending.Actions)
	assert.Nil(t, p.Pending.NotBefore)

	second := w.instances["db-replica-2"]
	second.report.Report.PendingRestart, second.report.Report.Streaming = nil, false
	p = w.pass(plan.Wanted{})
	assert.Equal(t, "db-replica-2", p.Assignment.Restarting.Instance, "it has to stream first")

	second.report.Report.Streaming = true
	p = w.pass(plan.Wanted{})
	assert.Equal(t, "db-replica-1", p.Assignment.Restarting.Instance)

	w.instances["db-replica-1"].report.Report.PendingRestart = nil
	p = w.pass(plan.Wanted{})
	require.NotNil(t, p.Assignment.Change)
	assert.Equal(t, "Update", p.Assignment.Change.Reason)
	assert.Equal(t, "db-replica-1", p.Assignment.Change.To)
	assert.Nil(t, p.Assignment.Restarting)
}

func TestThePrimaryDoesNotRestartBeforeTheOthersHaveLoadedTheConfiguration(t *testing.T) {
	w := settled(t, 2)
	w.cluster.Generation++
	w.waitsForRestart("db-primary")
	w.instances["db-primary"].report.Report.ConfigGeneration = w.cluster.Generation
	p := w.pass(plan.Wanted{})
	assert.Nil(t, p.Assignment.Change)
	assert.Nil(t, p.Assignment.Restarting)
	w.waitsForRestart("db-replica-1")
	w.instances["db-replica-1"].report.Report.ConfigGeneration = w.cluster.Generation
	assert.Equal(t, "db-replica-1", w.pass(plan.Wanted{}).Assignment.Restarting.Instance)
}

func TestAPrimaryRestartsWhereItIs(t *testing.T) {
	for name, c := range map[string]func(w *world){
		"as the spec says": func(w *world) { w.cluster.Spec.Update.Primary = dbv1alpha1.PrimaryUpdateRestart },
		"because the replicas keep what it gives up": func(w *world) {
			for _, replica := range []string{"db-replica-1", "db-replica-2"} {
				w.instances[replica].report.Report.HeldParameters = []string{"max_connections"}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := available(t)
			w.waitsForRestart("db-primary")
			c(w)
			p := w.pass(plan.Wanted{})
			require.NotNil(t, p.Assignment.Restarting)
			assert.Equal(t, "db-primary", p.Assignment.Restarting.Instance)
			assert.Equal(t, []dbv1alpha1.PendingAction{dbv1alpha1.PendingRestartPrimary}, p.Pending.Actions)

			// It has stopped cleanly, and nobody takes its place.
			primary := w.instances["db-primary"]
			w.stoppedCleanly(primary, protocol.StateStopping, epoch)
			primary.report.Report.PendingRestart = nil
			p = w.pass(plan.Wanted{})
			assert.Nil(t, p.Assignment.Change)
			// Unless it takes as long as a crash recovery may.
			w.cluster.Status.Restarting.StartedAt = metav1.NewTime(epoch.Add(-30 * time.Second))
			p = w.pass(plan.Wanted{})
			require.NotNil(t, p.Assignment.Change)
			assert.Equal(t, dbv1alpha1.PrimaryChangeSwitchover, p.Assignment.Change.Type)
		})
	}
}

func TestAPodThatIsReplacedInPlaceIsNotTakenForLost(t *testing.T) {
	w := settled(t, 3)
	w.cluster.Spec.Update.Primary = dbv1alpha1.PrimaryUpdateRestart
	w.pass(plan.Wanted{Changed: map[string]bool{"db-primary": true}})
	primary := w.instances["db-primary"]
	primary.generation++
	require.Len(t, w.pass(plan.Wanted{}).Restart, 1)
	primary.pod.DeletionTimestamp = &metav1.Time{Time: epoch}
	assert.Nil(t, w.pass(plan.Wanted{}).Assignment.Change, "it ends")
	primary.pod = nil
	w.lease.Known, w.lease.FinalLSN = true, "0/5000000"
	assert.Nil(t, w.pass(plan.Wanted{}).Assignment.Change, "it has ended")
	w.startPod("db-primary", primary)
	assert.Nil(t, w.pass(plan.Wanted{}).Assignment.Change, "the next one starts")
	w.serve(primary, protocol.RolePrimary)
	p := w.pass(plan.Wanted{})
	assert.Nil(t, p.Assignment.Change)
	assert.Nil(t, p.Assignment.Restarting)
}

func TestABrokenInstanceGoesFirstWhoeverHasTheTurn(t *testing.T) {
	w := settled(t, 3)
	w.cluster.Status.Restarting = &dbv1alpha1.RestartStatus{Instance: "db-replica-2", What: dbv1alpha1.RestartPod}
	w.instances["db-replica-2"].stopServing()
	w.instances["db-replica-1"].stopServing()
	p := w.pass(plan.Wanted{Changed: map[string]bool{"db-primary": true, "db-replica-1": true}})
	assert.Contains(t, p.Apply, "db-replica-1")
	assert.Equal(t, []string{"db-primary"}, p.Hold)
}

func TestWhatInterruptsClientsWaitsForTheMaintenanceWindow(t *testing.T) {
	// The epoch is midnight of a Thursday in UTC.
	for name, c := range map[string]struct {
		window dbv1alpha1.MaintenanceWindow
		opens  string // empty if it is open
	}{
		"later today":                  {dbv1alpha1.MaintenanceWindow{Start: "02:30"}, "2026-01-01T02:30:00Z"},
		"now":                          {dbv1alpha1.MaintenanceWindow{Start: "00:00"}, ""},
		"since yesterday":              {dbv1alpha1.MaintenanceWindow{Start: "23:00"}, ""},
		"closed a moment ago":          {dbv1alpha1.MaintenanceWindow{Start: "22:00"}, "2026-01-01T22:00:00Z"},
		"on Saturdays":                 {dbv1alpha1.MaintenanceWindow{Start: "02:30", Days: []dbv1alpha1.Weekday{"Saturday"}}, "2026-01-03T02:30:00Z"},
		"on Wednesdays, into Thursday": {dbv1alpha1.MaintenanceWindow{Start: "23:30", DurationMinutes: 60, Days: []dbv1alpha1.Weekday{"Wednesday"}}, ""},
		"on Wednesdays":                {dbv1alpha1.MaintenanceWindow{Start: "20:00", Days: []dbv1alpha1.Weekday{"Wednesday"}}, "2026-01-07T20:00:00Z"},
		"elsewhere":                    {dbv1alpha1.MaintenanceWindow{Start: "03:00", TimeZone: "Europe/Berlin"}, "2026-01-01T02:00:00Z"},
		"where it is another day":      {dbv1alpha1.MaintenanceWindow{Start: "23:00", TimeZone: "America/New_York", Days: []dbv1alpha1.Weekday{"Wednesday"}}, "2026-01-01T04:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t, 3)
			w.cluster.Spec.MaintenanceWindow = &c.window
			w.waitsForRestart("db-replica-1")
			p := w.pass(plan.Wanted{})
			if c.opens == "" {
				assert.NotNil(t, p.Assignment.Restarting)
				return
			}
			assert.Nil(t, p.Assignment.Restarting)
			require.NotNil(t, p.Pending.NotBefore)
			assert.Equal(t, c.opens, p.Pending.NotBefore.UTC().Format(time.RFC3339))
			assert.Equal(t, p.Pending.NotBefore.Sub(epoch), p.Again)
			require.Len(t, p.Waits, 1)
			assert.Equal(t, dbv1alpha1.ReasonRestartPending, p.Waits[0].Reason)

			w.cluster.Annotations = map[string]string{naming.AnnotationApplyNow: ""}
			p = w.pass(plan.Wanted{})
			assert.NotNil(t, p.Assignment.Restarting, "it is let through")
			assert.Empty(t, p.Clear)
			w.instances["db-replica-1"].report.Report.PendingRestart = nil
			assert.Equal(t, []string{naming.AnnotationApplyNow}, w.pass(plan.Wanted{}).Clear, "once")
		})
	}
}

func TestWhatCannotWaitDoesNot(t *testing.T) {
	closed := &dbv1alpha1.MaintenanceWindow{Start: "12:00", DurationMinutes: 10}
	w := settled(t, 3)
	w.cluster.Spec.MaintenanceWindow = closed
	changed := plan.Wanted{Changed: map[string]bool{"db-primary": true, "db-replica-1": true, "db-replica-2": true}}
	assert.Len(t, w.pass(changed).Hold, 3)
	w.instances["db-replica-1"].stopServing()
	assert.Equal(t, []string{"db-replica-1"}, w.pass(changed).Apply, "it serves nobody")

	w = available(t)
	w.cluster.Spec.MaintenanceWindow = closed
	w.instances["db-primary"].pod.DeletionTimestamp = &metav1.Time{Time: epoch}
	assert.NotNil(t, w.pass(plan.Wanted{}).Assignment.Change, "nor does a handover")
}

func TestAFailbackWaitsForTheMaintenanceWindow(t *testing.T) {
	w := awayFromHome(t)
	w.cluster.Spec.MaintenanceWindow = &dbv1alpha1.MaintenanceWindow{Start: "02:30"}
	p := w.pass(plan.Wanted{})
	assert.Nil(t, p.Assignment.Change)
	require.NotNil(t, p.Pending)
	assert.Equal(t, []dbv1alpha1.PendingAction{dbv1alpha1.PendingSwitchover}, p.Pending.Actions)
	require.NotNil(t, p.Pending.NotBefore)
	w.cluster.Spec.MaintenanceWindow.Start = "00:00"
	p = w.pass(plan.Wanted{})
	require.NotNil(t, p.Assignment.Change)
	assert.Equal(t, "Failback", p.Assignment.Change.Reason)
}

package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// available is a settled cluster of three with a Lease that was just renewed, and
// replicas that stream.
func available(t *testing.T) *world {
	t.Helper()
	w := settled(t, 3)
	w.cluster.Status.Timeline = 1
	for name, m := range w.instances {
		m.report.Report.Timeline = 1
		m.report.Report.ReceivedLSN = "0/5000000"
		m.report.Report.Streaming = name != "db-primary"
	}
	w.lease = state.Lease{Known: true, Holder: "db-primary/" + string(w.instances["db-primary"].pod.UID),
		Duration: 10 * time.Second, ChangedAt: epoch, AcquiredAt: epoch.Add(-time.Hour)}
	return w
}

func (m *member) container(state corev1.ContainerState, last corev1.ContainerState) {
	m.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerPostgres, State: state, LastTerminationState: last}}
}

// endedAfter makes the container one that was started again once, and has ended after a
// time.
func (m *member) endedAfter(ran time.Duration) {
	second := *ended.Terminated
	second.StartedAt = metav1.NewTime(second.FinishedAt.Add(-ran))
	m.container(corev1.ContainerState{Terminated: &second}, ended)
	m.pod.Status.ContainerStatuses[0].RestartCount = 1
}

func (m *member) silentSince(at time.Time) {
	m.report.Error, m.report.FailedSince = "no answer", at
}

var (
	ended   = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.NewTime(epoch.Add(-5 * time.Second))}}
	looping = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
)

// stoppedCleanly makes an instance one that has stopped PostgreSQL and given up the
// Lease; it is in a state since then.
func (w *world) stoppedCleanly(m *member, current protocol.State, since time.Time) {
	w.lease.Holder, w.lease.FinalLSN = "", "0/4FFFFF0"
	m.report.Report.Role, m.report.Report.State, m.report.DownSince = protocol.RoleNone, current, since
}

func TestWhenAPrimaryIsLost(t *testing.T) {
	long, short := epoch.Add(-time.Minute), epoch.Add(-500*time.Millisecond)
	failover, switchover := dbv1alpha1.PrimaryChangeFailover, dbv1alpha1.PrimaryChangeSwitchover
	for name, c := range map[string]struct {
		happens func(w *world, primary *member)
		want    dbv1alpha1.PrimaryChangeType
		reason  string
	}{
		"nothing happens":                                  {func(*world, *member) {}, "", ""},
		"it does not answer, and renews its Lease":         {func(_ *world, m *member) { m.silentSince(long) }, "", ""},
		"its Lease expires, and it answers as the primary": {func(w *world, _ *member) { w.lease.ChangedAt = long }, "", ""},
		"its Lease expires, and one question was not answered": {func(w *world, m *member) {
			w.lease.ChangedAt = long
			m.silentSince(short)
		}, "", ""},
		"its Lease expires, and it does not answer": {func(w *world, m *member) {
			w.lease.ChangedAt = long
			m.silentSince(long)
		}, failover, "Unreachable"},
		"its Lease expires, and it says that it has stopped": {func(w *world, m *member) {
			w.lease.ChangedAt = long
			m.report.Report.Role, m.report.Report.State = protocol.RoleNone, protocol.StateStarting
		}, failover, "Isolated"},
		"its container ends": {func(_ *world, m *member) {
			m.container(ended, corev1.ContainerState{})
			m.silentSince(short)
		}, "", ""},
		"its container ends and does not come back": {func(_ *world, m *member) {
			m.container(ended, corev1.ContainerState{})
			m.silentSince(long)
		}, failover, "ContainerDead"},
		"its container ends again and again": {func(_ *world, m *member) {
			m.container(looping, ended)
			m.silentSince(short)
		}, failover, "ContainerDead"},
		"its container ends soon after a restart": {func(_ *world, m *member) {
			m.endedAfter(9 * time.Minute)
			m.silentSince(short)
		}, failover, "ContainerDead"},
		"its container ends long after a restart": {func(_ *world, m *member) {
			m.endedAfter(11 * time.Minute)
			m.silentSince(short)
		}, "", ""},
		"the kubelet says that its container has ended, and it answers": {func(_ *world, m *member) { m.container(looping, ended) }, "", ""},
		"its container ended before another took the Lease": {func(w *world, m *member) {
			m.container(looping, ended)
			m.silentSince(long)
			w.lease.AcquiredAt = epoch.Add(-4 * time.Second)
		}, "", ""},
		"its container ended before another took the Lease, which expires": {func(w *world, m *member) {
			m.container(looping, ended)
			m.silentSince(long)
			w.lease.AcquiredAt, w.lease.ChangedAt = epoch.Add(-4*time.Second), long
		}, failover, "Unreachable"},
		"its pod is deleted": {func(_ *world, m *member) {
			m.pod.DeletionTimestamp = &metav1.Time{Time: epoch}
		}, switchover, "PodDeleted"},
		"its pod is gone, and its Lease is not": {func(_ *world, m *member) { m.pod = nil }, "", ""},
		"its pod is gone, and its Lease has expired": {func(w *world, m *member) {
			m.pod = nil
			w.lease.ChangedAt = long
		}, failover, "LeaseExpired"},
		"it has stopped cleanly, and goes": {func(w *world, m *member) {
			w.stoppedCleanly(m, protocol.StateStopping, short)
		}, switchover, "PrimaryStopped"},
		"it has stopped cleanly, and does not answer": {func(w *world, m *member) {
			w.stoppedCleanly(m, protocol.StateStarting, time.Time{})
			m.silentSince(short)
		}, switchover, "PrimaryStopped"},
		"it has stopped cleanly, and cannot start": {func(w *world, m *member) {
			w.stoppedCleanly(m, protocol.StateBlocked, short)
		}, switchover, "PrimaryStopped"},
		"it has stopped cleanly, and has been starting for long": {func(w *world, m *member) {
			w.stoppedCleanly(m, protocol.StateRecovering, long)
		}, switchover, "PrimaryStopped"},
		"its fence was lifted, and it has not heard of that": {func(w *world, m *member) {
			w.stoppedCleanly(m, protocol.StateFenced, time.Time{})
		}, "", ""},
		"its fence was lifted, and it starts": {func(w *world, m *member) {
			w.stoppedCleanly(m, protocol.StateRecovering, short)
		}, "", ""},
		"postgres is down for a moment": {func(_ *world, m *member) {
			m.report.Report.Role, m.report.Report.State, m.report.DownSince = protocol.RoleNone, protocol.StateRecovering, short
		}, "", ""},
		"postgres is down for long": {func(_ *world, m *member) {
			m.report.Report.Role, m.report.Report.State, m.report.DownSince = protocol.RoleNone, protocol.StateRecovering, long
		}, failover, "PrimaryDown"},
		"postgres is down for long, and no replica answers": {func(w *world, m *member) {
			m.report.Report.Role, m.report.Report.State, m.report.DownSince = protocol.RoleNone, protocol.StateRecovering, long
			w.instances["db-replica-1"].silentSince(long)
			w.instances["db-replica-2"].silentSince(long)
		}, "", ""},
		"postgres is down for long, and too few replicas answer to prove that nothing is lost": {func(w *world, m *member) {
			m.report.Report.Role, m.report.Report.State, m.report.DownSince = protocol.RoleNone, protocol.StateRecovering, long
			w.cluster.Status.Synchronous = ruleOf(1)
			w.instances["db-replica-1"].silentSince(long)
		}, "", ""},
		"it is isolated, and no replica answers": {func(w *world, m *member) {
			w.lease.ChangedAt = long
			m.report.Report.Role, m.report.Report.State = protocol.RoleNone, protocol.StateStarting
			w.instances["db-replica-1"].silentSince(long)
			w.instances["db-replica-2"].silentSince(long)
		}, "", ""},
		"the disk is full, and its Lease expires": {func(w *world, m *member) {
			w.lease.ChangedAt = long
			m.report.Report.Role, m.report.Report.State, m.report.DownSince = protocol.RoleNone, protocol.StateStarting, long
			m.report.Report.Problem = &protocol.Problem{Reason: protocol.ProblemDiskFull}
		}, "", ""},
		"the disk is full": {func(_ *world, m *member) {
			m.report.Report.Role, m.report.Report.State, m.report.DownSince = protocol.RoleNone, protocol.StateStarting, long
			m.report.Report.Problem = &protocol.Problem{Reason: protocol.ProblemDiskFull}
		}, "", ""},
		"it is fenced": {func(w *world, m *member) {
			w.cluster.Annotations = map[string]string{naming.AnnotationFence: "db-primary"}
			w.lease.ChangedAt = long
			m.silentSince(long)
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := available(t)
			c.happens(w, w.instances["db-primary"])
			p := plan.Decide(w.snapshot(), plan.Wanted{})
			if c.want == "" {
				require.Nil(t, p.Assignment.Change)
				assert.Equal(t, "db-primary", p.Assignment.TargetPrimary)
				return
			}
			require.NotNil(t, p.Assignment.Change)
			assert.Equal(t, c.want, p.Assignment.Change.Type)
			assert.Equal(t, c.reason, p.Assignment.Change.Reason)
			assert.NotEmpty(t, p.Notices)
			if c.want == failover {
				assert.Equal(t, "db-primary", p.Assignment.TargetPrimary, "nobody leads before the candidates are compared")
			}
		})
	}
}

func TestASwitchoverThatIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		value   string
		before  func(w *world)
		to, why string
	}{
		"to an instance":              {"db-replica-2", func(*world) {}, "db-replica-2", ""},
		"to the best":                 {"", func(*world) {}, "db-replica-1", ""},
		"to the preferred":            {"", func(w *world) { w.cluster.Spec.Failover.Priority = []string{"db-replica-2"} }, "db-replica-2", ""},
		"to the primary":              {"db-primary", func(*world) {}, "", "is the primary already"},
		"to a stranger":               {"db-replica-9", func(*world) {}, "", "there is no instance"},
		"to one that does not stream": {"db-replica-2", func(w *world) { w.instances["db-replica-2"].report.Report.Streaming = false }, "", "does not stream"},
		"to one that does not answer": {"db-replica-2", func(w *world) { w.instances["db-replica-2"].silentSince(epoch) }, "", "does not answer"},
		"to one on a former timeline": {"db-replica-2", func(w *world) { w.cluster.Status.Timeline = 2; w.instances["db-primary"].report.Report.Timeline = 2 }, "", "timeline"},
		"to a fenced one":             {"db-replica-2", func(w *world) { w.cluster.Annotations[naming.AnnotationFence] = "db-replica-2" }, "", "fenced"},
		"to the best, and there is none": {"", func(w *world) {
			w.instances["db-replica-1"].report.Report.Streaming, w.instances["db-replica-2"].report.Report.Streaming = false, false
		}, "", "no replica streams"},
	} {
		t.Run(name, func(t *testing.T) {
			w := available(t)
			w.cluster.Annotations = map[string]string{naming.AnnotationSwitchover: c.value}
			c.before(w)
			p := plan.Decide(w.snapshot(), plan.Wanted{})
			assert.Contains(t, p.Clear, naming.AnnotationSwitchover, "a request is taken up once")
			if c.to == "" {
				assert.Nil(t, p.Assignment.Change)
				require.NotEmpty(t, p.Notices)
				assert.Contains(t, p.Notices[0].Message, c.why)
				return
			}
			require.NotNil(t, p.Assignment.Change)
			assert.Equal(t, c.to, p.Assignment.TargetPrimary)
			assert.Equal(t, "db-primary", p.Assignment.CurrentPrimary, "until the new one leads")
		})
	}
}

// electing is a cluster whose primary was lost, and whose replicas have cut their
// streams.
func electing(t *testing.T) *world {
	t.Helper()
	w := available(t)
	w.cluster.Status.PrimaryChange = &dbv1alpha1.PrimaryChange{Number: 4, Type: dbv1alpha1.PrimaryChangeFailover,
		From: "db-primary", Reason: "Unreachable", StartedAt: metav1.NewTime(epoch.Add(-time.Second))}
	w.instances["db-primary"].silentSince(epoch.Add(-time.Minute))
	for _, name := range []string{"db-replica-1", "db-replica-2"} {
		w.instances[name].report.Report.Streaming = false
		w.instances[name].report.Report.StreamCut = 4
	}
	return w
}

// ruleOf is a rule that every commit was acknowledged under.
func ruleOf(number int32) *dbv1alpha1.SynchronousStatus {
	rule := dbv1alpha1.SynchronousRule{Method: dbv1alpha1.SynchronousAny, Number: number, Standbys: []string{"db-primary", "db-replica-1", "db-replica-2"}}
	return &dbv1alpha1.SynchronousStatus{Wanted: rule, Possible: []dbv1alpha1.SynchronousRule{rule}}
}

func TestTheElection(t *testing.T) {
	late := func(w *world) { w.cluster.Status.PrimaryChange.StartedAt = metav1.NewTime(epoch.Add(-time.Minute)) }
	for name, c := range map[string]struct {
		before func(w *world)
		to     string
	}{
		"equals: the lower ordinal":      {func(*world) {}, "db-replica-1"},
		"equals: the preferred one":      {func(w *world) { w.cluster.Spec.Failover.Priority = []string{"db-replica-2"} }, "db-replica-2"},
		"equals: not on a cordoned node": {func(w *world) { w.instances["db-replica-1"].pod.Spec.NodeName = "cordoned" }, "db-replica-2"},
		"the most WAL wins over preference": {func(w *world) {
			w.cluster.Spec.Failover.Priority = []string{"db-replica-1"}
			w.instances["db-replica-2"].report.Report.ReceivedLSN = "0/5000001"
		}, "db-replica-2"},
		"one that is still receiving is waited for":      {func(w *world) { w.instances["db-replica-2"].report.Report.StreamCut = 0 }, ""},
		"but not for ever":                               {func(w *world) { w.instances["db-replica-2"].report.Report.StreamCut = 0; late(w) }, "db-replica-1"},
		"one that does not answer is left out":           {func(w *world) { w.instances["db-replica-1"].silentSince(epoch) }, "db-replica-2"},
		"one that nothing is known of yet is waited for": {func(w *world) { w.instances["db-replica-1"].report = state.ReportEntry{} }, ""},
		"a fenced one is left out":                       {func(w *world) { w.cluster.Annotations = map[string]string{naming.AnnotationFence: "db-replica-1"} }, "db-replica-2"},
		"one on a former timeline is left out": {func(w *world) {
			w.cluster.Status.Timeline = 2
			w.instances["db-replica-2"].report.Report.Timeline = 2
			w.instances["db-replica-1"].report.Report.ReceivedLSN = "0/9000000"
		}, "db-replica-2"},
		"synchronous, all answer": {func(w *world) { w.cluster.Status.Synchronous = ruleOf(1) }, "db-replica-1"},
		"synchronous, too few answer": {func(w *world) {
			w.cluster.Status.Synchronous = ruleOf(1)
			w.instances["db-replica-1"].silentSince(epoch)
			late(w)
		}, ""},
		"all replicas synchronous: one is enough": {func(w *world) {
			w.cluster.Status.Synchronous = ruleOf(2)
			w.instances["db-replica-1"].silentSince(epoch)
		}, "db-replica-2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := electing(t)
			c.before(w)
			p := plan.Decide(w.snapshot(), plan.Wanted{})
			require.NotNil(t, p.Assignment.Change)
			assert.Equal(t, c.to, p.Assignment.Change.To)
			want := c.to
			if want == "" {
				want = "db-primary"
				assert.NotEmpty(t, p.Waits)
			}
			assert.Equal(t, want, p.Assignment.TargetPrimary)
			assert.Equal(t, int64(4), p.Assignment.Change.Number, "it is the same incident")
		})
	}
}

func TestTheLeaseIsFreedOnlyOfWhoCannotLead(t *testing.T) {
	expire := func(w *world) { w.lease.ChangedAt = epoch.Add(-time.Minute) }
	for name, c := range map[string]struct {
		before func(w *world)
		want   bool
	}{
		"not expired":                        {func(*world) {}, false},
		"expired, and no answer":             {expire, true},
		"expired, and it answers as primary": {func(w *world) { expire(w); w.instances["db-primary"].report.Error = "" }, false},
		"its container is dead":              {func(w *world) { w.instances["db-primary"].container(ended, corev1.ContainerState{}) }, true},
		"its container is dead, so the kubelet says, and it answers": {func(w *world) {
			w.instances["db-primary"].container(ended, corev1.ContainerState{})
			w.instances["db-primary"].report.Error = ""
		}, false},
		"its container is dead, and another took the Lease since": {func(w *world) {
			w.instances["db-primary"].container(ended, corev1.ContainerState{})
			w.lease.AcquiredAt = epoch.Add(-4 * time.Second)
		}, false},
		"its container is dead, and one took the Lease in the same second": {func(w *world) {
			w.instances["db-primary"].container(ended, corev1.ContainerState{})
			w.lease.AcquiredAt = epoch.Add(-5*time.Second + 300*time.Millisecond)
		}, false},
		"its pod is gone":                 {func(w *world) { w.instances["db-primary"].pod = nil }, false},
		"its pod is gone, and it expired": {func(w *world) { w.instances["db-primary"].pod = nil; expire(w) }, true},
		"the chosen one holds it": {func(w *world) {
			w.cluster.Status.PrimaryChange.To, w.cluster.Status.TargetPrimary = "db-replica-1", "db-replica-1"
			w.lease.Holder = "db-replica-1/" + string(w.instances["db-replica-1"].pod.UID)
		}, false},
		"the chosen one held it, and it expired": {func(w *world) {
			expire(w)
			w.cluster.Status.PrimaryChange.To, w.cluster.Status.TargetPrimary = "db-replica-1", "db-replica-1"
			w.lease.Holder = "db-replica-1/" + string(w.instances["db-replica-1"].pod.UID)
		}, true},
		"no change is under way": {func(w *world) {
			w.cluster.Status.PrimaryChange = nil
			expire(w)
			w.instances["db-primary"].report.Error = ""
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := electing(t)
			c.before(w)
			assert.Equal(t, c.want, plan.Decide(w.snapshot(), plan.Wanted{}).FreeLease)
		})
	}
}

func TestAFormerPrimaryThatAnswersAgainLeadsIfNobodyElseCan(t *testing.T) {
	for name, c := range map[string]struct {
		before func(m *member)
		want   bool
	}{
		"it answers":                 {func(*member) {}, true},
		"it was isolated":            {func(m *member) { m.report.Report.Problem = &protocol.Problem{Reason: protocol.ProblemIsolated} }, true},
		"it starts again and again":  {func(m *member) { m.report.Report.Problem = &protocol.Problem{Reason: protocol.ProblemCrashing} }, true},
		"its disk is full":           {func(m *member) { m.report.Report.Problem = &protocol.Problem{Reason: protocol.ProblemDiskFull} }, false},
		"a person has to mend it":    {func(m *member) { m.report.Report.State = protocol.StateBlocked }, false},
		"it is fenced":               {func(m *member) { m.report.Report.State = protocol.StateFenced }, false},
		"it does not answer, as yet": {func(m *member) { m.silentSince(epoch) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := electing(t)
			w.cluster.Status.PrimaryChange.StartedAt = metav1.NewTime(epoch.Add(-time.Minute))
			for _, replica := range []string{"db-replica-1", "db-replica-2"} {
				w.instances[replica].silentSince(epoch.Add(-time.Minute))
			}
			former := w.instances["db-primary"]
			former.report.Error, former.report.Report.State, former.report.Report.Role = "", protocol.StateStarting, protocol.RoleNone
			c.before(former)
			p := plan.Decide(w.snapshot(), plan.Wanted{})
			assert.Equal(t, c.want, p.Assignment.Change == nil)
			assert.Equal(t, "db-primary", p.Assignment.TargetPrimary)
		})
	}
}

// chosen is a change of the primary with a successor, which is not promoted yet.
func chosen(t *testing.T, kind dbv1alpha1.PrimaryChangeType) (w *world, successor *member) {
	t.Helper()
	w = electing(t)
	change := w.cluster.Status.PrimaryChange
	change.Type, change.To = kind, "db-replica-1"
	w.cluster.Status.TargetPrimary = "db-replica-1"
	w.instances["db-replica-1"].report.Report.State = protocol.StatePromoting
	return w, w.instances["db-replica-1"]
}

// isHeldBy gives the Lease to an instance, at a time.
func (w *world) isHeldBy(name string, at time.Time) {
	w.lease.Holder, w.lease.ChangedAt, w.lease.AcquiredAt = name+"/"+string(w.instances[name].pod.UID), at, at
	w.lease.Transitions++
}

func TestAChosenOneThatIsLostIsReplaced(t *testing.T) {
	long := epoch.Add(-time.Minute)
	for name, c := range map[string]struct {
		before func(w *world, m *member)
		want   bool // another election
		from   string
	}{
		"it is on its way":                    {func(*world, *member) {}, false, ""},
		"it does not answer for a while":      {func(_ *world, m *member) { m.silentSince(long) }, true, "db-primary"},
		"it does not answer, and renews":      {func(w *world, m *member) { m.silentSince(long); w.isHeldBy("db-replica-1", epoch) }, false, ""},
		"it does not answer, and has renewed": {func(w *world, m *member) { m.silentSince(long); w.isHeldBy("db-replica-1", long) }, true, "db-replica-1"},
		"a person has to mend it":             {func(_ *world, m *member) { m.report.Report.State = protocol.StateBlocked }, true, "db-primary"},
		"PostgreSQL does not come up": {func(w *world, m *member) {
			m.report.Report.State, m.report.Report.Role, m.report.DownSince = protocol.StateRecovering, protocol.RoleNone, long
			w.isHeldBy("db-replica-1", epoch)
		}, true, "db-replica-1"},
		"PostgreSQL has been down for a moment": {func(_ *world, m *member) {
			m.report.Report.State, m.report.Report.Role, m.report.DownSince = protocol.StateRecovering, protocol.RoleNone, epoch
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, successor := chosen(t, dbv1alpha1.PrimaryChangeFailover)
			c.before(w, successor)
			change := plan.Decide(w.snapshot(), plan.Wanted{}).Assignment.Change
			require.NotNil(t, change)
			if !c.want {
				assert.Equal(t, int64(4), change.Number)
				return
			}
			assert.Equal(t, int64(5), change.Number)
			assert.Equal(t, c.from, change.From, "who may have accepted writes is who was lost")
		})
	}
}

func TestAHandoverThatCannotEndIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world, m *member)
		want   string // "" goes on, Reverted, or Failover
	}{
		"it is on its way": {func(*world, *member) {}, ""},
		"the successor refuses": {func(_ *world, m *member) {
			m.report.Report.Refusal = &protocol.Refusal{Change: 4, Message: "it lacks WAL"}
			m.report.Report.Problem = &protocol.Problem{Reason: protocol.ProblemDiskFull} // what else there may be
		}, dbv1alpha1.PrimaryChangeReverted},
		"the successor refused an earlier one": {func(_ *world, m *member) {
			m.report.Report.Refusal = &protocol.Refusal{Change: 3, Message: "it lacked WAL"}
		}, ""},
		"the successor refuses, and its Lease is not back yet": {func(w *world, m *member) {
			m.report.Report.Refusal = &protocol.Refusal{Change: 4, Message: "it lacks WAL"}
			w.isHeldBy("db-replica-1", epoch)
		}, ""},
		"the successor takes the Lease, and is lost": {func(w *world, m *member) {
			w.cluster.Status.PrimaryChange.StartedAt = metav1.NewTime(epoch.Add(-2 * time.Minute))
			m.silentSince(epoch.Add(-time.Minute))
			w.isHeldBy("db-replica-1", epoch.Add(-time.Minute))
		}, string(dbv1alpha1.PrimaryChangeFailover)},
	} {
		t.Run(name, func(t *testing.T) {
			w, successor := chosen(t, dbv1alpha1.PrimaryChangeSwitchover)
			w.instances["db-primary"].report.Error = ""
			w.instances["db-primary"].report.Report.State, w.instances["db-primary"].report.Report.Role = protocol.StateWaitingForPrimary, protocol.RoleNone
			w.lease.Holder = ""
			c.before(w, successor)
			a := plan.Decide(w.snapshot(), plan.Wanted{}).Assignment
			switch c.want {
			case "":
				require.NotNil(t, a.Change)
				assert.Equal(t, int64(4), a.Change.Number)
			case dbv1alpha1.PrimaryChangeReverted:
				require.Nil(t, a.Change)
				assert.Equal(t, c.want, a.LastChange.Result)
				assert.Equal(t, "db-primary", a.TargetPrimary)
				assert.Contains(t, a.LastChange.Message, "it lacks WAL")
			default:
				require.NotNil(t, a.Change)
				assert.Equal(t, dbv1alpha1.PrimaryChangeFailover, a.Change.Type)
				assert.Equal(t, "db-replica-1", a.Change.From)
			}
		})
	}
}

func TestARequestThatComesInTheMiddleIsAnswered(t *testing.T) {
	w, _ := chosen(t, dbv1alpha1.PrimaryChangeFailover)
	w.cluster.Annotations = map[string]string{naming.AnnotationSwitchover: "db-replica-2"}
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Contains(t, p.Clear, naming.AnnotationSwitchover)
	require.NotEmpty(t, p.Notices)
	assert.Contains(t, p.Notices[0].Message, "refused")

	w.cluster.Status.PrimaryChange.Type, w.cluster.Status.PrimaryChange.Reason = dbv1alpha1.PrimaryChangeSwitchover, "Requested"
	w.cluster.Annotations[naming.AnnotationSwitchover] = "db-replica-1"
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Contains(t, p.Clear, naming.AnnotationSwitchover)
	assert.Empty(t, p.Notices, "it is the one that is being carried out")
}

func TestTheRoleLabelInAChange(t *testing.T) {
	w := electing(t)
	w.instances["db-primary"].pod.Labels[naming.LabelRole] = naming.RolePrimary
	role, _ := roleOf(plan.Decide(w.snapshot(), plan.Wanted{}), "db-primary")
	assert.Empty(t, role, "one that is lost has none")

	w = available(t)
	w.instances["db-primary"].pod.Labels[naming.LabelRole] = naming.RolePrimary
	w.cluster.Status.TargetPrimary = "db-replica-1"
	w.cluster.Status.PrimaryChange = &dbv1alpha1.PrimaryChange{Number: 1, Type: dbv1alpha1.PrimaryChangeSwitchover,
		From: "db-primary", To: "db-replica-1", StartedAt: metav1.NewTime(epoch)}
	role, _ = roleOf(plan.Decide(w.snapshot(), plan.Wanted{}), "db-primary")
	assert.Equal(t, naming.RolePrimary, role, "it serves until it stops")
	w.instances["db-primary"].report.Report.Role = protocol.RoleNone
	role, _ = roleOf(plan.Decide(w.snapshot(), plan.Wanted{}), "db-primary")
	assert.Empty(t, role)

	w = available(t)
	w.instances["db-primary"].pod.Labels[naming.LabelRole] = naming.RolePrimary
	w.instances["db-primary"].pod.DeletionTimestamp = &metav1.Time{Time: epoch}
	role, known := roleOf(plan.Decide(w.snapshot(), plan.Wanted{}), "db-primary")
	assert.True(t, known)
	assert.Empty(t, role, "one that goes takes no connections, and its Service asks nobody whether it is ready")
}

func TestOneInstanceAtATimeRejoins(t *testing.T) {
	w := available(t)
	for _, name := range []string{"db-replica-1", "db-replica-2"} {
		w.instances[name].report.Report.State = protocol.StateWaitingToRejoin
		w.instances[name].report.Report.Role = protocol.RoleNone
	}
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, "db-replica-1", p.Assignment.Rejoining)

	w.cluster.Status.Rejoining = "db-replica-2"
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, "db-replica-2", p.Assignment.Rejoining, "whoever has begun ends it")

	w.instances["db-replica-2"].report.Report.Rejoin = &protocol.Rejoin{Attempts: 1}
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, "db-replica-2", p.Assignment.Rejoining, "though it has failed before")

	w.instances["db-replica-2"].report.Report.Rejoin.Paused = true
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, "db-replica-1", p.Assignment.Rejoining, "one that waits before it tries again keeps nobody waiting")

	w.instances["db-replica-2"].report.Report.State, w.instances["db-replica-2"].report.Report.Streaming = protocol.StateRunning, true
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, "db-replica-1", p.Assignment.Rejoining)
}

func TestARuleIsOnRecordBeforeItIsLoosenedAndAfterItIsTightened(t *testing.T) {
	w := available(t)
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Nil(t, p.Assignment.Synchronous)

	w.cluster.Spec.Replication.Synchronous = &dbv1alpha1.SynchronousSpec{Number: 1}
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	require.NotNil(t, p.Assignment.Synchronous)
	assert.Len(t, p.Assignment.Synchronous.Possible, 2, "commits may still be acknowledged by nobody")
	p.Assignment.Record(&w.cluster.Status)
	w.instances["db-primary"].report.Report.SynchronousNames = `ANY 1 ("db-replica-1","db-replica-2")`
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, []dbv1alpha1.SynchronousRule{p.Assignment.Synchronous.Wanted}, p.Assignment.Synchronous.Possible)
	p.Assignment.Record(&w.cluster.Status)

	w.cluster.Spec.Replication.Synchronous.Number = 2
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Len(t, p.Assignment.Synchronous.Possible, 2, "the weaker one is in force until the primary says otherwise")

	w.cluster.Spec.Replication.Synchronous = nil
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Equal(t, int32(0), p.Assignment.Synchronous.Wanted.Number)
	p.Assignment.Record(&w.cluster.Status)
	w.instances["db-primary"].report.Report.SynchronousNames = ""
	p = plan.Decide(w.snapshot(), plan.Wanted{})
	assert.Nil(t, p.Assignment.Synchronous)
}

func TestPreferredDurabilityWaitsForThoseThatAreThere(t *testing.T) {
	w := available(t)
	w.cluster.Spec.Replication.Synchronous = &dbv1alpha1.SynchronousSpec{Number: 2, DataDurability: dbv1alpha1.DurabilityPreferred}
	w.instances["db-primary"].report.Report.Replicas = []protocol.ReplicaConnection{{Instance: "db-replica-2", State: "streaming"}}
	wanted := plan.Decide(w.snapshot(), plan.Wanted{}).Assignment.Synchronous.Wanted
	assert.Equal(t, []string{"db-replica-2"}, wanted.Standbys)
	assert.Equal(t, int32(1), wanted.Number)
}

// TestAHandoverFromAPodThatWasKilledEndsAtOnce: what was force-deleted may not stop
// cleanly. Nobody gives up its Lease then, and its instance is back on the same data.
func TestAHandoverFromAPodThatWasKilledEndsAtOnce(t *testing.T) {
	handover := func(state protocol.State) *world {
		w := available(t)
		w.cluster.Status.TargetPrimary = "db-replica-1"
		w.cluster.Status.PrimaryChange = &dbv1alpha1.PrimaryChange{Number: 1, Type: dbv1alpha1.PrimaryChangeSwitchover,
			From: "db-primary", To: "db-replica-1", StartedAt: metav1.NewTime(epoch), LeaseTransitions: w.lease.Transitions}
		primary := w.instances["db-primary"]
		w.startPod("db-primary", primary)
		primary.report = ownReport(state)
		return w
	}
	w := handover(protocol.StateWaitingForVolume)
	assert.NotNil(t, w.pass(plan.Wanted{}).Assignment.Change, "something of it may still run")

	w = handover(protocol.StateWaitingForPrimary)
	p := w.pass(plan.Wanted{})
	assert.Nil(t, p.Assignment.Change)
	assert.Equal(t, "db-primary", p.Assignment.TargetPrimary)
	assert.Equal(t, dbv1alpha1.PrimaryChangeReverted, p.Assignment.LastChange.Result)
	assert.Contains(t, p.Assignment.LastChange.Message, "it did not stop cleanly, and is back with another pod")
}

// ownReport is what an instance says whose PostgreSQL does not run.
func ownReport(current protocol.State) state.ReportEntry {
	return state.ReportEntry{Known: true, Report: protocol.Report{State: current, Role: protocol.RoleNone}}
}

// awayFromHome is a cluster whose primary may go home, and has caught up there.
func awayFromHome(t *testing.T) *world {
	t.Helper()
	w := available(t)
	w.cluster.Spec.Failover.Failback = dbv1alpha1.FailbackAutomatic
	w.cluster.Status.TargetPrimary, w.cluster.Status.CurrentPrimary = "db-replica-1", "db-replica-1"
	w.instances["db-primary"].report.Report.Role, w.instances["db-primary"].report.Report.Streaming = protocol.RoleReplica, true
	leader := &w.instances["db-replica-1"].report.Report
	leader.Role, leader.WrittenLSN, leader.Streaming = protocol.RolePrimary, "0/5000000", false
	leader.Replicas = []protocol.ReplicaConnection{{Instance: "db-primary", State: "streaming", FlushLSN: "0/5000000"}}
	w.lease.Holder = "db-replica-1/" + string(w.instances["db-replica-1"].pod.UID)
	return w
}

func TestFailback(t *testing.T) {
	w := awayFromHome(t)
	p := plan.Decide(w.snapshot(), plan.Wanted{})
	require.NotNil(t, p.Assignment.Change)
	assert.Equal(t, "db-primary", p.Assignment.TargetPrimary)

	for name, before := range map[string]func(w *world){
		"Manual":               func(w *world) { w.cluster.Spec.Failover.Failback = dbv1alpha1.FailbackManual },
		"home lags behind":     func(w *world) { w.instances["db-replica-1"].report.Report.WrittenLSN = "0/9000000" },
		"home does not stream": func(w *world) { w.instances["db-primary"].report.Report.Streaming = false },
		"it has moved just now": func(w *world) {
			now := metav1.NewTime(epoch.Add(-time.Second))
			w.cluster.Status.LastPrimaryChange = &dbv1alpha1.PrimaryChange{Number: 1, CompletedAt: &now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := awayFromHome(t)
			before(w)
			assert.Nil(t, plan.Decide(w.snapshot(), plan.Wanted{}).Assignment.Change)
		})
	}
}

func TestWhatAFailoverHasLostIsToldAfterwards(t *testing.T) {
	done := func(w *world) *dbv1alpha1.PrimaryChange {
		w.cluster.Status.LastPrimaryChange = &dbv1alpha1.PrimaryChange{Number: 4, Type: dbv1alpha1.PrimaryChangeFailover,
			From: "db-replica-1", To: "db-primary", Result: dbv1alpha1.PrimaryChangePromoted}
		return w.cluster.Status.LastPrimaryChange
	}
	for name, c := range map[string]struct {
		before func(w *world)
		told   bool
	}{
		"the former primary has compared":             {func(*world) {}, true},
		"it was another one that did":                 {func(w *world) { done(w).From = "db-replica-2" }, false},
		"it has not compared yet":                     {func(w *world) { w.instances["db-replica-1"].report.Report.Rejoin.Lost = nil }, false},
		"nothing could be lost":                       {func(w *world) { done(w).LostBytesAtMost = new(int64) }, false},
		"it was planned":                              {func(w *world) { done(w).Type = dbv1alpha1.PrimaryChangeSwitchover }, false},
		"it was given up":                             {func(w *world) { done(w).Result = dbv1alpha1.PrimaryChangeReverted }, false},
		"the former primary does not answer any more": {func(w *world) { w.instances["db-replica-1"].silentSince(epoch) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := available(t)
			done(w)
			report := &w.instances["db-replica-1"].report.Report
			report.State, report.Role = protocol.StateWaitingToRejoin, protocol.RoleNone
			report.Rejoin = &protocol.Rejoin{Method: protocol.RejoinRewind, Lost: &protocol.Lost{Bytes: 1234, Commits: 3}}
			c.before(w)
			p := plan.Decide(w.snapshot(), plan.Wanted{})
			if !c.told {
				assert.Equal(t, w.cluster.Status.LastPrimaryChange, p.Assignment.LastChange)
				assert.Empty(t, p.Notices)
				return
			}
			require.NotNil(t, p.Assignment.LastChange.LostBytesAtMost)
			assert.EqualValues(t, 1234, *p.Assignment.LastChange.LostBytesAtMost)
			require.Len(t, p.Notices, 1)
			assert.Contains(t, p.Notices[0].Message, "3 transactions")
			w.cluster.Status.LastPrimaryChange = p.Assignment.LastChange
			assert.Empty(t, plan.Decide(w.snapshot(), plan.Wanted{}).Notices, "once")
		})
	}
}

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// The rules of the instance manager as this model of it keeps them: a right that
// was not renewed ends before the Lease does.
const (
	tick          = 500 * time.Millisecond
	leaseLasts    = 10 * time.Second
	renewEvery    = 3 * time.Second
	stopsAfter    = 8 * time.Second
	recordBytes   = 16
	incidentSteps = 240
	incidentSeeds = 2000
)

// incidents is a world in which things break: instances crash, freeze and are cut
// off, pods are deleted, reports come late, operators die between two writes. Time
// passes in ticks.
type incidents struct {
	*world
	random *rand.Rand
	now    time.Time
	nodes  []*node
	lease  lease
	// operator is what the present operator has seen; its death forgets it.
	operator struct {
		leaseVersion int
		leaseChanged time.Time
		reports      map[types.UID]state.ReportEntry
	}
	number       int32 // of replicas that a commit waits for; 0 is asynchronous
	acknowledged []int // commits, by number
	commits      int
	crashed      bool // something happened that may lose commits of an asynchronous primary
	trace        []string
}

type lease struct {
	holder      string
	version     int
	final       string
	transitions int32
	acquired    time.Time
}

func (l lease) freed(final string) lease {
	return lease{version: l.version + 1, final: final, transitions: l.transitions}
}

// node is one instance: its pod, its manager, its server and its WAL, which is a
// list of commits.
type node struct {
	name                  string
	member                *member
	alive, frozen         bool
	noAPI, noOperator     bool
	dead                  int // ticks until the kubelet has started it again
	deleting              int // ticks until another pod is there
	role                  protocol.Role
	standby, held         bool
	renewed               time.Time
	wal                   []int
	timeline              uint32
	seen                  dbv1alpha1.PostgresClusterStatus
	cut, refused          int64
	waitsToRejoin         bool
	streaming, refusedNow bool
	// replayed is how many commits a replica has replayed: of what it had when it
	// started it tells no more.
	replayed int
	problem  *protocol.Problem // whatever else is wrong
	ended    time.Time         // of the last container
	word     corev1.ContainerState
}

func newIncidents(seed uint64) *incidents {
	s := &incidents{world: newWorld(3), random: rand.New(rand.NewPCG(seed, 7)), now: epoch}
	s.number = int32(seed % 2)
	if s.number > 0 {
		s.cluster.Spec.Replication.Synchronous = &dbv1alpha1.SynchronousSpec{Number: s.number}
	}
	for ordinal := range 3 {
		name := naming.Instance("db", ordinal)
		n := &node{name: name, alive: true, standby: ordinal > 0, timeline: 1}
		n.member = s.running(name, protocol.RoleNone)
		s.nodes = append(s.nodes, n)
	}
	s.restartOperator()
	return s
}

func (s *incidents) log(format string, arguments ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%6.1fs ", s.now.Sub(epoch).Seconds())+fmt.Sprintf(format, arguments...))
}

func (s *incidents) restartOperator() {
	s.operator.leaseVersion, s.operator.leaseChanged = s.lease.version, s.now
	s.operator.reports = map[types.UID]state.ReportEntry{}
}

// TestNoIncidentMakesTwoPrimaries: whatever breaks, never do two instances accept
// writes, a planned change loses nothing, a synchronous cluster never loses an
// acknowledged commit, and once nothing breaks any more there is a primary that
// both others follow.
func TestNoIncidentMakesTwoPrimaries(t *testing.T) {
	for seed := range uint64(incidentSeeds) {
		s := newIncidents(seed)
		for range 40 { // until there is a primary
			s.step(t, seed, false)
		}
		for range incidentSteps {
			s.step(t, seed, true)
		}
		s.heal()
		for range 400 {
			s.step(t, seed, false)
			if s.settledAgain() {
				break
			}
		}
		require.True(t, s.settledAgain(), "seed %d does not settle:\n%s\n%s", seed, strings.Join(s.trace, "\n"), s.describe())
	}
}

func (s *incidents) step(t *testing.T, seed uint64, faults bool) {
	s.now = s.now.Add(tick)
	if faults && s.random.IntN(12) == 0 {
		s.fault()
	}
	for _, n := range s.nodes {
		s.live(n)
	}
	s.stream()
	s.write()
	// The operator is slow at times, and dies at times.
	if s.random.IntN(4) > 0 {
		s.pass(s.random.IntN(8) == 0 && faults)
	}
	writable := 0
	for _, n := range s.nodes {
		if n.alive && !n.frozen && n.role == protocol.RolePrimary {
			writable++
		}
	}
	require.LessOrEqual(t, writable, 1, "seed %d: two primaries:\n%s\n%s", seed, strings.Join(s.trace, "\n"), s.describe())
	if leader := s.leader(); leader != nil {
		require.Empty(t, s.lost(leader), "seed %d lost acknowledged commits:\n%s\n%s", seed, strings.Join(s.trace, "\n"), s.describe())
	}
}

// lost are the acknowledged commits that a primary lacks, unless the cluster is
// asynchronous and something crashed: then some may be.
func (s *incidents) lost(leader *node) []int {
	if s.number == 0 && s.crashed {
		return nil
	}
	var lost []int
	at := 0
	for _, commit := range s.acknowledged { // both are in order
		for at < len(leader.wal) && leader.wal[at] < commit {
			at++
		}
		if at == len(leader.wal) || leader.wal[at] != commit {
			lost = append(lost, commit)
		}
	}
	return lost
}

func (s *incidents) fault() {
	n := s.nodes[s.random.IntN(len(s.nodes))]
	switch s.random.IntN(10) {
	case 0:
		s.crashed = true
		n.frozen = !n.frozen
		s.log("%s frozen: %v", n.name, n.frozen)
	case 1:
		n.noAPI = !n.noAPI
		s.crashed = s.crashed || n.noAPI
		s.log("%s cut off from the API server: %v", n.name, n.noAPI)
	case 2:
		n.noOperator = !n.noOperator
		s.log("%s cut off from the operator: %v", n.name, n.noOperator)
	case 3:
		if n.alive && !n.frozen {
			s.crashed = true
			s.log("container of %s killed", n.name)
			n.end()
			n.ended = s.now
			n.dead = 1 + s.random.IntN(30)
		}
	case 4:
		if n.alive && !n.frozen && n.deleting == 0 {
			s.log("pod of %s deleted", n.name)
			n.deleting = 4 + s.random.IntN(20)
			s.stopCleanly(n)
			n.alive = false
		}
	case 5:
		s.cluster.Annotations = map[string]string{naming.AnnotationSwitchover: n.name}
		s.log("switchover to %s asked for", n.name)
	case 6:
		s.log("the operator is replaced")
		s.restartOperator()
	case 7: // postgres alone crashes, and the manager starts it again
		if n.alive && !n.frozen {
			s.log("postgres of %s killed", n.name)
			n.role, n.streaming = protocol.RoleNone, false
		}
	case 8:
		problems := []protocol.ProblemReason{protocol.ProblemCrashing, protocol.ProblemConfigRefused, protocol.ProblemIsolated}
		n.problem = &protocol.Problem{Reason: problems[s.random.IntN(len(problems))]}
		s.log("%s reports %s", n.name, n.problem.Reason)
	default:
		s.heal()
	}
}

func (s *incidents) heal() {
	s.log("all is healed")
	for _, n := range s.nodes {
		n.frozen, n.noAPI, n.noOperator, n.problem = false, false, false, nil
	}
}

// end is the end of a container: nothing of it goes on, the volume stays.
func (n *node) end() {
	n.alive, n.role, n.held, n.streaming, n.cut, n.refused = false, protocol.RoleNone, false, false, 0, 0
}

// stopCleanly is the end of a server that was asked to: its replicas get
// everything, and the Lease says where it ended.
func (s *incidents) stopCleanly(n *node) {
	if n.role == protocol.RolePrimary {
		s.streamFrom(n, true)
	}
	wrote := n.role == protocol.RolePrimary
	n.role, n.streaming = protocol.RoleNone, false
	if n.held && !n.noAPI && s.lease.holder == s.holder(n) {
		final := ""
		if wrote {
			final = postgres.LSN(len(n.wal)*recordBytes - 8).String()
		}
		s.lease = s.lease.freed(final)
	}
	n.held = false
}

func (s *incidents) holder(n *node) string { return n.name + "/" + string(n.member.pod.UID) }

// live is one turn of an instance manager, and of the kubelet.
func (s *incidents) live(n *node) {
	switch {
	case n.deleting > 0:
		if n.deleting--; n.deleting == 0 {
			n.end()
			s.startPod(n.name, n.member)
			n.member.pod.Status.PodIP = "10.0.0.1"
			n.alive = true
		}
		return
	case n.dead > 0:
		if n.dead--; n.dead == 0 {
			n.alive = true
		}
		return
	case !n.alive || n.frozen:
		return
	}
	if !n.noAPI {
		n.seen = *s.cluster.Status.DeepCopy()
	}
	s.guard(n)
	change := n.seen.PrimaryChange
	mayLead := n.seen.TargetPrimary == n.name && (change == nil || change.To == n.name)
	n.refusedNow = change != nil && change.Number == n.refused
	n.cut = 0
	switch {
	case n.seen.TargetPrimary == "":
	case n.role == protocol.RolePrimary && !mayLead:
		s.log("%s stops", n.name)
		s.stopCleanly(n)
	case n.role == protocol.RoleNone:
		s.start(n, mayLead)
	case n.role == protocol.RoleReplica && n.replayed < len(n.wal):
		n.replayed += 1 + s.random.IntN(min(4, len(n.wal)-n.replayed))
		if change != nil && change.To == "" {
			n.cut = -1 // to be cut, and not known to stand still
		}
	case n.role == protocol.RoleReplica && mayLead && !n.refusedNow:
		s.promote(n)
	case n.role == protocol.RoleReplica && change != nil && change.To == "":
		n.cut = change.Number
	}
}

// guard renews the right to write, or ends it.
func (s *incidents) guard(n *node) {
	if !n.held {
		return
	}
	if s.now.Sub(n.renewed) >= renewEvery && !n.noAPI {
		if s.lease.holder != s.holder(n) {
			s.log("%s sees another holder", n.name)
			n.role, n.held, n.streaming = protocol.RoleNone, false, false
			return
		}
		s.lease.version++
		n.renewed = s.now
	}
	if s.now.Sub(n.renewed) >= stopsAfter {
		s.log("%s has lost its right", n.name)
		n.role, n.held, n.streaming = protocol.RoleNone, false, false
	}
}

func (s *incidents) acquire(n *node) bool {
	// Another pod of the same instance has the lock of its volume, and need not wait.
	if n.noAPI || (s.lease.holder != "" && !strings.HasPrefix(s.lease.holder, n.name+"/")) {
		return false
	}
	if s.lease.holder == "" {
		s.log("%s takes the Lease", n.name)
	}
	if !n.held {
		s.lease.acquired = s.now
	}
	if s.lease.holder == s.holder(n) {
		s.lease.final = ""
	} else {
		s.lease.transitions++
	}
	s.lease.holder, s.lease.version = s.holder(n), s.lease.version+1
	n.held, n.renewed = true, s.now
	return true
}

func (s *incidents) start(n *node, mayLead bool) {
	if !mayLead && n.held {
		s.stopCleanly(n)
	}
	n.waitsToRejoin = false
	switch {
	case !n.standby && mayLead:
		if s.acquire(n) {
			s.lease.final = ""
			s.lead(n)
		}
	case n.standby:
		n.role = protocol.RoleReplica
		n.replayed = max(0, len(n.wal)-s.random.IntN(12))
	default: // a former primary
		leader := s.leader()
		if leader == nil || n.seen.TargetPrimary == n.name {
			return
		}
		if follows(n, leader) {
			n.standby, n.role, n.replayed = true, protocol.RoleReplica, len(n.wal)
		} else if n.waitsToRejoin = true; n.seen.Rejoining == n.name {
			s.log("%s rejoins", n.name)
			n.wal, n.timeline, n.replayed = slices.Clone(leader.wal), leader.timeline, len(leader.wal)
			n.standby, n.role, n.waitsToRejoin = true, protocol.RoleReplica, false
		}
	}
}

func follows(n, leader *node) bool {
	return n.timeline <= leader.timeline && len(n.wal) <= len(leader.wal) && slices.Equal(n.wal, leader.wal[:len(n.wal)])
}

func (s *incidents) promote(n *node) {
	change := n.seen.PrimaryChange
	if n.noAPI {
		return
	}
	if change != nil && change.Type == dbv1alpha1.PrimaryChangeSwitchover && s.lease.holder == "" {
		final, err := postgres.ParseLSN(s.lease.final)
		if err != nil || n.lsn() <= final {
			s.log("%s refuses", n.name)
			n.refused = change.Number
			return
		}
	}
	if !s.acquire(n) {
		return
	}
	s.lease.final = ""
	n.timeline++
	s.lead(n)
}

func (s *incidents) lead(n *node) {
	s.log("%s leads on timeline %d with %d commits", n.name, n.timeline, len(n.wal))
	n.role, n.standby, n.streaming = protocol.RolePrimary, false, false
}

func (n *node) lsn() postgres.LSN { return postgres.LSN(len(n.wal) * recordBytes) }

func (s *incidents) leader() *node {
	for _, n := range s.nodes {
		if n.alive && !n.frozen && n.role == protocol.RolePrimary {
			return n
		}
	}
	return nil
}

// stream moves WAL from the primary to replicas, not always all of it. A replica
// that has what the primary lacks cannot follow, and rebuilds itself.
func (s *incidents) stream() {
	for _, n := range s.nodes {
		n.streaming = false
	}
	if leader := s.leader(); leader != nil {
		s.streamFrom(leader, false)
	}
}

func (s *incidents) streamFrom(leader *node, all bool) {
	for _, n := range s.nodes {
		if n == leader || !n.alive || n.frozen || n.role != protocol.RoleReplica || n.cut != 0 || n.replayed < len(n.wal) {
			continue
		}
		if !follows(n, leader) {
			n.role, n.standby = protocol.RoleNone, false
			continue
		}
		n.streaming, n.timeline = true, leader.timeline
		upTo := len(leader.wal)
		if !all {
			upTo -= s.random.IntN(min(3, upTo-len(n.wal)+1))
		}
		n.wal, n.replayed = slices.Clone(leader.wal[:upTo]), upTo
	}
}

// write makes a commit, and acknowledges those that enough replicas have.
func (s *incidents) write() {
	leader := s.leader()
	if leader == nil {
		return
	}
	s.commits++
	leader.wal = append(leader.wal, s.commits)
	if s.number == 0 {
		s.acknowledged = append(s.acknowledged, s.commits)
		return
	}
	// What a streaming replica has is the beginning of what the primary has.
	var have []int
	for _, n := range s.nodes {
		if n != leader && n.streaming {
			have = append(have, len(n.wal))
		}
	}
	slices.Sort(have)
	if len(have) < int(s.number) {
		return
	}
	last := 0
	if len(s.acknowledged) > 0 {
		last = s.acknowledged[len(s.acknowledged)-1]
	}
	for _, commit := range leader.wal[:have[len(have)-int(s.number)]] {
		if commit > last {
			s.acknowledged = append(s.acknowledged, commit)
		}
	}
}

// pass is one pass of the operator, which may die after the assignment.
func (s *incidents) pass(dies bool) {
	p := plan.Decide(s.observe(), plan.Wanted{})
	before := s.cluster.Status.PrimaryChange
	p.Assignment.Record(&s.cluster.Status)
	if now := s.cluster.Status.PrimaryChange; now != nil && (before == nil || *before != *now) {
		s.log("decided: %s %d from %s to %q: %s", now.Type, now.Number, now.From, now.To, now.Message)
	}
	if dies {
		s.log("the operator dies after the assignment")
		s.restartOperator()
		return
	}
	if p.FreeLease && s.lease.version == s.operator.leaseVersion {
		s.log("the operator frees the Lease of %s", s.lease.holder)
		s.lease = s.lease.freed("")
	}
	if len(p.Clear) > 0 {
		s.cluster.Annotations = nil
	}
}

// observe is what the operator sees: reports of those that answer it, and the
// Lease with its own clock.
func (s *incidents) observe() *state.Snapshot {
	if s.operator.leaseVersion != s.lease.version {
		s.operator.leaseVersion, s.operator.leaseChanged = s.lease.version, s.now
	}
	o := state.Observed{Now: s.now, Cluster: s.cluster, Reports: s.operator.reports, Lease: state.Lease{
		Known: true, Holder: s.lease.holder, Version: fmt.Sprint(s.lease.version), ChangedAt: s.operator.leaseChanged,
		Duration: leaseLasts, AcquiredAt: s.lease.acquired, FinalLSN: s.lease.final, Transitions: s.lease.transitions,
	}}
	base := s.snapshot()
	for _, n := range s.nodes {
		pod := n.member.pod.DeepCopy()
		pod.DeletionTimestamp = nil
		container := corev1.ContainerStatus{Name: naming.ContainerPostgres, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		if n.dead > 0 {
			container.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.NewTime(n.ended.Truncate(time.Second))}}
		}
		// The word of a kubelet comes late; and one whose node is cut off goes on, and its
		// last word stays.
		if n.word != (corev1.ContainerState{}) && (n.noAPI || s.random.IntN(3) > 0) {
			container.State = n.word
		}
		n.word = container.State
		if n.deleting > 0 {
			deleted := metav1.NewTime(s.now)
			pod.DeletionTimestamp = &deleted
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{container}
		if n.deleting == 0 || n.deleting > 2 { // it has gone for a moment before the next one is there
			o.Pods = append(o.Pods, *pod)
		}
		s.operator.reports[pod.UID] = s.report(n, s.operator.reports[pod.UID])
		for _, instance := range base.Instances {
			if instance.Name == n.name && instance.Workload.StatefulSet != nil {
				o.StatefulSets = append(o.StatefulSets, *instance.Workload.StatefulSet)
			} else if instance.Name == n.name {
				o.Deployments = append(o.Deployments, *instance.Workload.Deployment)
			}
		}
	}
	return state.New(o)
}

func (s *incidents) report(n *node, before state.ReportEntry) state.ReportEntry {
	if !n.alive || n.frozen || n.noOperator {
		if before.Error == "" {
			before.FailedSince = s.now
		}
		before.Error = "no answer"
		return before
	}
	if s.random.IntN(5) == 0 && before.Known {
		before.Error = ""
		return before // a late one
	}
	report := protocol.Report{
		Instance: n.name, State: protocol.StateRunning, Role: n.role, SystemIdentifier: "7000", Timeline: n.timeline,
		ReceivedLSN: n.lsn().String(), WrittenLSN: n.lsn().String(), Streaming: n.streaming, StreamCut: max(n.cut, 0),
		Problem: n.problem,
	}
	if n.role == protocol.RoleReplica {
		report.ReceivedLSN = postgres.LSN(n.replayed * recordBytes).String()
	}
	if n.refused != 0 {
		report.Refusal = &protocol.Refusal{Change: n.refused, Message: "lacks WAL"}
	}
	if n.role == protocol.RoleNone {
		report.State = protocol.StateStarting
		if n.waitsToRejoin {
			report.State = protocol.StateWaitingToRejoin
		}
	}
	if rule := s.cluster.Status.Synchronous; rule != nil && n.role == protocol.RolePrimary {
		report.SynchronousNames = postgres.SynchronousNames(string(rule.Wanted.Method), int(rule.Wanted.Number), rule.Wanted.Replicas(n.name))
	}
	entry := state.ReportEntry{Known: true, Report: report, At: s.now, DownSince: before.DownSince}
	if n.role != protocol.RoleNone {
		entry.DownSince = time.Time{}
	} else if before.DownSince.IsZero() {
		entry.DownSince = s.now
	}
	return entry
}

func (s *incidents) settledAgain() bool {
	leader := s.leader()
	status := s.cluster.Status
	if leader == nil || status.PrimaryChange != nil || status.TargetPrimary != leader.name || status.CurrentPrimary != leader.name {
		return false
	}
	for _, n := range s.nodes {
		if n != leader && !n.streaming {
			return false
		}
	}
	return true
}

func (s *incidents) describe() string {
	text := fmt.Sprintf("T=%s C=%s change=%+v lease=%+v rejoining=%s\n", s.cluster.Status.TargetPrimary, s.cluster.Status.CurrentPrimary,
		s.cluster.Status.PrimaryChange, s.lease, s.cluster.Status.Rejoining)
	for _, n := range s.nodes {
		text += fmt.Sprintf("%s: alive=%v frozen=%v noAPI=%v noOperator=%v role=%q standby=%v held=%v timeline=%d commits=%d cut=%d streaming=%v dead=%d deleting=%d rejoin=%v\n",
			n.name, n.alive, n.frozen, n.noAPI, n.noOperator, n.role, n.standby, n.held, n.timeline, len(n.wal), n.cut, n.streaming, n.dead, n.deleting, n.waitsToRejoin)
	}
	return text
}

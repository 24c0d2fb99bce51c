package instance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/process"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/instance/volume"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// lookStarting and lookRunning are how often the server is looked at: often while it starts, since
	// clients wait, then once a second.
	lookStarting = 50 * time.Millisecond
	lookRunning  = time.Second
	// lookTime bounds one look.
	lookTime = 3 * time.Second
	// upkeepEvery is how often what is kept in line with the spec is looked at
	// although nothing has changed: the mounted Secrets, and what people did.
	upkeepEvery = 10 * time.Second
	// diskReserve is what PostgreSQL needs to go on: two segments of WAL, in bytes.
	diskReserve = 32 << 20
	// followPatience is how long a replica may be without its stream before the primary
	// is asked whether it can ever follow, and between two such questions.
	followPatience = 10 * time.Second
	// steadyLooks in a row have to find a replica streaming: one that lacks WAL seems to
	// stream for a moment at each try.
	steadyLooks = 5
	// stillLooks in a row have to find a replica to stand still whose stream was cut: the
	// process that could begin to receive again hears of the cut a moment later than others.
	stillLooks = 2
	// leaveTime is about what it takes until the Service leads nowhere, once a primary has
	// said that it stops: clients that are connected are served for as long.
	leaveTime = 150 * time.Millisecond
	// lingerTime is about what it takes until another instance leads and kube-proxy
	// knows, which looks at the Services once a second.
	lingerTime = 2 * time.Second
	// connectRetry is the pause while a private server starts.
	connectRetry = 20 * time.Millisecond
)

// supervision is one running server.
type supervision struct {
	*Manager
	postmaster *process.Postmaster
	writable   bool // it was started with the right to be written to
	connection *pgx.Conn
	lastUpkeep time.Time
	generation int64 // of the cluster whose configuration is in force
	promoted   bool  // it does not have to be promoted any more
	steady     int   // looks in a row that found the replica streaming
	still      int   // looks in a row that found it to stand still, since the cut
	// streamed is when the replica last streamed, or was asked about, or started.
	streamed time.Time
	// synchronous is the rule as the last look found it.
	synchronous string
}

// supervise stays with a running server: it reports, reloads, keeps slots and
// password in line, and returns when the server has ended. If the context ends, it
// stops the server.
func (m *Manager) supervise(ctx context.Context, postmaster *process.Postmaster, writable bool, generation int64) error {
	s := &supervision{Manager: m, postmaster: postmaster, writable: writable, promoted: writable, generation: generation, streamed: time.Now()}
	m.cannotFollow = nil // what was said of earlier data, or of an earlier part, is over
	defer s.disconnect()
	if writable {
		s.startGuard(ctx)
	}
	timer := time.NewTimer(lookStarting)
	defer timer.Stop()
	for {
		m.heartbeat(false)
		select {
		case <-ctx.Done():
			return s.stop(ctx)
		case <-postmaster.Done():
			// Sessions that are busy outlive it; they are not waited for.
			m.supervisor.EndOrphans()
			return fmt.Errorf("postgres ended (%s): %s", ending(postmaster.Err()), orDefault(m.postgresLog.LastFatal(), "it said nothing"))
		case <-m.watcher.Changed():
			s.lastUpkeep = time.Time{}
		case <-timer.C:
		}
		cluster := m.watcher.Get()
		if m.isFenced(cluster) || (s.writable && !m.mayLead(cluster)) {
			m.log.Info("stopping: fenced, or another instance is to be the primary",
				"targetPrimary", cluster.Status.TargetPrimary, "change", cluster.Status.PrimaryChange)
			return s.stop(ctx)
		}
		if restart := cluster.Status.Restarting; restart != nil && restart.Instance == s.options.Instance &&
			restart.What == dbv1alpha1.RestartPostgreSQL && len(s.report.PendingRestart) > 0 {
			m.log.Info("restarting PostgreSQL", "parameters", s.report.PendingRestart)
			return s.stop(ctx)
		}
		pause := s.turn(ctx, cluster)
		if m.cannotFollow != nil {
			m.log.Info("stopping: the data cannot follow the primary", "reason", m.cannotFollow.Message)
			return s.stop(ctx)
		}
		timer.Reset(pause)
	}
}

// turn is one look at the server, and what follows from it; it returns when to
// look again.
func (s *supervision) turn(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) time.Duration {
	if !s.look(ctx) {
		return lookStarting
	}
	s.cutStream(ctx, cluster)
	if !s.promoted && s.mayLead(cluster) && !s.refusedChange(cluster) {
		if s.promote(ctx, cluster); !s.promoted {
			return handoverLook
		}
		s.look(ctx)
	}
	if s.steady++; !s.report.Streaming {
		s.steady = 0
	}
	if s.steady >= steadyLooks || s.writable || s.cut != 0 {
		s.streamed = time.Now()
	} else if time.Since(s.streamed) > followPatience {
		s.streamed = time.Now()
		s.cannotFollow = s.canFollow(ctx, cluster)
	}
	if time.Since(s.lastUpkeep) > upkeepEvery {
		s.upkeep(ctx, cluster)
	}
	if s.cut > 0 && s.report.StreamCut != s.cut {
		return handoverLook
	}
	return lookRunning
}

// stop ends the server with a checkpoint, and then gives up the Lease: in this
// order, since a Lease that is free lets another open for writes.
func (s *supervision) stop(ctx context.Context) error {
	s.heartbeat(true)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	change := s.watcher.Get().Status.PrimaryChange
	failover := change != nil && change.Type == dbv1alpha1.PrimaryChangeFailover
	if s.connection != nil && s.writable && !failover {
		// A checkpoint while clients are still served shortens the one without them. In a
		// failover every commit that is still made is lost.
		if _, err := s.connection.Exec(stopping, "checkpoint"); err != nil {
			s.log.Warn("the checkpoint before the stop failed", "error", err)
		}
	}
	// Heard by the operator, this ends new connections through the Service.
	s.update(func(r *protocol.Report) {
		r.State, r.Role, r.Streaming = protocol.StateStopping, protocol.RoleNone, false
		r.PendingRestart = nil // the next server begins with what is configured
	})
	if change != nil && !failover && s.writable {
		pause(stopping, leaveTime)
	}
	s.disconnect()
	if err := s.postmaster.Stop(stopping); err != nil {
		s.log.Error("the stop was not clean", "error", err)
	}
	s.supervisor.EndOrphans() // nothing of it commits after the Lease was given up
	if !s.writable {
		return nil
	}
	// A successor that has received all of this loses nothing.
	final, err := s.finalLSN(stopping)
	if err != nil {
		s.log.Error("the end of the WAL is not known", "error", err)
	}
	if err := s.lease.Release(stopping, final); err != nil {
		s.log.Warn("the Lease ends by itself", "error", err)
	}
	if ctx.Err() != nil {
		s.linger(stopping)
	}
	return nil
}

// linger keeps the address of a pod that ends for a moment, while its Service still
// leads there: it refuses connections at once, and clients try again. An address that
// has gone answers nothing, and each of them would wait for it.
func (s *supervision) linger(ctx context.Context) {
	if cluster := s.watcher.Get(); cluster.DeletionTimestamp != nil || len(cluster.Status.InstanceNames) < 2 {
		return
	}
	pause(ctx, lingerTime)
}

// pause waits for a moment, unless the context ends.
func pause(ctx context.Context, moment time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(moment):
	}
}

// look asks the server how it is and reports it; false if it does not answer.
func (s *supervision) look(ctx context.Context) bool {
	looking, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if s.connection == nil || s.connection.IsClosed() {
		if !s.postmaster.Accepting() {
			s.notRunning()
			return false
		}
		connection, err := sql.Connect(looking, s.options.Paths.Socket, "postgres")
		if err != nil {
			s.notRunning()
			return false
		}
		s.connection = connection
	}
	seen, err := sql.Observe(looking, s.connection, naming.UserReplication)
	if err != nil {
		s.log.Warn("the server does not answer", "error", err)
		s.disconnect()
		s.notRunning()
		return false
	}
	total, available, err := volume.Space(filepath.Dir(s.options.Paths.Data))
	if err != nil {
		s.log.Warn("the volume's size is unknown", "error", err)
	}
	s.update(func(r *protocol.Report) {
		if r.State != protocol.StateRunning {
			r.Problem = nil
		}
		r.Problem = s.diskProblem(r.Problem, total, available)
		if r.State != protocol.StatePromoting || !seen.InRecovery {
			r.State = protocol.StateRunning
		}
		r.Role, r.StreamCut = protocol.RolePrimary, 0
		if seen.InRecovery {
			r.Role = protocol.RoleReplica
		}
		if s.still++; s.cut <= 0 || !seen.InRecovery || !seen.StandsStill {
			s.still = 0
		}
		if s.still >= stillLooks {
			r.StreamCut = s.cut
		}
		if r.SynchronousNames = s.synchronous; s.synchronous != seen.SynchronousNames {
			r.SynchronousNames = "" // not in force for everybody until the next look
		}
		s.synchronous = seen.SynchronousNames
		r.SystemIdentifier, r.Timeline = seen.SystemIdentifier, seen.Timeline
		r.WrittenLSN, r.ReceivedLSN, r.ReplayedLSN = seen.WrittenLSN, seen.ReceivedLSN, seen.ReplayedLSN
		r.Streaming, r.Replicas, r.PendingRestart = seen.Streaming, seen.Replicas, seen.PendingRestart
		r.ConfigGeneration = s.generation
		r.Disk = protocol.Disk{TotalBytes: total, AvailableBytes: available}
		if seen.Streaming {
			s.lastStreaming = time.Now()
		}
	})
	return true
}

// diskProblem adds a full disk to, or takes it from, what is wrong otherwise.
func (m *Manager) diskProblem(present *protocol.Problem, total, available int64) *protocol.Problem {
	switch {
	case total > 0 && available < diskReserve:
		return m.diskFull(total, fmt.Sprintf("%d of %d MiB are left on", available>>20, total>>20))
	case present != nil && present.Reason == protocol.ProblemDiskFull:
		return nil
	}
	return present
}

// diskFull names the volume, and a size that would do.
func (m *Manager) diskFull(total int64, what string) *protocol.Problem {
	return &protocol.Problem{Reason: protocol.ProblemDiskFull, Message: fmt.Sprintf(
		"%s the volume of claim %s: raise spec.storage.size, for instance to %dMi", what, naming.DataClaim(m.options.Instance), 2*total>>20)}
}

func (s *supervision) notRunning() {
	s.update(func(r *protocol.Report) {
		r.State, r.Role, r.Streaming = protocol.StateRecovering, protocol.RoleNone, false
	})
}

func (s *supervision) disconnect() {
	if s.connection != nil {
		closing, cancel := context.WithTimeout(context.Background(), lookTime)
		defer cancel()
		_ = s.connection.Close(closing)
		s.connection = nil
	}
}

// upkeep brings the server in line with the spec, the status and the Secrets.
func (s *supervision) upkeep(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	working, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s.lastUpkeep = time.Now()
	if err := s.reconfigure(working, cluster); err != nil {
		s.log.Error("the configuration could not be brought up to date", "error", err)
		return
	}
	if s.connection == nil {
		return
	}
	var wanted []string
	for _, name := range s.peerNames(cluster) {
		wanted = append(wanted, naming.Slot(name))
	}
	if err := sql.EnsureSlots(working, s.connection, wanted, s.ourSlot); err != nil {
		s.log.Error("the replication slots could not be brought up to date", "error", err)
		s.lastUpkeep = time.Time{} // replicas wait for them
	}
	if s.report.Role != protocol.RolePrimary {
		s.followSlots(working, cluster, wanted)
		return
	}
	if err := s.ensurePassword(working, cluster); err != nil {
		s.log.Error("the application's password could not be brought up to date", "error", err)
	}
}

// followSlots makes the slots of a replica keep the WAL that the other replicas
// still need, no more: should it become the primary, they follow it from there. The
// former primary's own keeps what the replica has replayed. Logical slots are
// PostgreSQL's to copy; what is in the way of that goes.
func (s *supervision) followSlots(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, slots []string) {
	primary := cluster.Status.CurrentPrimary
	if primary == "" || primary == s.options.Instance || !s.report.Streaming {
		return
	}
	kept, err := sql.ObserveSlots(ctx, s.connInfo(cluster, primary))
	if err != nil {
		s.log.Warn("the primary's replication slots are not known", "error", err)
		return
	}
	for _, slot := range slots {
		position, known := kept.Physical[slot]
		if !known && slot != naming.Slot(primary) {
			continue // not cloned yet
		}
		if err := sql.AdvanceSlot(ctx, s.connection, slot, position); err != nil {
			s.log.Warn("a replication slot keeps more WAL than it has to", "slot", slot, "error", err)
		}
	}
	if len(kept.Failover) == 0 {
		return
	}
	former, err := sql.DropFormerSlots(ctx, s.connection, kept.Failover)
	if err != nil {
		s.log.Warn("logical replication slots cannot be copied from the primary", "error", err)
	} else if len(former) > 0 {
		s.log.Info("logical replication slots of the time as the primary were dropped; PostgreSQL copies them from the primary now", "slots", former)
	}
}

// reconfigure writes what has changed, reloads, and passes on what PostgreSQL
// thinks of it.
func (s *supervision) reconfigure(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) error {
	certificates, err := s.syncCertificates()
	if err != nil {
		return err
	}
	if s.generation != cluster.Generation || len(s.report.HeldParameters) > 0 {
		if err := s.readFollowed(ctx, cluster, !s.writable); err != nil {
			return err
		}
	}
	changed, err := s.writeConfiguration(cluster)
	if err != nil {
		return err
	}
	if !changed && !certificates {
		s.generation = cluster.Generation
		return nil
	}
	if err := s.postmaster.Reload(); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	faults, err := sql.ConfigurationErrors(ctx, s.connection)
	if err != nil {
		return err
	}
	s.generation = cluster.Generation
	s.update(func(r *protocol.Report) {
		r.Problem = nil
		if len(faults) > 0 {
			r.Problem = &protocol.Problem{Reason: protocol.ProblemConfigRefused,
				Message: "PostgreSQL refuses the configuration and goes on with the old one: " + strings.Join(faults, "; ")}
		}
	})
	s.log.Info("configuration reloaded", "generation", cluster.Generation, "faults", len(faults))
	return nil
}

func (s *supervision) ensurePassword(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) error {
	password, err := os.ReadFile(filepath.Join(s.options.Paths.AppSecret, naming.KeyPassword))
	if err != nil {
		return fmt.Errorf("read the application's password: %w", err)
	}
	_, owner := cluster.Spec.Bootstrap.InitDB.Names()
	changed, err := sql.EnsurePassword(ctx, s.connection, owner, string(password))
	if changed {
		s.log.Info("the application's password was brought in line with its Secret")
	}
	return err
}

// ourSlot tells whether a slot is one of a replica of this cluster.
func (m *Manager) ourSlot(slot string) bool {
	if slot == naming.Slot(naming.HomeInstance(m.options.Cluster)) {
		return true
	}
	digits, found := strings.CutPrefix(slot, naming.Slot(m.options.Cluster+"-replica-"))
	return found && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// connectPatiently connects to a server that is starting.
func connectPatiently(ctx context.Context, postmaster *process.Postmaster, socket, database string) (*pgx.Conn, error) {
	for {
		if postmaster.Accepting() {
			return sql.Connect(ctx, socket, database)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the server did not start: %w", ctx.Err())
		case <-time.After(connectRetry):
		}
	}
}

// ending is how a program ended, in words.
func ending(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

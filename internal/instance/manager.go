package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/my-org/postgres-operator/internal/instance/assignment"
	"github.com/my-org/postgres-operator/internal/instance/lease"
	"github.com/my-org/postgres-operator/internal/instance/process"
	"github.com/my-org/postgres-operator/internal/instance/server"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/instance/volume"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// blockedRetry: a person acts, on the spec (which is watched) or on the volume
	// or image (which is not).
	blockedRetry = 5 * time.Second
	// retryFirst and retryMost bound the pause between lives of the server, from the
	// second crash on. The first is made good at once.
	retryFirst = 100 * time.Millisecond
	retryMost  = 10 * time.Second
	// steadyAfter is how long a server has to run for its next crash to count as
	// the first: pauses are for those that crash as soon as they have started.
	steadyAfter = 5 * time.Second
	// stuckAfter is how long the manager may take for one turn of its loop.
	stuckAfter = 2 * time.Minute
)

// Manager is one instance manager.
type Manager struct {
	options      Options
	log          *slog.Logger
	watcher      *assignment.Watcher
	lease        *lease.Lease
	hub          *protocol.Hub
	supervisor   *process.Supervisor
	postgresLog  *process.Logger
	certificates server.Certificates
	lock         *os.File
	binaries     process.Binaries

	mutex         sync.Mutex
	report        protocol.Report
	beat          time.Time // of the loop; zero while it waits for something long
	lastStreaming time.Time
	// leading: this instance goes for the Lease, or has it.
	leading bool
	// stillUntil is how long it must not, since it gave its word to another.
	stillUntil time.Time
	// lastOutage is when this instance, asked by a primary, last did not reach the API
	// server.
	lastOutage time.Time
	// isolated: the right to be written to was lost, and PostgreSQL killed.
	isolated bool
	// cannotFollow is why the data has to be rebuilt, once that is known.
	cannotFollow *protocol.Rejoin
	// followed are the primary's values that a replica must not be below.
	followed map[string]int64
	// rejoinFailures in a row.
	rejoinFailures int
	cut            int64 // the change of the primary for which nothing is received; -1 if it is not certain
}

// blockedError is a fault that a person has to mend.
type blockedError struct {
	problem protocol.Problem
}

func (e *blockedError) Error() string { return e.problem.Message }

func blocked(reason protocol.ProblemReason, format string, arguments ...any) error {
	return &blockedError{protocol.Problem{Reason: reason, Message: fmt.Sprintf(format, arguments...)}}
}

// Run manages the instance until the context ends, and then stops PostgreSQL.
func Run(ctx context.Context, options Options) error {
	// The memory of the pod is PostgreSQL's: rather collect more often. There is
	// little to collect.
	debug.SetGCPercent(25)
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil)).With("instance", options.Instance)
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	watcher, err := assignment.Watch(ctx, config, options.Namespace, options.Cluster)
	if err != nil {
		return err
	}
	leases, err := v1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for the Lease: %w", err)
	}
	return New(options, log, watcher, leases.Leases(options.Namespace)).Run(ctx)
}

// New makes a manager from its parts.
func New(options Options, log *slog.Logger, watcher *assignment.Watcher, leases lease.Client) *Manager {
	return &Manager{
		options: options, log: log, watcher: watcher,
		lease: &lease.Lease{Client: leases, Name: naming.PrimaryLease(options.Cluster),
			Holder: options.Instance + "/" + options.PodUID, Now: time.Now},
		hub:         protocol.NewHub(fmt.Sprintf("%s/%d", options.PodUID, time.Now().UnixNano())),
		supervisor:  process.NewSupervisor(),
		postgresLog: process.NewLogger(log),
		report: protocol.Report{ProtocolVersion: protocol.Version, ManagerVersion: options.Version,
			Instance: options.Instance, PodUID: options.PodUID, State: protocol.StateStarting},
	}
}

// Run serves the ports and manages PostgreSQL until the context ends.
func (m *Manager) Run(ctx context.Context) error {
	// The ports outlive the context by the time that PostgreSQL takes to stop.
	serving, endServing := context.WithCancel(context.WithoutCancel(ctx))
	defer endServing()
	m.update(func(*protocol.Report) {})
	go m.supervisor.Reap(serving)
	if _, err := m.syncCertificates(); err != nil {
		return err
	}
	if err := m.serve(serving); err != nil {
		return err
	}
	lock, err := volume.Lock(ctx, m.options.Paths.Lock, func() {
		m.log.Info("another process uses the volume; waiting for its end")
		m.setState(protocol.StateWaitingForVolume)
	})
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	m.lock = lock
	m.recallWord()
	var pause time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		err := m.live(ctx)
		if ctx.Err() != nil {
			return ignoreEnd(ctx, err)
		}
		if time.Since(began) > steadyAfter {
			pause = 0
		}
		m.explain(err, pause)
		m.wait(ctx, err, pause)
		pause = min(max(pause*3, retryFirst), retryMost)
	}
	return nil
}

// explain puts into the report why the server does not run.
func (m *Manager) explain(err error, pause time.Duration) {
	if err == nil {
		return // it was stopped by us, to be started differently
	}
	var person *blockedError
	if errors.As(err, &person) {
		m.log.Error(person.problem.Message, "reason", person.problem.Reason)
		m.update(func(r *protocol.Report) {
			r.State, r.Problem, r.Role = protocol.StateBlocked, &person.problem, protocol.RoleNone
		})
		return
	}
	m.log.Error("PostgreSQL does not run; trying again", "error", err)
	m.update(func(r *protocol.Report) {
		r.State, r.Role, r.Streaming = protocol.StateStarting, protocol.RoleNone, false
		if m.isolated {
			m.isolated = false
			r.Problem = &protocol.Problem{Reason: protocol.ProblemIsolated,
				Message: "the Lease could not be renewed in time, and PostgreSQL was stopped: look at the way from the node to the API server"}
		} else if strings.Contains(err.Error(), "No space left on device") {
			total, _, _ := volume.Space(filepath.Dir(m.options.Paths.Data))
			r.Problem = m.diskFull(total, err.Error()+": no room is left on")
		} else if pause > retryFirst { // the first ones are made good at once
			r.Problem = &protocol.Problem{Reason: protocol.ProblemCrashing, Message: err.Error()}
		}
	})
}

// wait pauses before the next try; a changed cluster ends the pause of a blocked
// instance.
func (m *Manager) wait(ctx context.Context, err error, pause time.Duration) {
	var changed <-chan struct{}
	var person *blockedError
	if errors.As(err, &person) {
		pause, changed = blockedRetry, m.watcher.Changed()
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(pause):
	}
}

func (m *Manager) serve(ctx context.Context) error {
	if err := server.Serve(ctx, m.log, m.options.HealthAddress, server.HealthHandler(m), nil); err != nil {
		return err
	}
	if err := server.Serve(ctx, m.log, m.options.MetricsAddress, server.MetricsHandler(m.hub, &sql.Statistics{Socket: m.options.Paths.Socket}), nil); err != nil {
		return err
	}
	return server.Serve(ctx, m.log, m.options.ControlAddress, server.ControlHandler(m.hub, m), m.certificates.TLS())
}

// update changes the report and publishes it.
func (m *Manager) update(change func(*protocol.Report)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	change(&m.report)
	m.report.Time = time.Now()
	m.report.Ready = m.readyLocked()
	m.hub.Set(m.report)
}

func (m *Manager) setState(state protocol.State) {
	m.update(func(r *protocol.Report) { r.State = state })
}

// heartbeat says that the loop turns; long tells that the next step may take as
// long as it takes.
func (m *Manager) heartbeat(long bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.beat = time.Now()
	if long {
		m.beat = time.Time{}
	}
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

package instance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/instance/volume"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// sourceRetry is the pause between two looks for a primary to follow.
	sourceRetry = 500 * time.Millisecond
	// rejoinPauseFirst and rejoinPauseMost bound the pause after a rebuild that
	// failed: the cause is rarely gone at once.
	rejoinPauseFirst = 5 * time.Second
	rejoinPauseMost  = 10 * time.Minute
	// tellAfter failures in a row a person should know.
	tellAfter = 3
)

// rejoin makes data that may lack what the primary has, or have what it lacks,
// data of a replica: as it is if the primary's history contains all of it, else by
// pg_rewind, else by a new copy. Rebuilding waits for the operator, which lets one
// instance at a time.
//
// The process may die at any point. Data that is being rewound is marked before and
// until it is whole; a copy gets its name when it is whole; and all of it begins
// anew from what is found.
func (m *Manager) rejoin(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, data volume.Data) error {
	m.setState(protocol.StateWaitingForPrimary)
	source, primary, err := m.awaitSource(ctx, cluster)
	if err != nil {
		return err
	}
	following, end := m.whileFollowing(ctx, primary)
	defer end()
	if source.SystemIdentifier != data.SystemIdentifier {
		return blocked(protocol.ProblemForeignData, "the volume holds database %s, and the primary is database %s: it is left alone; empty the volume or use another",
			data.SystemIdentifier, source.SystemIdentifier)
	}
	need, err := m.rejoinMethod(ctx, source, data)
	if err != nil {
		return err
	}
	if need == nil {
		m.log.Info("this instance was the primary, and has nothing that the primary lacks; following it")
		return volume.MakeStandby(data.Path)
	}
	if err := m.awaitPermission(following, need); err != nil {
		m.cannotFollow = nil // the next primary may have what this one lacks
		return err
	}
	if need.Method == protocol.RejoinRewind {
		err := m.rewind(following, cluster, primary)
		if err == nil || following.Err() != nil {
			return m.rejoined(following, err)
		}
		m.log.Error("pg_rewind failed; the data is copied anew", "error", err)
		if !m.present(following, primary) {
			return m.rejoined(following, err) // it may be the primary that failed
		}
		need.Message += "; pg_rewind: " + err.Error()
	}
	return m.rejoined(following, m.recopy(following, need, primary))
}

// present tells whether an instance is still the primary, and answers as one.
func (m *Manager) present(ctx context.Context, primary string) bool {
	cluster := m.watcher.Get()
	status := cluster.Status
	if m.leader(cluster) != primary {
		return false
	}
	source, err := m.askSource(ctx, cluster, askTime)
	return err == nil && source.SystemIdentifier == status.SystemIdentifier && int64(source.History.Timeline) >= status.Timeline
}

// rejoined counts what failed, tells it if it goes on, and pauses. If the context
// ends, the primary is another by now: nothing has failed, and nothing is waited
// for.
func (m *Manager) rejoined(ctx context.Context, err error) error {
	if err == nil {
		m.cannotFollow, m.rejoinFailures = nil, 0
		m.update(func(r *protocol.Report) { r.Rejoin, r.Problem = nil, nil })
		return nil
	}
	if ctx.Err() != nil {
		m.cannotFollow = nil // the next primary may have what this one lacks
		return context.Cause(ctx)
	}
	m.rejoinFailures++
	pause := min(rejoinPauseFirst<<min(m.rejoinFailures-1, 10), rejoinPauseMost)
	m.log.Error("the data could not be rebuilt", "failures", m.rejoinFailures, "pause", pause.String(), "error", err)
	m.update(func(r *protocol.Report) {
		r.State = protocol.StateWaitingToRejoin
		if r.Rejoin != nil {
			failed := *r.Rejoin
			failed.Attempts, failed.Paused = m.rejoinFailures, true
			r.Rejoin = &failed
		}
		if m.rejoinFailures >= tellAfter {
			r.Problem = &protocol.Problem{Reason: protocol.ProblemRejoinFailed,
				Message: fmt.Sprintf("the data could not be made to follow the primary, %d times; the next try is in %s: %v", m.rejoinFailures, pause, err)}
		}
	})
	if _, waitErr := m.pauseAsReplica(ctx, pause); waitErr != nil {
		m.cannotFollow = nil
		return waitErr
	}
	return err
}

// awaitSource waits for a primary that can be followed: the one that the status
// names, on the timeline on record or a later one, and past the first checkpoint
// after its promotion, without which pg_rewind may not see that there was one.
func (m *Manager) awaitSource(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) (source sql.Source, primary string, err error) {
	for {
		status := cluster.Status
		if primary = m.leader(cluster); primary != "" {
			source, err = m.askSource(ctx, cluster, askTime)
			if err == nil && source.CheckpointTimeline == source.History.Timeline && int64(source.History.Timeline) >= status.Timeline {
				return source, primary, nil
			}
		}
		if cluster, err = m.pauseAsReplica(ctx, sourceRetry); err != nil {
			return sql.Source{}, "", err
		}
	}
}

// leader is the other instance that is the primary and stays it; empty if there is none.
func (m *Manager) leader(cluster *dbv1alpha1.PostgresCluster) string {
	status := cluster.Status
	if status.PrimaryChange != nil || status.CurrentPrimary != status.TargetPrimary || status.CurrentPrimary == m.options.Instance {
		return ""
	}
	return status.CurrentPrimary
}

// askSource asks the primary what a replica has to know of it.
func (m *Manager) askSource(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, patience time.Duration) (sql.Source, error) {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	connInfo := m.connInfo(cluster, cluster.Status.CurrentPrimary)
	return sql.ObserveSource(asking, connInfo)
}

// rejoinMethod is what has to be done; nil if the data can follow as it is.
func (m *Manager) rejoinMethod(ctx context.Context, source sql.Source, data volume.Data) (*protocol.Rejoin, error) {
	switch {
	case volume.Rewinding(data.Path):
		return &protocol.Rejoin{Method: protocol.RejoinClone, Message: "an earlier pg_rewind did not end"}, nil
	case m.cannotFollow != nil:
		return m.cannotFollow, nil
	}
	values, err := m.controlData(ctx)
	if err != nil {
		return nil, err
	}
	timeline, err := strconv.ParseUint(values[controlTimeline], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the timeline of the control file: %w", err)
	}
	checkpoint, err := postgres.ParseLSN(values[controlCheckpoint])
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of the control file: %w", err)
	}
	if uint32(timeline) == source.History.Timeline {
		// It was promoted and lost before anybody heard of it; the next one to be
		// promoted gave its timeline the same number. pg_rewind would find nothing to do.
		return &protocol.Rejoin{Method: protocol.RejoinClone, Message: fmt.Sprintf(
			"it was the primary on a timeline %d of its own, and another instance is it on the present one of that number", timeline)}, nil
	}
	// The last record of a server that was shut down cleanly begins at its checkpoint.
	if values[controlState] == "shut down" && source.History.Contains(uint32(timeline), checkpoint+1) {
		return nil, nil //nolint:nilnil // nothing has to be done
	}
	need := &protocol.Rejoin{Method: protocol.RejoinRewind, Lost: m.lost(ctx, source.History, uint32(timeline)), Message: fmt.Sprintf(
		"it was the primary on timeline %d and did not stop cleanly, or wrote what the primary on timeline %d lacks", timeline, source.History.Timeline)}
	if need.Lost != nil {
		m.log.Info("the successor lacks what this instance wrote last", "bytes", need.Lost.Bytes, "commits", need.Lost.Commits)
	}
	return need, nil
}

// awaitPermission waits until the operator lets this instance rebuild its data.
func (m *Manager) awaitPermission(ctx context.Context, need *protocol.Rejoin) error {
	need.Attempts = m.rejoinFailures
	m.update(func(r *protocol.Report) { r.State, r.Rejoin = protocol.StateWaitingToRejoin, need })
	m.log.Info("the data has to be rebuilt; waiting for the operator", "method", need.Method, "reason", need.Message)
	for {
		cluster, err := m.pauseAsReplica(ctx, cloneRetry)
		if err != nil {
			return err
		}
		if cluster.Status.Rejoining == m.options.Instance && cluster.Status.PrimaryChange == nil {
			m.update(func(r *protocol.Report) { r.State = protocol.StateRejoining })
			return nil
		}
	}
}

// rewind takes back what the primary does not have. Promise 5: only data that was
// recognised as this cluster's comes here.
func (m *Manager) rewind(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, primary string) error {
	path := m.options.Paths.Data
	connInfo := m.connInfo(cluster, primary)
	if err := m.supervisor.Clear(path); err != nil {
		return err
	}
	if err := volume.Protect(path); err != nil {
		return err
	}
	if err := volume.BeginRewind(path); err != nil {
		return err
	}
	arguments := []string{"--target-pgdata=" + path, "--source-server=" + connInfo, "--no-sync", "--progress"}
	if m.binaries.Version.Major >= 15 {
		// It starts a server on data that was not shut down cleanly.
		arguments = append(arguments, "--config-file="+filepath.Join(m.options.Paths.Configuration, config.FileServer))
		if _, err := m.writeConfiguration(cluster); err != nil {
			return err
		}
	}
	if tail, err := m.run(ctx, "pg_rewind", arguments...); err != nil {
		return errors.New(orError(tail, err))
	}
	if !volume.Rewound(path) {
		return errors.New("it found nothing to do, though this data is not the primary's")
	}
	if err := volume.MakeStandby(path); err != nil {
		return err
	}
	if err := volume.EndRewind(path); err != nil {
		return err
	}
	m.log.Info("the data was rewound and follows the primary")
	return nil
}

// recopy replaces the data by a new copy of the primary. If the volume has no room
// for both, the old goes first, when the primary has just answered: whatever the old
// data had that it lacks cannot be used any more.
func (m *Manager) recopy(ctx context.Context, need *protocol.Rejoin, primary string) error {
	path := m.options.Paths.Data
	m.update(func(r *protocol.Report) {
		r.Rejoin = &protocol.Rejoin{Method: protocol.RejoinClone, Message: need.Message, Lost: need.Lost, Attempts: m.rejoinFailures}
	})
	used, err := volume.Used(path)
	if err != nil {
		return err
	}
	_, available, err := volume.Space(filepath.Dir(path))
	if err != nil {
		return err
	}
	if available < used+used/10+diskReserve {
		if !m.present(ctx, primary) {
			return fmt.Errorf("the volume has no room for two copies, and primary %s does not answer: the old copy is kept", primary)
		}
		m.log.Warn("the volume has no room for two copies; the old one is removed first", "usedBytes", used, "availableBytes", available)
		if err := volume.Discard(path); err != nil {
			return err
		}
	}
	cluster := m.watcher.Get()
	temporary, err := m.copyPrimary(ctx, cluster, protocol.StateRejoining)
	if err != nil {
		return err
	}
	return volume.Replace(temporary, volume.Marker{ClusterUID: string(cluster.UID)})
}

// canFollow asks the primary, when a replica has not streamed for a while, whether
// it ever will; it says what has to be done if not. What is not known for certain
// rebuilds nothing.
func (s *supervision) canFollow(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) *protocol.Rejoin {
	status := cluster.Status
	if s.leader(cluster) == "" {
		return nil
	}
	source, err := s.askSource(ctx, cluster, lookTime)
	if err != nil || source.SystemIdentifier != status.SystemIdentifier {
		return nil
	}
	replayed, err := postgres.ParseLSN(s.report.ReplayedLSN)
	if err != nil {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	requested, err := sql.Requested(asking, s.connection)
	if err != nil {
		return nil
	}
	return followVerdict(source, s.report.Timeline, replayed, requested)
}

// followVerdict tells what a replica needs to follow a primary; nil if it can
// follow. Replayed is how far it has come, and requested from where on it wants WAL
// of the primary: 0 as long as it has WAL of its own, however old that is.
func followVerdict(source sql.Source, timeline uint32, replayed, requested postgres.LSN) *protocol.Rejoin {
	switch {
	case !source.History.Contains(timeline, replayed):
		return &protocol.Rejoin{Method: protocol.RejoinRewind, Message: fmt.Sprintf(
			"it is at %s on timeline %d, which is no part of the history of the primary on timeline %d", replayed, timeline, source.History.Timeline)}
	case requested != 0 && requested < source.OldestWAL:
		return &protocol.Rejoin{Method: protocol.RejoinClone, Message: fmt.Sprintf(
			"it needs WAL from %s on, and the primary has none before %s", requested, source.OldestWAL)}
	}
	return nil
}

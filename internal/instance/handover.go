package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/lease"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// handoverLook is how often a replica that is to be the primary looks whether it
	// may, and one that is compared whether it stands still: nobody can write meanwhile.
	handoverLook = 50 * time.Millisecond
)

// mayLead tells whether this instance is to be the primary, or to stay it. While
// candidates are being compared nobody is: the former primary, should it be alive
// after all, stops.
func (m *Manager) mayLead(cluster *dbv1alpha1.PostgresCluster) bool {
	change := cluster.Status.PrimaryChange
	return m.isTarget(cluster) && !m.isFenced(cluster) && (change == nil || change.To == m.options.Instance)
}

func (m *Manager) isFenced(cluster *dbv1alpha1.PostgresCluster) bool {
	return naming.Fenced(cluster.Annotations, m.options.Instance)
}

// promote makes this replica the primary, as soon as it may; it is called again
// and again until it has. From the first call to PostgreSQL on it counts as
// writable, and only a stop ends that. A crash undoes nothing: a replica that was
// promoted on disk starts as a former primary, which needs the Lease.
func (s *supervision) promote(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	if s.connection == nil {
		return
	}
	s.setState(protocol.StatePromoting)
	if !s.writable {
		held, err := s.takeLease(ctx, cluster, s.hasAll(ctx, cluster))
		var lacking lackingError
		if errors.As(err, &lacking) {
			s.refuse(cluster, lacking)
		} else if err != nil {
			s.log.Warn("the Lease cannot be taken yet", "error", err)
		}
		if !held {
			return
		}
		s.log.Info("promoting", "change", cluster.Status.PrimaryChange)
		s.writable = true // from here on it may accept writes at any moment
		s.startGuard(ctx)
	}
	promoting, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if err := sql.Promote(promoting, s.connection); err != nil {
		s.log.Error("the promotion is not done yet", "error", err)
		return
	}
	s.promoted, s.lastUpkeep = true, time.Time{}
	go s.checkpoint(ctx)
}

// takeLease tries once to take the Lease, on a condition if there is one.
func (m *Manager) takeLease(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, condition lease.Condition) (bool, error) {
	if !m.beginToLead() {
		return false, nil // its word to the former primary is not over
	}
	held, err := m.lease.AcquireIf(ctx, cluster.Spec.Failover.LeaseDuration(), condition)
	if !held {
		m.endToLead()
	}
	return held, err
}

// lackingError says what a replica lacks of what the former primary had written.
type lackingError string

func (e lackingError) Error() string { return string(e) }

// hasAll is the condition of a planned change: this replica has all that the former
// primary had written before it stopped. After a failover nobody knows, and the
// operator has chosen the one that has most. Whoever has taken the Lease may have been
// written to, so the condition comes before.
func (s *supervision) hasAll(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) lease.Condition {
	change := cluster.Status.PrimaryChange
	if change == nil || change.Type != dbv1alpha1.PrimaryChangeSwitchover {
		return nil
	}
	return func(finalLSN string) error {
		final, err := postgres.ParseLSN(finalLSN)
		if err != nil {
			return lackingError(fmt.Sprintf("instance %s did not say where its WAL ends: it did not stop cleanly", change.From))
		}
		looking, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		seen, err := sql.Observe(looking, s.connection, naming.UserReplication)
		if err != nil {
			return fmt.Errorf("compare with what instance %s had written: %w", change.From, err)
		}
		received, err := postgres.ParseLSN(seen.ReceivedLSN)
		// The last record is the checkpoint that begins at the final position.
		if err != nil || received <= final {
			return lackingError(fmt.Sprintf("this replica has received WAL up to %s, and instance %s had written up to %s",
				seen.ReceivedLSN, change.From, finalLSN))
		}
		return nil
	}
}

// refuse says that this replica does not let itself be promoted, and for which change.
func (s *supervision) refuse(cluster *dbv1alpha1.PostgresCluster, lacking lackingError) {
	s.log.Error("the promotion is refused", "reason", lacking)
	s.update(func(r *protocol.Report) {
		r.State = protocol.StateRunning
		r.Refusal = &protocol.Refusal{Change: cluster.Status.PrimaryChange.Number, Message: string(lacking)}
	})
}

// refusedChange tells whether the change under way was refused already; the
// operator hears it and takes it back.
func (m *Manager) refusedChange(cluster *dbv1alpha1.PostgresCluster) bool {
	change, refusal := cluster.Status.PrimaryChange, m.report.Refusal
	return change != nil && refusal != nil && change.Number == refusal.Change
}

// checkpoint writes the new timeline into the control file, where pg_rewind of
// former primaries looks for it.
func (s *supervision) checkpoint(ctx context.Context) {
	connection, err := sql.Connect(ctx, s.options.Paths.Socket, "postgres")
	if err == nil {
		defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
		_, err = connection.Exec(ctx, "checkpoint")
	}
	if err != nil {
		s.log.Warn("the checkpoint after the promotion failed", "error", err)
	}
}

// cutStream makes a replica stop receiving while candidates are compared, so that
// what it has received stays as it is reported, and go on afterwards. Each look finds
// out whether it stands still already.
func (s *supervision) cutStream(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	var wanted int64
	if change := cluster.Status.PrimaryChange; change != nil && change.To == "" && !s.writable {
		wanted = change.Number
	}
	if wanted == s.cut || s.connection == nil {
		return
	}
	cutting, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s.setCut(wanted)
	s.still = 0
	if err := s.reconfigure(cutting, cluster); err != nil {
		s.log.Error("the stream could not be switched", "error", err)
		s.setCut(-1) // neither is certain: tried again
		return
	}
	s.log.Info("the stream from the primary was switched", "cutForChange", wanted)
	s.look(ctx)
}

func (s *supervision) setCut(number int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.cut = number
}

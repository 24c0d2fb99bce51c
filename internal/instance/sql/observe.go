package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/my-org/postgres-operator/internal/protocol"
)

// Observation is what one look at the server found.
type Observation struct {
	InRecovery       bool
	SystemIdentifier string
	Timeline         uint32
	WrittenLSN       string
	ReceivedLSN      string
	ReplayedLSN      string
	Streaming        bool
	// StandsStill: nothing is received, and ReceivedLSN is all that there is.
	StandsStill      bool
	PendingRestart   []string
	Replicas         []protocol.ReplicaConnection
	SynchronousNames string
}

const observeServer = `
select pg_is_in_recovery(),
       (select system_identifier::text from pg_control_system()),
       coalesce(case when pg_is_in_recovery()
                then (select received_tli from pg_stat_wal_receiver)
                else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end,
                greatest((select timeline_id from pg_control_checkpoint()),
                         -- A replica that receives nothing: the newest WAL that it has received.
                         (select max(('x' || substr(name, 1, 8))::bit(32)::int) from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$'))),
       case when pg_is_in_recovery() then '' else pg_current_wal_insert_lsn()::text end,
       case when pg_is_in_recovery()
            then coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::text, '') else '' end,
       case when pg_is_in_recovery() then coalesce(pg_last_wal_replay_lsn()::text, '') else '' end,
       coalesce((select status = 'streaming' from pg_stat_wal_receiver), false),
       -- One that was set and is taken back before a restart stays marked.
       array(select name from pg_settings s where pending_restart
             and (setting is distinct from boot_val or exists (select from pg_file_settings f where f.name = s.name))
             order by name),
       current_setting('synchronous_standby_names')`

// standsStill: the configuration that names no primary is in force, and nothing receives
// WAL; and what was received before the server started,
// of which PostgreSQL only says how far it is replayed, is replayed: the startup
// process waits for more. Once something was received, all that was there before is
// replayed as well.
const standsStill = `
select current_setting('primary_conninfo') = ''
   and not exists (select from pg_stat_activity where backend_type = 'walreceiver')
   and (pg_last_wal_receive_lsn() is not null
        or exists (select from pg_stat_activity where backend_type = 'startup'
                   and wait_event in ('RecoveryWalStream', 'RecoveryRetrieveRetryInterval')))`

const observeReplicas = `
select coalesce(application_name, ''), coalesce(state, ''), coalesce(flush_lsn::text, '')
from pg_stat_replication where usename = $1 order by 1, 2, 3`

// Observe looks at the server once, in one round trip.
func Observe(ctx context.Context, connection *pgx.Conn, replicationUser string) (Observation, error) {
	batch := &pgx.Batch{}
	batch.Queue(standsStill) // before the positions that it is about
	batch.Queue(observeServer)
	batch.Queue(observeReplicas, replicationUser)
	results := connection.SendBatch(ctx, batch)
	defer results.Close() //nolint:errcheck // what fails here failed below
	var o Observation
	var timeline int64
	if err := results.QueryRow().Scan(&o.StandsStill); err != nil {
		return o, fmt.Errorf("observe the server: %w", err)
	}
	err := results.QueryRow().Scan(&o.InRecovery, &o.SystemIdentifier, &timeline,
		&o.WrittenLSN, &o.ReceivedLSN, &o.ReplayedLSN, &o.Streaming, &o.PendingRestart, &o.SynchronousNames)
	if err != nil {
		return o, fmt.Errorf("observe the server: %w", err)
	}
	o.Timeline = uint32(timeline)
	rows, err := results.Query()
	if err != nil {
		return o, fmt.Errorf("observe the replicas: %w", err)
	}
	o.Replicas, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (protocol.ReplicaConnection, error) {
		var replica protocol.ReplicaConnection
		err := row.Scan(&replica.Instance, &replica.State, &replica.FlushLSN)
		return replica, err
	})
	if err != nil {
		return o, fmt.Errorf("observe the replicas: %w", err)
	}
	return o, nil
}

// ConfigurationErrors are PostgreSQL's own words about the files of the
// configuration as they are on disk.
func ConfigurationErrors(ctx context.Context, connection *pgx.Conn) ([]string, error) {
	const query = `
select coalesce(name || ': ', '') || error from pg_file_settings
where error is not null and error <> 'setting could not be applied'
   or error is not null and name is not null
      and exists (select from pg_settings s where s.name = pg_file_settings.name and s.context not in ('postmaster', 'internal'))
union all
select 'pg_hba.conf line ' || line_number || ': ' || error from pg_hba_file_rules where error is not null`
	rows, err := connection.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("ask for errors in the configuration: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("ask for errors in the configuration: %w", err)
	}
	return found, nil
}

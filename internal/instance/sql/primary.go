package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/my-org/postgres-operator/internal/postgres"
)

// Source is what a replica has to know of the primary to tell whether it can
// follow it.
type Source struct {
	SystemIdentifier string
	History          postgres.History
	// CheckpointTimeline is the timeline of the last checkpoint: until it is the
	// present one, pg_rewind (before PostgreSQL 16) does not see the promotion.
	CheckpointTimeline uint32
	// OldestWAL is where the oldest WAL begins that the primary still has.
	OldestWAL postgres.LSN
}

const observeSource = `
select pg_is_in_recovery(),
       (select system_identifier::text from pg_control_system()),
       (select timeline_id from pg_control_checkpoint()),
       case when pg_is_in_recovery() then 0
            else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end,
       coalesce((select min(substr(name, 9)) from pg_ls_dir('pg_wal', true, false) name where name ~ '^[0-9A-F]{24}$'), ''),
       (select setting::bigint from pg_settings where name = 'wal_segment_size')`

// ObserveSource asks the server at the connection string, which has to be a
// primary.
func ObserveSource(ctx context.Context, connInfo string) (Source, error) {
	connection, err := ConnectPrimary(ctx, connInfo)
	if err != nil {
		return Source{}, err
	}
	defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	var s Source
	var recovering bool
	var timeline, checkpoint int64
	var oldest string
	var segment int64
	if err := connection.QueryRow(ctx, observeSource).Scan(&recovering, &s.SystemIdentifier, &checkpoint, &timeline, &oldest, &segment); err != nil {
		return Source{}, fmt.Errorf("observe the primary: %w", err)
	}
	if recovering {
		return Source{}, fmt.Errorf("the server is a replica itself")
	}
	s.CheckpointTimeline = uint32(checkpoint)
	if s.OldestWAL, err = postgres.SegmentStart("00000000"+oldest, uint64(segment)); err != nil {
		return Source{}, fmt.Errorf("observe the primary's WAL: %w", err)
	}
	history := ""
	if timeline > 1 {
		file := fmt.Sprintf("pg_wal/%08X.history", timeline)
		if err := connection.QueryRow(ctx, "select convert_from(pg_read_binary_file($1), 'UTF8')", file).Scan(&history); err != nil {
			return Source{}, fmt.Errorf("read the primary's history: %w", err)
		}
	}
	s.History, err = postgres.ParseHistory(uint32(timeline), history)
	return s, err
}

// Requested is from where on a replica wants WAL of its primary; 0 if it has not
// asked since its start, since it still replays what it has. PostgreSQL sets what it
// has received to where it begins to ask.
func Requested(ctx context.Context, connection *pgx.Conn) (postgres.LSN, error) {
	const query = `
select coalesce(case when pg_last_wal_receive_lsn() is not null
                     then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::text end, '0/0')`
	var position string
	if err := connection.QueryRow(ctx, query).Scan(&position); err != nil {
		return 0, fmt.Errorf("ask what WAL is wanted: %w", err)
	}
	return postgres.ParseLSN(position)
}

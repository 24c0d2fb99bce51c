package sql

import "github.com/my-org/postgres-operator/internal/naming"

// group is one question and the metrics that its columns are.
type group struct {
	// labels are the first columns, as text.
	labels []string
	// columns follow, as double precision; null if unknown.
	columns []column
	query   string
	// from and before bound the majors that know the question.
	from, before int
}

type column struct{ name, help string }

// groups are asked at each scrape.
var groups = []group{
	{
		columns: []column{
			{"in_recovery", "1 if PostgreSQL replays WAL, as a replica does."},
			{"postmaster_start_time_seconds", "When PostgreSQL was started, in seconds since 1970."},
			{"connections_limit", "max_connections."},
			{"last_checkpoint_time_seconds", "When the last checkpoint (on a replica, restart point) began, in seconds since 1970."},
			{"replay_lag_bytes", "On a replica: WAL that the primary is known to have and that is not replayed."},
			{"replay_lag_seconds", "On a replica: age of the last transaction that was replayed; 0 if everything is."},
		},
		query: `
select pg_is_in_recovery()::int::float8,
       extract(epoch from pg_postmaster_start_time())::float8,
       current_setting('max_connections')::float8,
       (select extract(epoch from checkpoint_time)::float8 from pg_control_checkpoint()),
       pg_wal_lsn_diff(known, replayed)::float8,
       case when not pg_is_in_recovery() then null
            when receiving and replayed >= known then 0
            else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 end
from (select pg_last_wal_replay_lsn() as replayed, receiving,
             greatest(latest_end_lsn, pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) as known
      from (select) one left join (select true as receiving, latest_end_lsn from pg_stat_wal_receiver where status = 'streaming') receiver on true) lag`,
	}, {
		labels: []string{"database", "state"},
		columns: []column{
			{"connections", "Connections of clients in each state of pg_stat_activity."},
			{"oldest_transaction_seconds", "Age of the oldest transaction among them."},
		},
		query: `
select coalesce(datname, ''), coalesce(state, 'unknown'), count(*)::float8,
       extract(epoch from clock_timestamp() - min(xact_start))::float8
from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() group by 1, 2`,
	}, {
		labels: []string{"database"},
		columns: []column{
			{"database_commits_total", "Transactions committed."},
			{"database_rollbacks_total", "Transactions rolled back."},
			{"database_rows_returned_total", "Rows read by scans."},
			{"database_rows_fetched_total", "Rows fetched through indexes."},
			{"database_rows_inserted_total", "Rows inserted."},
			{"database_rows_updated_total", "Rows updated."},
			{"database_rows_deleted_total", "Rows deleted."},
			{"database_blocks_read_total", "Blocks read from disk."},
			{"database_blocks_hit_total", "Blocks found in shared buffers."},
			{"database_temp_files_total", "Temporary files, written when work_mem was too small."},
			{"database_temp_bytes_total", "Bytes written to them."},
			{"database_deadlocks_total", "Deadlocks."},
			{"database_conflicts_total", "Queries on a replica that were cancelled for the sake of replay."},
			{"database_checksum_failures_total", "Pages that the storage has spoilt."},
			{"database_transaction_id_age", "Age of the oldest transaction id; PostgreSQL stops writes at about two thousand millions."},
		},
		query: `
select d.datname, xact_commit::float8, xact_rollback::float8, tup_returned::float8, tup_fetched::float8, tup_inserted::float8,
       tup_updated::float8, tup_deleted::float8, blks_read::float8, blks_hit::float8, temp_files::float8, temp_bytes::float8,
       deadlocks::float8, conflicts::float8, checksum_failures::float8, age(datfrozenxid)::float8
from pg_stat_database s join pg_database d on d.oid = s.datid where not datistemplate`,
	}, {
		labels: []string{"replica"},
		columns: []column{
			{"replica_replay_lag_bytes", "On a primary: WAL that the replica has not replayed."},
			{"replica_replay_lag_seconds", "On a primary: time until the replica had replayed recent WAL; 0 if nothing was written lately."},
			{"replica_flush_lag_seconds", "On a primary: time until the replica had recent WAL on disk."},
		},
		// A replica that was cut off may have a connection that the primary has not
		// given up yet, beside its present one.
		query: `
select distinct on (application_name) application_name,
       case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::float8 end,
       coalesce(extract(epoch from replay_lag), 0)::float8, coalesce(extract(epoch from flush_lag), 0)::float8
from pg_stat_replication where state in ('catchup', 'streaming') and usename = '` + naming.UserReplication + `'
order by application_name, replay_lsn desc nulls last`,
	}, {
		labels: []string{"slot", "type"},
		columns: []column{
			{"slot_active", "1 if somebody receives from the replication slot."},
			{"slot_retained_bytes", "WAL from the slot's position to the present."},
			{"slot_safe_bytes", "WAL that can still be written before the slot is in danger of losing its own."},
			{"slot_lost", "1 if WAL that the slot was to keep is gone."},
		},
		query: `
select slot_name, slot_type, active::int::float8,
       pg_wal_lsn_diff(case when pg_is_in_recovery() then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
                            else pg_current_wal_lsn() end, restart_lsn)::float8,
       safe_wal_size::float8, coalesce(wal_status = 'lost', false)::int::float8
from pg_replication_slots`,
	}, {
		columns: checkpoints, before: 17,
		query: `
select checkpoints_timed::float8, checkpoints_req::float8, checkpoint_write_time / 1000, checkpoint_sync_time / 1000, buffers_checkpoint::float8
from pg_stat_bgwriter`,
	}, {
		columns: checkpoints, from: 17,
		query: `select num_timed::float8, num_requested::float8, write_time / 1000, sync_time / 1000, buffers_written::float8 from pg_stat_checkpointer`,
	},
}

var checkpoints = []column{
	{"checkpoints_timed_total", "Checkpoints because checkpoint_timeout was over."},
	{"checkpoints_requested_total", "Checkpoints for any other reason, such as max_wal_size."},
	{"checkpoint_write_seconds_total", "Time in which checkpoints wrote."},
	{"checkpoint_sync_seconds_total", "Time in which checkpoints waited for the disk."},
	{"checkpoint_buffers_total", "Buffers that checkpoints wrote."},
}

// sizeGroups are asked once a minute.
var sizeGroups = []group{
	{
		labels:  []string{"database"},
		columns: []column{{"database_size_bytes", "Size of the database on disk, as of the last minute."}},
		query:   `select datname, pg_database_size(oid)::float8 from pg_database where datallowconn and not datistemplate`,
	}, {
		columns: []column{{"wal_directory_bytes", "Size of the WAL files on disk, as of the last minute."}},
		query:   `select sum(size)::float8 from pg_ls_waldir()`,
	},
}

package sql

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Slot is a physical replication slot.
type Slot struct {
	Name   string
	Active bool
	// Lost: WAL that it was to keep is gone, for max_slot_wal_keep_size was reached.
	// Such a slot keeps nothing any more, for nobody.
	Lost bool
}

// SlotChanges are the slots that have to be dropped, and then made, so that there
// is exactly one of use for each wanted name. Slots that are not ours stay, and so
// does one that is in use: its replica is about to end.
func SlotChanges(existing []Slot, wanted []string, ours func(string) bool) (create, drop []string) {
	for _, slot := range existing {
		if !slot.Active && ours(slot.Name) && (slot.Lost || !slices.Contains(wanted, slot.Name)) {
			drop = append(drop, slot.Name)
		}
	}
	for _, name := range wanted {
		exists := slices.ContainsFunc(existing, func(s Slot) bool { return s.Name == name })
		if !exists || slices.Contains(drop, name) {
			create = append(create, name)
		}
	}
	return create, drop
}

// EnsureSlots keeps a physical slot for each wanted name.
func EnsureSlots(ctx context.Context, connection *pgx.Conn, wanted []string, ours func(string) bool) error {
	rows, err := connection.Query(ctx, `
select slot_name::text, active, coalesce(wal_status = 'lost', false)
from pg_replication_slots where slot_type = 'physical' order by slot_name`)
	if err != nil {
		return fmt.Errorf("read the replication slots: %w", err)
	}
	existing, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Slot])
	if err != nil {
		return fmt.Errorf("read the replication slots: %w", err)
	}
	create, drop := SlotChanges(existing, wanted, ours)
	if err := dropSlots(ctx, connection, drop); err != nil {
		return err
	}
	for _, name := range create {
		// WAL is kept from now on: a clone that begins before the replica connects
		// needs it.
		if _, err := connection.Exec(ctx, "select pg_create_physical_replication_slot($1::name, true)", name); err != nil {
			return fmt.Errorf("make the replication slot %s: %w", name, err)
		}
	}
	return nil
}

// HasSlot tells whether the server is a primary that has a slot which keeps WAL: a
// lost one is about to be made anew. Replicas keep the same ones.
func HasSlot(ctx context.Context, connection *pgx.Conn, name string) (bool, error) {
	var found bool
	err := connection.QueryRow(ctx, "select not pg_is_in_recovery() and exists (select from pg_replication_slots where slot_name = $1::name and wal_status is distinct from 'lost')", name).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look for the replication slot %s: %w", name, err)
	}
	return found, nil
}

// PrimarySlots are the slots of a primary that its replicas keep too.
type PrimarySlots struct {
	// Physical says from where on each keeps WAL.
	Physical map[string]string
	// Failover are the logical ones that PostgreSQL itself copies to replicas (17 and
	// later).
	Failover []string
}

// ObserveSlots asks the primary at the connection string.
func ObserveSlots(ctx context.Context, connInfo string) (PrimarySlots, error) {
	slots := PrimarySlots{Physical: map[string]string{}}
	connection, err := ConnectPrimary(ctx, connInfo)
	if err != nil {
		return slots, err
	}
	defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	rows, err := connection.Query(ctx, `
select slot_name::text, coalesce(restart_lsn::text, ''), slot_type = 'physical'
from pg_replication_slots s
where not pg_is_in_recovery()
  and case slot_type when 'physical' then restart_lsn is not null else (to_jsonb(s) ->> 'failover')::boolean end`)
	if err != nil {
		return slots, fmt.Errorf("read the primary's replication slots: %w", err)
	}
	var name, restart string
	var physical bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &restart, &physical}, func() error {
		if physical {
			slots.Physical[name] = restart
		} else {
			slots.Failover = append(slots.Failover, name)
		}
		return nil
	}); err != nil {
		return slots, fmt.Errorf("read the primary's replication slots: %w", err)
	}
	return slots, nil
}

// DropFormerSlots drops the logical slots that a replica has from its own time as the
// primary, and that the primary has too: PostgreSQL does not copy a slot to where one
// of that name is already. It returns their names.
func DropFormerSlots(ctx context.Context, connection *pgx.Conn, onPrimary []string) ([]string, error) {
	rows, err := connection.Query(ctx, `
select slot_name::text from pg_replication_slots s
where pg_is_in_recovery() and slot_type = 'logical' and not active and slot_name = any($1::name[])
  and (to_jsonb(s) ->> 'failover')::boolean and not (to_jsonb(s) ->> 'synced')::boolean`, onPrimary)
	if err != nil {
		return nil, fmt.Errorf("read the logical replication slots: %w", err)
	}
	former, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the logical replication slots: %w", err)
	}
	if err := dropSlots(ctx, connection, former); err != nil {
		return nil, err
	}
	return former, nil
}

func dropSlots(ctx context.Context, connection *pgx.Conn, names []string) error {
	for _, name := range names {
		if _, err := connection.Exec(ctx, "select pg_drop_replication_slot($1::name)", name); err != nil {
			return fmt.Errorf("drop the replication slot %s: %w", name, err)
		}
	}
	return nil
}

// AdvanceSlot makes a slot of a replica keep no more WAL than from a position on;
// an empty one is what the replica has replayed. It never goes back.
func AdvanceSlot(ctx context.Context, connection *pgx.Conn, name, position string) error {
	const query = `
select pg_replication_slot_advance(slot_name, upto)
from (select slot_name, restart_lsn, least(coalesce(nullif($2, '')::pg_lsn, pg_last_wal_replay_lsn()), pg_last_wal_replay_lsn()) as upto
      from pg_replication_slots where slot_name = $1::name and not active and wal_status is distinct from 'lost') slot
where restart_lsn < upto`
	if _, err := connection.Exec(ctx, query, name, position); err != nil {
		return fmt.Errorf("advance the replication slot %s: %w", name, err)
	}
	return nil
}

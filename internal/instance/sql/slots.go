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

// EnsureSlots keeps a physical slot for each wanted name on a primary.
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
	for _, name := range drop {
		if _, err := connection.Exec(ctx, "select pg_drop_replication_slot($1::name)", name); err != nil {
			return fmt.Errorf("drop the replication slot %s: %w", name, err)
		}
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

// HasSlot tells whether the server is a primary that has a slot. Replicas keep the
// same ones.
func HasSlot(ctx context.Context, connection *pgx.Conn, name string) (bool, error) {
	var found bool
	err := connection.QueryRow(ctx, "select not pg_is_in_recovery() and exists (select from pg_replication_slots where slot_name = $1::name)", name).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look for the replication slot %s: %w", name, err)
	}
	return found, nil
}

package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// promoteLook is the pause between two looks whether a promotion is done.
const promoteLook = 20 * time.Millisecond

// Promote ends the recovery of a replica, and returns when it accepts writes. What
// it has received is replayed first. It may be called again if it did not return
// in time.
func Promote(ctx context.Context, connection *pgx.Conn) error {
	var recovering bool
	for asked := false; ; {
		if err := connection.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&recovering); err != nil {
			return fmt.Errorf("ask whether the promotion is done: %w", err)
		}
		if !recovering {
			return nil
		}
		if !asked {
			asked = true
			if _, err := connection.Exec(ctx, "select pg_promote(false)"); err != nil {
				return fmt.Errorf("promote: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the replica is still replaying what it has received: %w", ctx.Err())
		case <-time.After(promoteLook):
		}
	}
}

// standsStill: nothing receives WAL; and what was received before the server started,
// of which PostgreSQL only says how far it is replayed, is replayed: the startup
// process waits for more. Once something was received, all that was there before is
// replayed as well.
const standsStill = `
select not exists (select from pg_stat_activity where backend_type = 'walreceiver')
   and (pg_last_wal_receive_lsn() is not null
        or exists (select from pg_stat_activity where backend_type = 'startup'
                   and wait_event in ('RecoveryWalStream', 'RecoveryRetrieveRetryInterval')))`

// StandsStill tells whether a replica whose stream is cut has come to where the
// position that it reports as received is all that it has.
func StandsStill(ctx context.Context, connection *pgx.Conn) (bool, error) {
	var still bool
	if err := connection.QueryRow(ctx, standsStill).Scan(&still); err != nil {
		return false, fmt.Errorf("ask whether WAL is being received or replayed: %w", err)
	}
	return still, nil
}

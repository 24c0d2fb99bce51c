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

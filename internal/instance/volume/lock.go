package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is the pause between two tries: the other holder is a pod that is
// ending.
const lockRetry = 200 * time.Millisecond

// Lock takes the exclusive lock of the volume, and waits for as long as another
// process has it (promise 3). The file is inherited by every process of
// PostgreSQL, so the lock outlives a manager that was killed for as long as one
// of them lives. waiting is called once if there is something to wait for.
func Lock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o660)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the volume: %w", err)
	}
	said := false
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the volume: %w", err), file.Close())
		}
		if !said {
			said = true
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(lockRetry):
		}
	}
}

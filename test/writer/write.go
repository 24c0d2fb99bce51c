package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"

	"github.com/my-org/postgres-operator/test/writer/journal"
)

const (
	// Each writer begins with a table of its own: numbers begin at 1 again.
	createTable = `drop table if exists writes; create table writes (
	mode text, number bigint, timeline bigint not null, server inet, recovery boolean not null,
	at timestamptz not null default clock_timestamp(), primary key (mode, number))`
	// The name of a WAL file begins with the timeline on which the server writes.
	insertRow = `insert into writes (mode, number, timeline, server, recovery)
	values ($1, $2, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint, inet_server_addr(), pg_is_in_recovery())
	returning timeline, host(server), recovery`
)

// config is how an application connects: what the Secret says, and limits that
// keep a dead peer from costing more than one of them.
func config(o options) (*pgx.ConnConfig, error) {
	uri, err := os.ReadFile(filepath.Join(o.secret, "uri"))
	if err != nil {
		return nil, fmt.Errorf("read the Secret: %w", err)
	}
	text := strings.TrimSpace(string(uri))
	separator := "?"
	if strings.Contains(text, "?") {
		separator = "&"
	}
	c, err := pgx.ParseConfig(text + separator + "sslrootcert=" + filepath.Join(o.secret, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the URI of the Secret: %w", err)
	}
	c.ConnectTimeout = o.limit
	c.DefaultQueryExecMode = pgx.QueryExecModeExec // one round trip, nothing prepared
	c.RuntimeParams["application_name"] = "writer"
	c.RuntimeParams["statement_timeout"] = fmt.Sprint(o.limit.Milliseconds())
	dialer := &net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// Without it the kernel repeats for a quarter of an hour what nobody confirms.
			// A failure costs nothing: each write has a limit of its own.
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(o.limit.Milliseconds()))
		})
	}}
	c.DialFunc = dialer.DialContext
	return c, nil
}

// run writes in both modes until it is told to stop.
func run(ctx context.Context, o options) error {
	c, err := config(o)
	if err != nil {
		return err
	}
	if err := prepare(ctx, o, c); err != nil {
		return err
	}
	file, err := os.OpenFile(o.journalFile(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("begin the journal: %w", err)
	}
	defer file.Close()
	log := &log{encoder: json.NewEncoder(file)}
	var loops sync.WaitGroup
	for _, mode := range []journal.Mode{journal.New, journal.Kept} {
		w := &worker{options: o, config: c, mode: mode, log: log}
		loops.Go(func() { w.loop(ctx) })
	}
	loops.Wait()
	if err := errors.Join(log.err, os.WriteFile(o.endFile(), nil, 0o600)); err != nil {
		return fmt.Errorf("end the journal: %w", err)
	}
	<-ctx.Done() // the pod stays: the journal is read from it
	return nil
}

// prepare makes the table, as often as it takes.
func prepare(ctx context.Context, o options, c *pgx.ConnConfig) error {
	for {
		err := func() error {
			limited, cancel := context.WithTimeout(ctx, 5*o.limit)
			defer cancel()
			connection, err := pgx.ConnectConfig(limited, c)
			if err != nil {
				return err
			}
			defer connection.Close(limited)                                   //nolint:errcheck // nothing is lost with it
			_, err = connection.PgConn().Exec(limited, createTable).ReadAll() // two statements
			return err
		}()
		if err == nil {
			return nil
		}
		fmt.Fprintln(os.Stderr, "writer: make the table:", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("make the table: %w", err)
		case <-time.After(o.limit):
		}
	}
}

// log writes entries, one at a time. The first error is kept.
type log struct {
	sync.Mutex
	encoder *json.Encoder
	err     error
}

func (l *log) add(entry journal.Entry) {
	l.Lock()
	defer l.Unlock()
	if err := l.encoder.Encode(entry); err != nil && l.err == nil {
		l.err = err
	}
}

// worker writes in one mode.
type worker struct {
	options
	config *pgx.ConnConfig
	mode   journal.Mode
	log    *log
	kept   *pgx.Conn
}

func (w *worker) loop(ctx context.Context) {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for number := int64(1); !exists(w.stopFile()); number++ {
		w.log.add(w.write(ctx, number))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	w.drop()
}

// drop ends the kept connection without waiting for a peer that may be gone.
func (w *worker) drop() {
	if w.kept == nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.kept.Close(ended) // it is closed in any case; an error tells nothing
	w.kept = nil
}

// write writes one row and says what became of it.
func (w *worker) write(ctx context.Context, number int64) journal.Entry {
	entry := journal.Entry{Mode: w.mode, Number: number, Began: journal.Micro(time.Now()), Outcome: journal.Failed}
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	var err error
	if w.kept == nil {
		w.kept, err = pgx.ConnectConfig(limited, w.config)
	}
	if err == nil {
		err = w.kept.QueryRow(limited, insertRow, string(w.mode), number).Scan(&entry.Timeline, &entry.Server, &entry.Recovery)
		entry.Outcome = outcome(err)
	}
	entry.Ended = journal.Micro(time.Now())
	if err != nil {
		entry.Error = err.Error()
	}
	if err != nil || w.mode == journal.New {
		w.close(err)
	}
	return entry
}

// close ends the connection: in good order after a write, else at once.
func (w *worker) close(err error) {
	if err == nil {
		polite, cancel := context.WithTimeout(context.Background(), w.limit)
		defer cancel()
		_ = w.kept.Close(polite) // the row is safe; how the connection ends does not matter
		w.kept = nil
		return
	}
	w.drop()
}

// outcome judges the error of a write that was sent. A server that answers with an
// error has not committed, unless it says that it is going away: that may cut off
// the answer to a commit that is done.
func outcome(err error) journal.Outcome {
	var answer *pgconn.PgError
	switch {
	case err == nil:
		return journal.Acknowledged
	case errors.As(err, &answer) && !strings.HasPrefix(answer.Code, "57P") && !strings.HasPrefix(answer.Code, "08"):
		return journal.Failed
	case pgconn.SafeToRetry(err):
		return journal.Failed // nothing was sent
	default:
		return journal.Unknown
	}
}

// printRows prints the rows that the table holds, one JSON object a line.
func printRows(ctx context.Context, o options, to io.Writer) error {
	o.limit *= 20 // all rows, not one
	c, err := config(o)
	if err != nil {
		return err
	}
	connection, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return fmt.Errorf("connect to read the rows: %w", err)
	}
	defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	rows, err := connection.Query(ctx, "select mode, number from writes order by mode, number")
	if err != nil {
		return fmt.Errorf("read the rows: %w", err)
	}
	defer rows.Close()
	encoder := json.NewEncoder(to)
	for rows.Next() {
		var row journal.Row
		if err := rows.Scan(&row.Mode, &row.Number); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		if err := encoder.Encode(row); err != nil {
			return fmt.Errorf("print a row: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the rows: %w", err)
	}
	return nil
}

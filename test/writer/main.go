package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/my-org/postgres-operator/test/writer/journal"
)

// options of all subcommands.
type options struct {
	secret, folder  string
	interval, limit time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "writer:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("say what to do: run, stop, count, journal or rows")
	}
	var o options
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	flags.StringVar(&o.secret, "secret", "/db", "folder of the application Secret")
	flags.StringVar(&o.folder, "folder", "/journal", "folder of the journal")
	flags.DurationVar(&o.interval, "interval", 20*time.Millisecond, "time from the begin of a write to that of the next one, in each mode")
	flags.DurationVar(&o.limit, "limit", time.Second, "how long a connection or a write may take")
	if err := flags.Parse(arguments[1:]); err != nil {
		return fmt.Errorf("%s: %w", arguments[0], err)
	}
	switch arguments[0] {
	case "run":
		return run(ctx, o)
	case "stop":
		return o.stop(ctx)
	case "count":
		return o.count(os.Stdout)
	case "journal":
		return o.print(os.Stdout)
	case "rows":
		return printRows(ctx, o, os.Stdout)
	default:
		return fmt.Errorf("%q is unknown; say run, stop, count, journal or rows", arguments[0])
	}
}

func (o options) journalFile() string { return filepath.Join(o.folder, "journal") }
func (o options) stopFile() string    { return filepath.Join(o.folder, "stop") }
func (o options) endFile() string     { return filepath.Join(o.folder, "ended") }

// stop tells run to end and waits until it has.
func (o options) stop(ctx context.Context) error {
	if err := os.WriteFile(o.stopFile(), nil, 0o600); err != nil {
		return fmt.Errorf("ask the writer to stop: %w", err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !exists(o.endFile()) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the writer's end: %w", ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (o options) print(to io.Writer) error {
	file, err := os.Open(o.journalFile())
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(to, file); err != nil {
		return fmt.Errorf("print the journal: %w", err)
	}
	return nil
}

func (o options) count(to io.Writer) error {
	file, err := os.Open(o.journalFile())
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	defer file.Close()
	entries, err := journal.Read(file)
	if err != nil {
		return err
	}
	counts := map[journal.Mode]int{}
	for _, entry := range entries {
		if entry.Outcome == journal.Acknowledged {
			counts[entry.Mode]++
		}
	}
	if err := json.NewEncoder(to).Encode(counts); err != nil {
		return fmt.Errorf("print the counts: %w", err)
	}
	return nil
}

package instance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// lostTime bounds the count of what was lost: it is worth knowing, not waiting for.
const lostTime = 30 * time.Second

// lost counts what this data has on a timeline beyond the point where the primary's
// history left it; nil if that cannot be told. The server does not run.
func (m *Manager) lost(ctx context.Context, history postgres.History, timeline uint32) *protocol.Lost {
	fork, known := history.Fork(timeline)
	if !known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lostTime)
	defer cancel()
	var complaint strings.Builder
	command := exec.CommandContext(ctx, m.binaries.Path("pg_waldump"), "--path="+filepath.Join(m.options.Paths.Data, "pg_wal"),
		"--timeline="+strconv.FormatUint(uint64(timeline), 10), "--start="+fork.String())
	command.Stderr = &complaint
	command.Env = append(os.Environ(), "LC_ALL=C")
	command.WaitDelay = time.Second
	lost, err := m.countOutput(command)
	// It ends with an error at the end of the WAL, which is how the end is found.
	var ending *exec.ExitError
	if ctx.Err() != nil || (err != nil && (!errors.As(err, &ending) || !endOfWAL(complaint.String()))) {
		m.log.Warn("what was lost cannot be counted", "error", err, "complaint", complaint.String())
		return nil
	}
	return &lost
}

// countOutput runs pg_waldump and counts what it prints.
func (m *Manager) countOutput(command *exec.Cmd) (protocol.Lost, error) {
	records, err := command.StdoutPipe()
	if err != nil {
		return protocol.Lost{}, err
	}
	wait, err := m.supervisor.Start(command)
	if err != nil {
		return protocol.Lost{}, err
	}
	lost, err := countRecords(records)
	if ending := wait(); err == nil {
		err = ending
	}
	return lost, err
}

// waldumpRecord is a line of pg_waldump, the same in every major since 9.5 (src/bin/
// pg_waldump/pg_waldump.c, XLogDumpDisplayRecord).
var waldumpRecord = regexp.MustCompile(`^rmgr: (\S+)\s+len \(rec/tot\):\s+\d+/\s*(\d+),.* desc: (\S+)`)

func countRecords(lines io.Reader) (protocol.Lost, error) {
	var lost protocol.Lost
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		found := waldumpRecord.FindStringSubmatch(scanner.Text())
		if found == nil {
			continue
		}
		length, err := strconv.ParseInt(found[2], 10, 64)
		if err != nil {
			return lost, fmt.Errorf("read the length of a record: %w", err)
		}
		lost.Bytes += length
		if found[1] == "Transaction" && (found[3] == "COMMIT" || found[3] == "COMMIT_PREPARED") {
			lost.Commits++
		}
	}
	return lost, scanner.Err()
}

// endOfWAL tells whether pg_waldump found no more records, as opposed to no WAL.
func endOfWAL(complaint string) bool {
	return strings.Contains(complaint, "error in WAL record at") || strings.Contains(complaint, "could not find a valid record after")
}

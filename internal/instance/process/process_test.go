package process

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines logs into memory and hands out the entries.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(data []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(data)
}

func (l *lines) entries(t *testing.T) []map[string]any {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var entries []map[string]any
	for line := range strings.Lines(l.text.String()) {
		entry := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		entries = append(entries, entry)
	}
	return entries
}

func TestTheLogKeepsEntriesTogetherAndRemembersTheLastFatal(t *testing.T) {
	var out lines
	logger := NewLogger(slog.New(slog.NewJSONHandler(&out, nil)))
	server := logger.Server()
	_, err := server.Write([]byte("2026-12-01 10:00:00.123 UTC|17|||LOG:  starting\n" +
		"2026-12-01 10:00:01.123 UTC|18|alice|app|ERROR:  syntax error\n" +
		"2026-12-01 10:00:01.123 UTC|18|alice|app|STATEMENT:  select\n\t|from\n\tnowhere\n" +
		"2026-12-01 10:00:02.123 UTC|19|bob|app|FATAL:  no password\n" +
		"2026-12-01 10:00:02.123 UTC|17|||FATAL:  could not create any TCP/IP sockets"))
	require.NoError(t, err)
	require.NoError(t, server.Close())
	assert.Equal(t, "could not create any TCP/IP sockets", logger.LastFatal(), "known as soon as the server has ended; a client's is no reason")

	entries := out.entries(t)
	require.Len(t, entries, 5)
	assert.Equal(t, "starting", entries[0]["msg"])
	assert.Equal(t, "INFO", entries[0]["level"])
	assert.Equal(t, "17", entries[0]["pid"])
	assert.Equal(t, "ERROR", entries[1]["level"])
	assert.Equal(t, "alice", entries[1]["user"])
	assert.Equal(t, "select\n\t|from\n\tnowhere", entries[2]["msg"])

	next := logger.Server()
	require.NoError(t, next.Close())
	assert.Empty(t, logger.LastFatal(), "another server's words are its own")
}

func TestALineBeyondTheBoundIsLoggedInParts(t *testing.T) {
	var out lines
	server := NewLogger(slog.New(slog.NewJSONHandler(&out, nil))).Server()
	_, err := server.Write([]byte(strings.Repeat("x", 3*maxEntry) + "\nthe end\n"))
	require.NoError(t, err)
	require.NoError(t, server.Close())
	assert.NotEmpty(t, out.entries(t))
}

func TestTheTailOfAProgramIsItsLastLines(t *testing.T) {
	var out lines
	writer, tail := NewLogger(slog.New(slog.NewJSONHandler(&out, nil))).Program("initdb")
	for _, part := range []string{"1\n2\n3", "\n4\n5\n", "6\n\n"} {
		_, err := writer.Write([]byte(part))
		require.NoError(t, err)
	}
	assert.Equal(t, "2; 3; 4; 5; 6", tail())
	assert.Len(t, out.entries(t), 6)
}

func TestTheReaperLeavesTheStatusOfOwnChildren(t *testing.T) {
	supervisor := NewSupervisor()
	go supervisor.Reap(t.Context())
	for range 50 {
		require.NoError(t, supervisor.Run(exec.Command("true")))
		assert.ErrorContains(t, supervisor.Run(exec.Command("sh", "-c", "exit 3")), "exit status 3")
	}
}

func TestOrphansAreReapedAndKilled(t *testing.T) {
	supervisor := NewSupervisor()
	go supervisor.Reap(t.Context())
	// The shell ends at once and leaves one that ends soon, and one that does not
	// listen to a request.
	require.NoError(t, supervisor.Run(exec.Command("sh", "-c", "sleep 0.1 & (trap '' QUIT; exec sleep 600) >/dev/null 2>&1 & true")))
	require.Eventually(t, func() bool { return len(supervisor.orphans()) == 1 }, 10*time.Second, 10*time.Millisecond)
	supervisor.EndOrphans()
	assert.Empty(t, supervisor.orphans())
}

func TestBinariesAreFoundByTheirMajor(t *testing.T) {
	place := t.TempDir()
	for _, program := range []string{"postgres", "initdb", "pg_basebackup"} {
		require.NoError(t, os.WriteFile(filepath.Join(place, program), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 16.4 (Some Linux)'\n"), 0o755))
	}
	t.Setenv("PATH", place+":/usr/bin:/bin")
	supervisor := NewSupervisor()
	binaries, _, ok := supervisor.FindBinaries(context.Background(), 16)
	require.True(t, ok)
	assert.Equal(t, place, binaries.Directory)
	assert.Equal(t, "16.4", binaries.Version.String())

	_, found, ok := supervisor.FindBinaries(context.Background(), 14)
	assert.False(t, ok)
	assert.Contains(t, Describe(found), "16.4 "+place)
}

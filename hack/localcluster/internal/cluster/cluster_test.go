package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNodesAreReadyWhenPodsCanGoThere(t *testing.T) {
	ready, err := parseNodes([]byte(`{"items": [
		{"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
		{"metadata": {"name": "b"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
		{"metadata": {"name": "c"}, "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]},
		 "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
		{"metadata": {"name": "d"}}]}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{"a": true, "b": false, "c": false}, ready)
}

func TestTheRecordOutlivesTheProgram(t *testing.T) {
	dir := t.TempDir()
	c, err := Open(dir, "/cache", 0, io.Discard)
	require.NoError(t, err)
	assert.Len(t, c.Plan().Nodes, DefaultNodes)
	require.NoError(t, c.writeRecord(record{Nodes: 2, Complete: true, Faults: map[string]Fault{"node-1": Cut}}))

	again, err := Open(dir, "/cache", 0, io.Discard)
	require.NoError(t, err)
	assert.Len(t, again.Plan().Nodes, 2, "as many as the cluster has")
	r, err := again.completeRecord()
	require.NoError(t, err)
	assert.Equal(t, Cut, r.Faults["node-1"])
}

func TestAHalfWrittenRecordIsNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(recordPath(dir), []byte(`{"nodes": 3, "comp`), 0o644))
	r, err := readRecord(dir)
	require.NoError(t, err)
	assert.Nil(t, r)
}

func TestFaultsNeedACluster(t *testing.T) {
	c, err := Open(t.TempDir(), "/cache", 3, io.Discard)
	require.NoError(t, err)
	assert.ErrorContains(t, c.Freeze("node-1"), "no cluster runs")
	assert.ErrorContains(t, c.Kill("node-4"), "not part of this cluster")
	require.NoError(t, c.writeRecord(record{Nodes: 3, Complete: true, Faults: map[string]Fault{"node-1": Cut}}))
	assert.NoError(t, c.CutOff("node-1"), "cut already")
	assert.ErrorContains(t, c.Freeze("node-1"), "heal it first")
}

func TestWaitingTellsWhatWasMissing(t *testing.T) {
	missing := errors.New("not there yet")
	err := waitFor(context.Background(), "the thing", 10*time.Millisecond, func(context.Context) error { return missing })
	require.ErrorIs(t, err, missing)
	assert.ErrorContains(t, err, "waited 10ms for the thing")
}

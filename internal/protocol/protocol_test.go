package protocol

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ask(t *testing.T, server *httptest.Server, query url.Values) Report {
	t.Helper()
	response, err := http.Get(server.URL + PathStatus + "?" + query.Encode())
	require.NoError(t, err)
	defer response.Body.Close() //nolint:errcheck // opened for reading
	var report Report
	require.NoError(t, json.NewDecoder(response.Body).Decode(&report))
	return report
}

func TestAnAnswerIsHeldBackUntilSomethingChanges(t *testing.T) {
	hub := NewHub("life")
	hub.Set(Report{Instance: "db-primary", State: StateStarting})
	server := httptest.NewServer(hub)
	defer server.Close()
	first := ask(t, server, nil)
	assert.Equal(t, "db-primary", first.Instance)

	query := url.Values{"after": {first.Revision}, "wait": {"50ms"}}
	assert.Equal(t, first.Revision, ask(t, server, query).Revision, "the wait is over")

	query.Set("wait", "30s")
	began := time.Now()
	time.AfterFunc(50*time.Millisecond, func() { hub.Set(Report{Instance: "db-primary", State: StateRunning}) })
	assert.Equal(t, StateRunning, ask(t, server, query).State)
	assert.Less(t, time.Since(began), 20*time.Second)

	query.Set("after", "of another life")
	assert.Equal(t, StateRunning, ask(t, server, query).State)

	response, err := http.Get(server.URL + "?wait=soon")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
}

func TestTheRevisionLeavesOutWhatMovesByItself(t *testing.T) {
	hub := NewHub("life")
	revision := func(change func(*Report)) string {
		report := Report{State: StateRunning, Role: RolePrimary, WrittenLSN: "0/1", Replicas: []ReplicaConnection{{Instance: "a", State: "streaming", FlushLSN: "0/1"}}}
		change(&report)
		hub.Set(report)
		return hub.Get().Revision
	}
	before := revision(func(*Report) {})
	for name, change := range map[string]func(*Report){
		"time":      func(r *Report) { r.Time = time.Now() },
		"positions": func(r *Report) { r.WrittenLSN, r.ReceivedLSN, r.ReplayedLSN = "0/2", "0/2", "0/2" },
		"disk":      func(r *Report) { r.Disk.AvailableBytes = 1 },
		"flush":     func(r *Report) { r.Replicas[0].FlushLSN = "0/2" },
	} {
		assert.Equal(t, before, revision(change), name)
	}
	for name, change := range map[string]func(*Report){
		"state":     func(r *Report) { r.State = StateStopping },
		"role":      func(r *Report) { r.Role = RoleReplica },
		"ready":     func(r *Report) { r.Ready = true },
		"streaming": func(r *Report) { r.Streaming = true },
		"problem":   func(r *Report) { r.Problem = &Problem{Reason: ProblemCrashing} },
		"replica":   func(r *Report) { r.Replicas[0].State = "catchup" },
		"config":    func(r *Report) { r.ConfigGeneration = 2 },
	} {
		assert.NotEqual(t, before, revision(change), name)
	}
	other := NewHub("another life")
	other.Set(hub.Get())
	assert.NotEqual(t, hub.Get().Revision, other.Get().Revision)
}

func TestAnInstanceThatIsAwayIsAnError(t *testing.T) {
	client := NewClient(nil)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := client.Status(ctx, "127.0.0.1", "", 0)
	require.ErrorContains(t, err, "ask for a report")
}

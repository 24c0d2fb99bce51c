package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/protocol"
)

type statistics struct {
	samples []sql.Sample
	err     error
	asked   int
}

func (s *statistics) Collect(context.Context) ([]sql.Sample, error) {
	s.asked++
	return s.samples, s.err
}

func scrape(t *testing.T, hub *protocol.Hub, source Statistics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	MetricsHandler(hub, source).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, recorder.Code)
	return recorder.Body.String()
}

func TestMetricsTellWhatTheReportTells(t *testing.T) {
	hub := protocol.NewHub("life")
	hub.Set(protocol.Report{State: protocol.StateRunning, Role: protocol.RolePrimary, Ready: true, Timeline: 3, WrittenLSN: "0/300",
		ManagerVersion: "1", ServerVersion: "15.20",
		Replicas: []protocol.ReplicaConnection{{Instance: "db-replica-1", FlushLSN: "0/200"}, {Instance: "db-replica-1", FlushLSN: "0/100"}}})
	var size, commits sql.Family
	for _, family := range sql.Families() {
		switch family.Name {
		case "database_size_bytes":
			size = family
		case "database_commits_total":
			commits = family
		}
	}
	source := &statistics{samples: []sql.Sample{
		{Family: size, Values: []string{"app"}, Value: 7}, {Family: commits, Values: []string{"app"}, Value: 9},
	}}
	text := scrape(t, hub, source)
	for _, line := range []string{
		"postgres_instance_up 1", "postgres_instance_primary 1", "postgres_instance_ready 1", "postgres_instance_timeline 3",
		`postgres_instance_replica_lag_bytes{replica="db-replica-1"} 256`,
		`postgres_instance_manager_info{manager_version="1",postgres_version="15.20"} 1`,
		"postgres_instance_statistics_up 1", `postgres_instance_database_size_bytes{database="app"} 7`,
		`postgres_instance_database_commits_total{database="app"} 9`, "# TYPE postgres_instance_database_commits_total counter",
	} {
		assert.Contains(t, text, line+"\n")
	}
	assert.NotContains(t, text, "streaming", "a primary streams from nobody")
}

func TestAServerThatDoesNotAnswerCostsItsOwnNumbersAlone(t *testing.T) {
	hub := protocol.NewHub("life")
	hub.Set(protocol.Report{State: protocol.StateRunning, Role: protocol.RoleReplica, Streaming: true})
	text := scrape(t, hub, &statistics{err: errors.New("busy")})
	assert.Contains(t, text, "postgres_instance_statistics_up 0\n")
	assert.Contains(t, text, "postgres_instance_streaming 1\n")

	hub.Set(protocol.Report{State: protocol.StateRejoining})
	source := &statistics{}
	assert.Contains(t, scrape(t, hub, source), "postgres_instance_up 0\n")
	assert.Zero(t, source.asked, "nobody asks a server that does not run")
}

func TestEveryMetricHasOneName(t *testing.T) {
	seen := map[string]bool{}
	for _, metric := range Metrics() {
		assert.Regexp(t, "^postgres_instance_[a-z_]+$", metric.Name)
		assert.NotEmpty(t, metric.Help, metric.Name)
		assert.False(t, seen[metric.Name], metric.Name)
		seen[metric.Name] = true
	}
}

package server

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	metricPrefix = "postgres_instance_"
	// statisticsTime bounds what PostgreSQL is asked for at a scrape: Prometheus
	// gives up after ten seconds.
	statisticsTime = 5 * time.Second
)

// Statistics is where PostgreSQL's own numbers come from.
type Statistics interface {
	Collect(ctx context.Context) ([]sql.Sample, error)
}

// Metric describes one metric.
type Metric struct {
	Name, Help string
	Labels     []string
	Counter    bool
}

// fromReport are the metrics that need no question: the manager has looked anyhow.
var fromReport = []Metric{
	{Name: "up", Help: "1 if PostgreSQL accepts connections."},
	{Name: "primary", Help: "1 if the instance is the primary, 0 if it is a replica."},
	{Name: "ready", Help: "1 if the instance serves in its role."},
	{Name: "streaming", Help: "1 if the replica is connected to the primary."},
	{Name: "timeline", Help: "Timeline of the WAL."},
	{Name: "wal_written_bytes", Help: "Position up to which the primary has written WAL."},
	{Name: "wal_received_bytes", Help: "Position up to which the replica has received WAL."},
	{Name: "wal_replayed_bytes", Help: "Position up to which the replica has replayed WAL."},
	{Name: "replica_lag_bytes", Help: "WAL that the replica has not flushed yet, as the primary sees it.", Labels: []string{"replica"}},
	{Name: "volume_size_bytes", Help: "Size of the volume."},
	{Name: "volume_available_bytes", Help: "What is left of the volume."},
	{Name: "pending_restart_parameters", Help: "Parameters that wait for a restart of PostgreSQL."},
	{Name: "manager_info", Help: "Versions.", Labels: []string{"manager_version", "postgres_version"}},
	{Name: "statistics_up", Help: "1 if PostgreSQL has answered the questions of this scrape; if not, what it was asked for is missing."},
	{Name: "statistics_seconds", Help: "How long it took to answer them."},
}

// Metrics are all metrics of an instance, with their full names.
func Metrics() []Metric {
	all := append([]Metric{}, fromReport...)
	for _, family := range sql.Families() {
		all = append(all, Metric(family))
	}
	for i := range all {
		all[i].Name = metricPrefix + all[i].Name
	}
	return all
}

// collector turns the present report, and what PostgreSQL answers, into metrics.
type collector struct {
	hub          *protocol.Hub
	statistics   Statistics
	descriptions map[string]*prometheus.Desc // by short name
	counters     map[string]bool
}

// MetricsHandler serves /metrics.
func MetricsHandler(hub *protocol.Hub, statistics Statistics) http.Handler {
	c := &collector{hub: hub, statistics: statistics, descriptions: map[string]*prometheus.Desc{}, counters: map[string]bool{}}
	for _, metric := range Metrics() {
		name := metric.Name[len(metricPrefix):]
		c.descriptions[name] = prometheus.NewDesc(metric.Name, metric.Help, metric.Labels, nil)
		c.counters[name] = metric.Counter
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	return mux
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range c.descriptions {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	report := c.hub.Get()
	send := func(name string, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if c.counters[name] {
			kind = prometheus.CounterValue
		}
		metrics <- prometheus.MustNewConstMetric(c.descriptions[name], kind, value, labels...)
	}
	send("up", truth(report.State == protocol.StateRunning))
	send("ready", truth(report.Ready))
	send("pending_restart_parameters", float64(len(report.PendingRestart)))
	send("manager_info", 1, report.ManagerVersion, report.ServerVersion)
	send("volume_size_bytes", float64(report.Disk.TotalBytes))
	send("volume_available_bytes", float64(report.Disk.AvailableBytes))
	if report.Role == protocol.RoleNone {
		return
	}
	send("primary", truth(report.Role == protocol.RolePrimary))
	send("timeline", float64(report.Timeline))
	if report.Role == protocol.RoleReplica {
		send("streaming", truth(report.Streaming))
	}
	for name, text := range map[string]string{
		"wal_written_bytes": report.WrittenLSN, "wal_received_bytes": report.ReceivedLSN, "wal_replayed_bytes": report.ReplayedLSN,
	} {
		if lsn, err := postgres.ParseLSN(text); err == nil {
			send(name, float64(lsn))
		}
	}
	collectLag(report, send)
	c.collectStatistics(send)
}

// collectStatistics asks PostgreSQL. A server that does not answer costs its own
// numbers, not those of the report.
func (c *collector) collectStatistics(send func(string, float64, ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), statisticsTime)
	defer cancel()
	began := time.Now()
	samples, err := c.statistics.Collect(ctx)
	send("statistics_up", truth(err == nil))
	send("statistics_seconds", time.Since(began).Seconds())
	for _, sample := range samples {
		send(sample.Family.Name, sample.Value, sample.Values...)
	}
}

// collectLag reports each replica once: a clone has a second connection.
func collectLag(report protocol.Report, send func(string, float64, ...string)) {
	written, err := postgres.ParseLSN(report.WrittenLSN)
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for _, replica := range report.Replicas {
		flushed, err := postgres.ParseLSN(replica.FlushLSN)
		if err != nil || seen[replica.Instance] {
			continue
		}
		seen[replica.Instance] = true
		send("replica_lag_bytes", float64(max(0, int64(written)-int64(flushed))), replica.Instance)
	}
}

func truth(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

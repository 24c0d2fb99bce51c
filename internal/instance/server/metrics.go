package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// collector turns the present report into metrics.
type collector struct {
	hub         *protocol.Hub
	up          *prometheus.Desc
	primary     *prometheus.Desc
	ready       *prometheus.Desc
	streaming   *prometheus.Desc
	timeline    *prometheus.Desc
	written     *prometheus.Desc
	received    *prometheus.Desc
	replayed    *prometheus.Desc
	lag         *prometheus.Desc
	diskTotal   *prometheus.Desc
	diskFree    *prometheus.Desc
	restart     *prometheus.Desc
	managerInfo *prometheus.Desc
}

// MetricsHandler serves /metrics.
func MetricsHandler(hub *protocol.Hub) http.Handler {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("postgres_instance_"+name, help, labels, nil)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{
		hub:         hub,
		up:          gauge("up", "1 if PostgreSQL accepts connections."),
		primary:     gauge("primary", "1 if the instance is the primary, 0 if it is a replica."),
		ready:       gauge("ready", "1 if the instance serves in its role."),
		streaming:   gauge("streaming", "1 if the replica is connected to the primary."),
		timeline:    gauge("timeline", "Timeline of the WAL."),
		written:     gauge("wal_written_bytes", "Position up to which the primary has written WAL."),
		received:    gauge("wal_received_bytes", "Position up to which the replica has received WAL."),
		replayed:    gauge("wal_replayed_bytes", "Position up to which the replica has replayed WAL."),
		lag:         gauge("replica_lag_bytes", "WAL that the replica has not flushed yet, as the primary sees it.", "replica"),
		diskTotal:   gauge("volume_size_bytes", "Size of the volume."),
		diskFree:    gauge("volume_available_bytes", "What is left of the volume."),
		restart:     gauge("pending_restart_parameters", "Parameters that wait for a restart of PostgreSQL."),
		managerInfo: gauge("manager_info", "Versions.", "manager_version", "postgres_version"),
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{c.up, c.primary, c.ready, c.streaming, c.timeline, c.written,
		c.received, c.replayed, c.lag, c.diskTotal, c.diskFree, c.restart, c.managerInfo} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	report := c.hub.Get()
	send := func(description *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	send(c.up, truth(report.State == protocol.StateRunning))
	send(c.ready, truth(report.Ready))
	send(c.restart, float64(len(report.PendingRestart)))
	send(c.managerInfo, 1, report.ManagerVersion, report.ServerVersion)
	send(c.diskTotal, float64(report.Disk.TotalBytes))
	send(c.diskFree, float64(report.Disk.AvailableBytes))
	if report.Role == protocol.RoleNone {
		return
	}
	send(c.primary, truth(report.Role == protocol.RolePrimary))
	send(c.timeline, float64(report.Timeline))
	if report.Role == protocol.RoleReplica {
		send(c.streaming, truth(report.Streaming))
	}
	for description, text := range map[*prometheus.Desc]string{
		c.written: report.WrittenLSN, c.received: report.ReceivedLSN, c.replayed: report.ReplayedLSN,
	} {
		if lsn, err := postgres.ParseLSN(text); err == nil {
			send(description, float64(lsn))
		}
	}
	c.collectLag(report, send)
}

// collectLag reports each replica once: a clone has a second connection.
func (c *collector) collectLag(report protocol.Report, send func(*prometheus.Desc, float64, ...string)) {
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
		send(c.lag, float64(max(0, int64(written)-int64(flushed))), replica.Instance)
	}
}

func truth(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

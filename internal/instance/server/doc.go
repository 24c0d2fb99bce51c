// Package server serves an instance's three ports: health for the kubelet,
// control (reports) over mutual TLS, metrics for Prometheus.
//
// Answers come from memory; nothing here asks PostgreSQL.
package server

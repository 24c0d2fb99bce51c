// Package server serves an instance's three ports: health for the kubelet,
// control (reports) over mutual TLS, metrics for Prometheus.
//
// Health and control answer from memory, so that a server that hangs never makes
// them hang. A scrape alone asks PostgreSQL, on a connection of its own and within
// bounds.
package server

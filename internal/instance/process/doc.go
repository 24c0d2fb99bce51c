// Package process starts, watches and stops programs as process 1 of a pod has
// to: PostgreSQL's binaries are found in any image, orphans are reaped, output
// becomes a log in JSON.
//
// It knows programs and signals, and nothing of clusters.
package process

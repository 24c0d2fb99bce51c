// Package instance is the instance manager: process 1 of a PostgreSQL pod. Run
// ties its parts together; Install is the init container that brings it there.
//
// It carries out what the cluster's spec and status say, and reports what it
// sees. It decides nothing about the cluster and writes no status.
package instance

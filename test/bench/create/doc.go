// Command create measures how long a new PostgresCluster takes until its first
// instance serves and until all of them do, and how much memory the operator and
// the instance managers use. It prints medians beside the project's targets.
//
// It is a benchmark: it asserts nothing about time. What must be true of a
// cluster stands in test/e2e.
package main

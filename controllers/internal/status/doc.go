// Package status turns a snapshot, a plan and the outcome of the actions into
// the status of a PostgresCluster: Compute, and one function per condition.
//
// It writes nothing and leans on no previous verdict: the same world gives the
// same status. Only the time of a condition's last transition is carried over.
package status

// Command failover measures how long writes are refused after each kind of event
// that takes a primary away, for an application that makes a connection for each
// write and for one that keeps its connection, and counts the acknowledged rows
// that are lost. It prints medians and worst cases beside the project's targets and
// what CloudNativePG 1.30 needs on the same local cluster.
//
// It is a benchmark: it asserts nothing about time. What must be true of a
// failover stands in test/e2e.
package main

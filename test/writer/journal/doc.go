// Package journal is what the writer saw, write by write, and what follows from
// it: outages, lost rows, and whether a former primary took a write.
//
// It is pure: no connection, no clock, no cluster.
package journal

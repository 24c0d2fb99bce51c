// Package assignment watches the one PostgresCluster that an instance belongs
// to: its spec is the configuration, its status the assignment.
//
// It reads. It never writes the object.
package assignment

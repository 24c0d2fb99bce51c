// Package sql is what the instance manager asks PostgreSQL and tells it: observe,
// evaluate, apply, over one connection on the Unix socket.
//
// Identifiers are quoted by internal/postgres; a password is only ever sent as a
// verifier. Nothing here decides about the cluster.
package sql

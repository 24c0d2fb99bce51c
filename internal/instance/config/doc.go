// Package config renders postgresql.conf, pg_hba.conf and pg_ident.conf.
//
// Rendering is pure: the same input gives the same bytes. The files live outside
// PGDATA, because a clone copies PGDATA with everything in it: so no instance
// ever runs with another's configuration.
package config

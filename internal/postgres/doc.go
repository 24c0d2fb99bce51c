// Package postgres holds PostgreSQL's own rules: versions, positions in the WAL,
// quoting, the parameters of postgresql.conf, the rules of pg_hba.conf.
//
// It uses the standard library alone, opens no connection and runs no program.
package postgres

package sql

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// connectTime bounds an attempt to connect: the server is on the same machine.
const connectTime = 5 * time.Second

// session is what the instance manager's own sessions set, so that no parameter
// of the user's gets in their way: a server of which each transaction is read-only
// still gets its slots, and a statement_timeout of a millisecond does not make it
// look dead.
var session = map[string]string{
	// Nor may an object that somebody made in a schema stand in for one of
	// PostgreSQL's own: these sessions are the superuser's.
	"search_path":                         "pg_catalog",
	"default_transaction_read_only":       "off",
	"default_transaction_isolation":       "read committed",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "0",
	"standard_conforming_strings":         "on",
	"client_encoding":                     "UTF8",
	// Upkeep never waits for a synchronous replica that is gone: what it does is
	// done again after a failover.
	"synchronous_commit": "local",
	// A look each second is noise in a log, and not worth a compilation.
	"log_statement":              "none",
	"log_min_duration_statement": "-1",
	"log_duration":               "off",
	"jit":                        "off",
}

// Connect opens a connection as the superuser through the socket.
func Connect(ctx context.Context, socket, database string) (*pgx.Conn, error) {
	settings := fmt.Sprintf("host=%s port=%d user=%s dbname=%s application_name=postgres-operator sslmode=disable",
		postgres.QuoteConnInfo(socket), naming.PortPostgres, naming.UserSuperuser, postgres.QuoteConnInfo(database))
	connection, err := connect(ctx, settings, session)
	if err != nil {
		return nil, err
	}
	// Not every major knows these, so they cannot be asked for while connecting.
	const newer = `select set_config(name, '0', false) from pg_settings where name in ('idle_session_timeout', 'transaction_timeout')`
	if _, err := connection.Exec(ctx, newer); err != nil {
		_ = connection.Close(ctx)
		return nil, fmt.Errorf("prepare a session: %w", err)
	}
	return connection, nil
}

// ConnectPrimary opens a connection with a connection string, such as a
// replica's to the primary.
func ConnectPrimary(ctx context.Context, connInfo string) (*pgx.Conn, error) {
	return connect(ctx, connInfo, nil)
}

func connect(ctx context.Context, settings string, parameters map[string]string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(settings)
	if err != nil {
		return nil, fmt.Errorf("read the connection settings: %w", err)
	}
	// These are libpq's, and no parameters of the server; here contexts end what hangs.
	for _, keyword := range postgres.DeadPeer {
		delete(config.RuntimeParams, keyword[0])
	}
	// One round trip for each statement, and nothing kept in the server.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	maps.Copy(config.RuntimeParams, parameters)
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	connection, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return connection, nil
}

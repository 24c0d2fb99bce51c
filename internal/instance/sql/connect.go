package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// connectTime bounds an attempt to connect: the server is on the same machine.
const connectTime = 5 * time.Second

// Connect opens a connection as the superuser through the socket.
func Connect(ctx context.Context, socket, database string) (*pgx.Conn, error) {
	settings := fmt.Sprintf("host=%s port=%d user=%s dbname=%s application_name=postgres-operator sslmode=disable",
		postgres.QuoteConnInfo(socket), naming.PortPostgres, naming.UserSuperuser, postgres.QuoteConnInfo(database))
	return connect(ctx, settings)
}

// ConnectPrimary opens a connection with a connection string, such as a
// replica's to the primary.
func ConnectPrimary(ctx context.Context, connInfo string) (*pgx.Conn, error) {
	return connect(ctx, connInfo)
}

func connect(ctx context.Context, settings string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(settings)
	if err != nil {
		return nil, fmt.Errorf("read the connection settings: %w", err)
	}
	// One round trip for each statement, and nothing kept in the server.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	connection, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return connection, nil
}

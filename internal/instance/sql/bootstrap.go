package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// Application is the database and its owner that bootstrap makes.
type Application struct {
	Database, Owner, Password string
}

// Bootstrap makes the roles and the application's database in a new cluster.
func Bootstrap(ctx context.Context, connection *pgx.Conn, app Application) error {
	replication, err := postgres.QuoteIdentifier(naming.UserReplication)
	if err != nil {
		return err
	}
	owner, err := postgres.QuoteIdentifier(app.Owner)
	if err != nil {
		return err
	}
	database, err := postgres.QuoteIdentifier(app.Database)
	if err != nil {
		return err
	}
	verifier, err := postgres.ScramVerifier(app.Password)
	if err != nil {
		return err
	}
	statements := []string{
		"create role " + replication + " with login replication",
		// What pg_rewind asks a running server for.
		"grant execute on function pg_ls_dir(text, boolean, boolean), pg_stat_file(text, boolean), " +
			"pg_read_binary_file(text), pg_read_binary_file(text, bigint, bigint, boolean) to " + replication,
	}
	// An owner or database that initdb made already is kept.
	if app.Owner != naming.UserSuperuser {
		statements = append(statements, "create role "+owner+" with login password "+postgres.QuoteLiteral(verifier))
	}
	if app.Database != "postgres" {
		statements = append(statements, "create database "+database+" with owner "+owner)
	}
	for _, statement := range statements {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return fmt.Errorf("set up the new database: %w", err)
		}
	}
	return nil
}

// Run runs a script of the user's, which finds and makes things where psql would.
func Run(ctx context.Context, connection *pgx.Conn, script string) error {
	if _, err := connection.Exec(ctx, `set search_path = "$user", public`); err != nil {
		return fmt.Errorf("prepare for the script: %w", err)
	}
	_, err := connection.PgConn().Exec(ctx, script).ReadAll()
	return err
}

// EnsurePassword makes the role's password in the server the one of the Secret,
// if it is not so already, and tells whether it changed anything. An empty
// password changes nothing: a password is never cleared.
func EnsurePassword(ctx context.Context, connection *pgx.Conn, role, password string) (bool, error) {
	if password == "" || role == naming.UserSuperuser {
		return false, nil
	}
	var verifier string
	err := connection.QueryRow(ctx, "select coalesce((select rolpassword from pg_authid where rolname = $1), '')", role).Scan(&verifier)
	if err != nil {
		return false, fmt.Errorf("read the verifier of role %s: %w", role, err)
	}
	if postgres.ScramMatches(verifier, password) {
		return false, nil
	}
	name, err := postgres.QuoteIdentifier(role)
	if err != nil {
		return false, err
	}
	if verifier, err = postgres.ScramVerifier(password); err != nil {
		return false, err
	}
	if _, err := connection.Exec(ctx, "alter role "+name+" password "+postgres.QuoteLiteral(verifier)); err != nil {
		return false, fmt.Errorf("set the password of role %s: %w", role, err)
	}
	return true, nil
}

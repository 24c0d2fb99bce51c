package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/instance/process"
	"github.com/my-org/postgres-operator/internal/instance/sql"
	"github.com/my-org/postgres-operator/internal/instance/volume"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// cloneRetry is the pause between two looks for a primary to clone from.
	cloneRetry = 200 * time.Millisecond
	// askTime bounds a question to the primary, which may stand still.
	askTime = 10 * time.Second
)

// prepare makes the data directory one that this instance can be started on.
func (m *Manager) prepare(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) error {
	if err := volume.Sweep(m.options.Paths.Data); err != nil {
		return err
	}
	data, err := m.look()
	if err != nil {
		return err
	}
	if !data.Exists {
		if !m.isTarget(cluster) {
			return m.clone(ctx, cluster)
		}
		if known := cluster.Status.SystemIdentifier; known != "" {
			return blocked(protocol.ProblemDataMissing,
				"the volume is empty, and the database %s was initialised before: restore the volume; a new, empty database is never made in its place", known)
		}
		return m.initialize(ctx, cluster)
	}
	if err := m.recognize(cluster, data); err != nil {
		return err
	}
	if m.isTarget(cluster) {
		if volume.Rewinding(data.Path) {
			return blocked(protocol.ProblemDataMissing, "the data was being rewound and is not whole, and this instance is to be the primary: make another one the primary")
		}
		return nil
	}
	// A former primary is never a second one (promise 5).
	if !data.Standby || m.cannotFollow != nil || volume.Rewinding(data.Path) {
		return m.rejoin(ctx, cluster, data)
	}
	return nil
}

// recognize tells why a data directory is not this cluster's. It is ours if its
// system identifier is the recorded one; before one was recorded, if the marker
// in it names this cluster.
func (m *Manager) recognize(cluster *dbv1alpha1.PostgresCluster, data volume.Data) error {
	if data.Major != m.binaries.Version.Major {
		return blocked(protocol.ProblemWrongVersion, "the data directory is of PostgreSQL %d, and the image holds %s: take back the change of spec.postgresVersion or spec.image",
			data.Major, m.binaries.Version)
	}
	known := cluster.Status.SystemIdentifier
	if known != "" && known != data.SystemIdentifier {
		return blocked(protocol.ProblemForeignData, "the volume holds database %s, and this cluster's is %s: it is left alone; empty the volume or use another",
			data.SystemIdentifier, known)
	}
	if known == "" && (data.Marker == nil || data.Marker.ClusterUID != string(cluster.UID)) {
		return blocked(protocol.ProblemForeignData, "the volume holds database %s, which another cluster made: it is left alone; empty the volume or use another",
			data.SystemIdentifier)
	}
	return nil
}

// initialize makes the cluster's database: in a directory of another name, which
// is given its own when everything in it is complete.
func (m *Manager) initialize(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) error {
	m.setState(protocol.StateInitializing)
	temporary, err := volume.Begin(m.options.Paths.Data)
	if err != nil {
		return err
	}
	arguments := append([]string{"--pgdata=" + temporary}, initdbArguments(cluster)...)
	if tail, err := m.run(ctx, "initdb", arguments...); err != nil {
		return blocked(protocol.ProblemInitFailed, "initdb: %s", orError(tail, err))
	}
	if err := m.setUp(ctx, cluster, temporary); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return blocked(protocol.ProblemInitFailed, "%v", err)
	}
	return volume.Complete(temporary, volume.Marker{ClusterUID: string(cluster.UID)})
}

func initdbArguments(cluster *dbv1alpha1.PostgresCluster) []string {
	spec := cluster.Spec.Bootstrap.InitDB
	arguments := []string{
		"--username=" + naming.UserSuperuser, "--auth-local=peer", "--auth-host=scram-sha-256",
		"--no-sync", // everything is written to disk at once before the directory gets its name
		"--encoding=" + orDefault(spec.Encoding, "UTF8"),
	}
	if spec.DataChecksums == nil || *spec.DataChecksums {
		arguments = append(arguments, "--data-checksums")
	} else if strings.HasPrefix(cluster.Spec.PostgresVersion, "18.") {
		arguments = append(arguments, "--no-data-checksums") // on by default since 18
	}
	switch spec.LocaleProvider {
	case dbv1alpha1.LocaleProviderICU:
		arguments = append(arguments, "--locale=C", "--locale-provider=icu", "--icu-locale="+orDefault(spec.Locale, "und"))
	case dbv1alpha1.LocaleProviderBuiltin:
		arguments = append(arguments, "--locale=C", "--locale-provider=builtin", "--builtin-locale="+orDefault(spec.Locale, "C.UTF-8"))
	default:
		// The same order in every image and for ever, unless asked otherwise.
		arguments = append(arguments, "--locale="+orDefault(spec.Locale, "C"))
	}
	return arguments
}

// setUp makes roles, database and whatever the user's scripts make, on a server
// that nobody but this process can reach.
func (m *Manager) setUp(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, data string) error {
	socket := filepath.Join(m.options.Paths.Configuration, "private")
	if err := os.MkdirAll(socket, 0o700); err != nil {
		return fmt.Errorf("make a private place for the socket: %w", err)
	}
	hba := filepath.Join(socket, "pg_hba.conf")
	if err := os.WriteFile(hba, []byte("local all all trust\n"), 0o600); err != nil {
		return fmt.Errorf("write the rules of the private server: %w", err)
	}
	postmaster, err := m.supervisor.StartPostmaster(m.binaries, data, []string{
		"-c", "listen_addresses=", "-c", "unix_socket_directories=" + socket, "-c", "hba_file=" + hba,
		"-c", "fsync=off", "-c", "logging_collector=off", "-c", "log_destination=stderr", "-c", "log_line_prefix=" + config.LogPrefix,
		"-c", "shared_buffers=16MB", "-c", "max_connections=10",
		// A script that fails may hold passwords: it stays out of the log.
		"-c", "log_min_error_statement=panic",
	}, m.postgresLog.Server(), m.lock)
	if err != nil {
		return err
	}
	working, cancel := context.WithCancel(ctx)
	go func() { // a server that ends ends the waiting for it
		<-postmaster.Done()
		cancel()
	}()
	setUpErr := m.setUpSQL(working, cluster, postmaster, socket)
	stopping, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancelStop()
	stopErr := postmaster.Stop(stopping)
	if setUpErr != nil {
		return setUpErr
	}
	return stopErr
}

func (m *Manager) setUpSQL(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, postmaster *process.Postmaster, socket string) error {
	password, err := os.ReadFile(filepath.Join(m.options.Paths.AppSecret, naming.KeyPassword))
	if err != nil {
		return fmt.Errorf("read the application's password: %w", err)
	}
	connection, err := connectPatiently(ctx, postmaster, socket, "postgres")
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	database, owner := cluster.Spec.Bootstrap.InitDB.Names()
	if err := sql.Bootstrap(ctx, connection, sql.Application{Database: database, Owner: owner, Password: string(password)}); err != nil {
		return err
	}
	if len(cluster.Spec.Bootstrap.InitDB.PostInitSQL) == 0 {
		return nil
	}
	target, err := sql.Connect(ctx, socket, database)
	if err != nil {
		return err
	}
	defer target.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	files, err := filepath.Glob(filepath.Join(m.options.Paths.PostInit, "*.sql"))
	if err != nil {
		return fmt.Errorf("find the post-init scripts: %w", err)
	}
	slices.Sort(files)
	for i, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a post-init script: %w", err)
		}
		if err := sql.Run(ctx, target, string(script)); err != nil {
			return fmt.Errorf("spec.bootstrap.initdb.postInitSQL[%d]: %w", i, err)
		}
	}
	return nil
}

// clone copies the primary, as soon as there is one that has a slot for us.
func (m *Manager) clone(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) error {
	temporary, err := m.copyPrimary(ctx, cluster, protocol.StateCloning)
	if err != nil {
		return err
	}
	return volume.Complete(temporary, volume.Marker{ClusterUID: string(cluster.UID)})
}

// copyPrimary copies the primary into a directory beside the data, which is a
// replica's and still to be completed.
func (m *Manager) copyPrimary(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, state protocol.State) (string, error) {
	primary, connInfo, err := m.awaitSlot(ctx, cluster)
	if err != nil {
		return "", err
	}
	m.setState(state)
	temporary, err := volume.Begin(m.options.Paths.Data)
	if err != nil {
		return "", err
	}
	following, end := m.whileFollowing(ctx, primary)
	defer end()
	tail, err := m.run(following, "pg_basebackup", "--pgdata="+temporary, "--dbname="+connInfo, "--wal-method=stream",
		"--slot="+naming.Slot(m.options.Instance), "--checkpoint=fast", "--no-sync", "--no-password", "--verbose")
	if err != nil && following.Err() != nil {
		return "", fmt.Errorf("clone the primary: %w", context.Cause(following))
	}
	if err != nil {
		m.update(func(r *protocol.Report) {
			r.Problem = &protocol.Problem{Reason: protocol.ProblemCloneFailed, Message: "pg_basebackup: " + orError(tail, err)}
		})
		return "", fmt.Errorf("clone the primary: %s", orError(tail, err))
	}
	m.update(func(r *protocol.Report) { r.Problem = nil })
	return temporary, volume.MakeStandby(temporary)
}

// awaitSlot waits until the primary has a slot for this instance, and returns its
// name and how to connect to it.
func (m *Manager) awaitSlot(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) (primary, connInfo string, err error) {
	m.setState(protocol.StateWaitingForPrimary)
	for {
		// Before there is a primary its name leads nowhere, and DNS remembers that.
		if primary := cluster.Status.CurrentPrimary; primary != "" && primary == cluster.Status.TargetPrimary {
			connInfo := m.connInfo(cluster, primary)
			if primaryHasSlot(ctx, connInfo, naming.Slot(m.options.Instance)) {
				return primary, connInfo, nil
			}
		}
		if cluster, err = m.pauseAsReplica(ctx, cloneRetry); err != nil {
			return "", "", err
		}
	}
}

// pauseAsReplica waits for a moment; it is an error if this instance is to be the
// primary afterwards, or is fenced.
func (m *Manager) pauseAsReplica(ctx context.Context, pause time.Duration) (*dbv1alpha1.PostgresCluster, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(pause):
	}
	cluster := m.watcher.Get()
	if m.isTarget(cluster) || m.isFenced(cluster) {
		return nil, errors.New("the part of this instance has changed")
	}
	return cluster, nil
}

// whileFollowing is a context that ends when another instance is, or is to be, the
// primary, or this one is to be it or is fenced. What asks the primary for much
// runs under it: a primary whose machine stands still keeps its connections, and
// who waits for it would miss that there is a new one.
func (m *Manager) whileFollowing(ctx context.Context, primary string) (context.Context, context.CancelFunc) {
	following, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(cloneRetry)
		defer ticker.Stop()
		for {
			select {
			case <-following.Done():
				return
			case <-ticker.C:
			}
			cluster := m.watcher.Get()
			if cluster.Status.CurrentPrimary != primary || cluster.Status.TargetPrimary != primary || m.isFenced(cluster) {
				cancel(errors.New("the primary has changed, or the part of this instance"))
				return
			}
		}
	}()
	return following, func() { cancel(context.Canceled) }
}

func primaryHasSlot(ctx context.Context, connInfo, slot string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	connection, err := sql.ConnectPrimary(ctx, connInfo)
	if err != nil {
		return false
	}
	defer connection.Close(ctx) //nolint:errcheck // nothing is lost with it
	found, err := sql.HasSlot(ctx, connection, slot)
	return err == nil && found
}

// run runs one of PostgreSQL's programs and returns its last words. Nothing of it
// runs afterwards, even if the context ends.
func (m *Manager) run(ctx context.Context, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, m.binaries.Path(program), arguments...)
	output, tail := m.postgresLog.Program(program)
	command.Stdout, command.Stderr = output, output
	command.ExtraFiles = []*os.File{m.lock}
	command.Env = append(os.Environ(), "PGPASSFILE=/dev/null", "LC_ALL=C")
	// A child of a program that was killed holds the pipe of its output.
	command.WaitDelay = time.Second
	err := m.supervisor.Run(command)
	if ctx.Err() != nil {
		err = errors.Join(err, m.supervisor.Clear(m.options.Paths.Data))
	}
	return tail(), err
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func orError(text string, err error) string {
	if text == "" {
		return err.Error()
	}
	return text
}

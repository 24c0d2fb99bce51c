package instance

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/instance/process"
	"github.com/my-org/postgres-operator/internal/instance/volume"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// stopTime bounds a fast shutdown; the pod's grace period is longer.
const stopTime = 270 * time.Second

// leaseRetry is the pause between two tries to take the Lease.
const leaseRetry = 500 * time.Millisecond

// live is one life of the server: it waits for the assignment, prepares the data
// directory, starts PostgreSQL and stays with it until it ends.
func (m *Manager) live(ctx context.Context) error {
	m.heartbeat(true)
	defer m.endToLead()
	// A session that is busy outlives its postmaster and may still commit: before
	// anything else, and before the Lease can be anybody else's, it ends.
	m.supervisor.EndOrphans()
	cluster, err := m.awaitAssignment(ctx)
	if err != nil {
		return err
	}
	if !m.mayLead(cluster) {
		// Held since before a crash: whoever leads next needs not wait for its end.
		if err := m.lease.Release(ctx, ""); err != nil {
			m.log.Warn("the Lease ends by itself", "error", err)
		}
	}
	if err := m.findBinaries(ctx, cluster); err != nil {
		return err
	}
	if err := m.prepare(ctx, cluster); err != nil {
		return err
	}
	data, err := m.look()
	if err != nil {
		return err
	}
	if err := m.tidy(); err != nil {
		return err
	}
	if err := m.readFollowed(ctx, cluster, data.Standby); err != nil {
		return err
	}
	refused, err := config.WriteUsable(ctx, m.configInput(cluster), m.binaries.Path("postgres"), m.supervisor.Run)
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		// The first upkeep writes them all the same, and reports PostgreSQL's words.
		m.log.Error("PostgreSQL would not start with parameters of the spec, and starts without them", "parameters", refused)
	}
	// Last of all: the Lease is not kept before there is a server.
	if !data.Standby {
		if err := m.awaitLease(ctx, cluster); err != nil {
			return err
		}
	}
	m.setState(protocol.StateRecovering)
	arguments := []string{"-c", "config_file=" + filepath.Join(m.options.Paths.Configuration, config.FileServer)}
	postmaster, err := m.supervisor.StartPostmaster(m.binaries, m.options.Paths.Data, arguments, m.postgresLog.Server(), m.lock)
	if err != nil {
		return err
	}
	return m.supervise(ctx, postmaster, !data.Standby, cluster.Generation)
}

// tidy mends what others may have done to the data directory: the kubelet gives a
// volume's group more rights than PostgreSQL allows, and what ALTER SYSTEM wrote on
// the primary is in each clone.
func (m *Manager) tidy() error {
	if err := volume.Protect(m.options.Paths.Data); err != nil {
		return err
	}
	removed, err := config.CleanAuto(m.options.Paths.Data)
	if err != nil {
		return err
	}
	if len(removed) > 0 {
		m.log.Warn("parameters that the instance manager sets were taken back from ALTER SYSTEM", "parameters", removed)
	}
	return nil
}

// awaitAssignment waits until the operator has assigned this instance its part.
// An API server that cannot be asked leaves it waiting: an instance never opens
// for writes on its own judgement (promise 1).
func (m *Manager) awaitAssignment(ctx context.Context) (*dbv1alpha1.PostgresCluster, error) {
	for {
		cluster := m.watcher.Get()
		if cluster != nil && m.isFenced(cluster) {
			m.update(func(r *protocol.Report) {
				r.State, r.Role, r.Streaming = protocol.StateFenced, protocol.RoleNone, false
			})
		} else if cluster != nil && cluster.Status.TargetPrimary != "" && slices.Contains(cluster.Status.InstanceNames, m.options.Instance) {
			return cluster, nil
		} else {
			m.setState(protocol.StateWaitingForAssignment)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-m.watcher.Changed():
		}
	}
}

func (m *Manager) isTarget(cluster *dbv1alpha1.PostgresCluster) bool {
	return cluster.Status.TargetPrimary == m.options.Instance
}

func (m *Manager) findBinaries(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) error {
	wanted, err := postgres.ParseVersion(cluster.Spec.PostgresVersion)
	if err != nil {
		return blocked(protocol.ProblemWrongVersion, "spec.postgresVersion: %v", err)
	}
	binaries, found, ok := m.supervisor.FindBinaries(ctx, wanted.Major)
	switch {
	case ok:
		m.binaries = binaries
		m.update(func(r *protocol.Report) { r.ServerVersion = binaries.Version.String() })
		return nil
	case len(found) == 0:
		return blocked(protocol.ProblemNoBinaries, "the image holds no PostgreSQL server: use another in spec.image")
	}
	return blocked(protocol.ProblemWrongVersion, "spec.postgresVersion asks for PostgreSQL %d, and the image holds %s: correct one of them",
		wanted.Major, process.Describe(found))
}

// look reads the data directory; one that cannot be understood is not ours.
func (m *Manager) look() (volume.Data, error) {
	data, err := volume.Look(m.options.Paths.Data)
	if err != nil {
		return data, blocked(protocol.ProblemForeignData, "%v: it is left alone; empty the volume or use another", err)
	}
	m.update(func(r *protocol.Report) { r.SystemIdentifier = data.SystemIdentifier })
	return data, nil
}

// awaitLease waits for the right to open for writes. A cluster of one has no
// Lease: nobody else could be the primary.
func (m *Manager) awaitLease(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) error {
	if cluster.Spec.Replicas < 2 && len(cluster.Status.InstanceNames) < 2 {
		return nil
	}
	for {
		// Before each try: even the right to be the primary for a moment is another's.
		if now := m.watcher.Get(); !m.mayLead(now) {
			return fmt.Errorf("this instance is not to be the primary now; target is %s", now.Status.TargetPrimary)
		}
		if held, err := m.takeLease(ctx, cluster, nil); err != nil {
			m.log.Warn("the Lease cannot be taken yet", "error", err)
		} else if held {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(leaseRetry): // a Lease that is released is taken at once
		}
	}
}

// writeConfiguration renders the configuration and tells whether it differs from
// what was there.
func (m *Manager) writeConfiguration(cluster *dbv1alpha1.PostgresCluster) (bool, error) {
	return config.Write(m.options.Paths.Configuration, config.Render(m.configInput(cluster)))
}

func (m *Manager) configInput(cluster *dbv1alpha1.PostgresCluster) config.Input {
	return config.Input{
		Cluster: cluster, Instance: m.options.Instance, Major: m.binaries.Version.Major,
		MemoryBytes: m.options.MemoryBytes, CPUMillis: m.options.CPUMillis,
		Directory: m.options.Paths.Configuration, Data: m.options.Paths.Data, Socket: m.options.Paths.Socket,
		TLS: m.options.Paths.TLS, OSUser: osUser(), AtLeast: m.followed, Cut: m.cut != 0,
	}
}

// connInfo is how this instance reaches another one by its own name.
func (m *Manager) connInfo(cluster *dbv1alpha1.PostgresCluster, instance string) string {
	return config.InstanceConnInfo(m.configInput(cluster), instance, "postgres")
}

// peerNames are the other members of the cluster.
func (m *Manager) peerNames(cluster *dbv1alpha1.PostgresCluster) []string {
	return slices.DeleteFunc(slices.Clone(cluster.Status.InstanceNames), func(name string) bool { return name == m.options.Instance })
}

// osUser is the name that PostgreSQL sees for a connection from this process.
func osUser() string {
	if current, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return current.Username
	}
	return naming.UserSuperuser
}

// syncCertificates makes private copies of the mounted certificates, with the
// modes that PostgreSQL and libpq ask for, and tells whether they changed.
func (m *Manager) syncCertificates() (bool, error) {
	files := map[string]string{}
	for name, path := range map[string]string{
		config.FileServerCert: filepath.Join(m.options.Paths.ServerSecret, naming.KeyTLSCert),
		config.FileServerKey:  filepath.Join(m.options.Paths.ServerSecret, naming.KeyTLSKey),
		config.FileCA:         filepath.Join(m.options.Paths.ServerSecret, naming.KeyCACert),
		config.FileClientCert: filepath.Join(m.options.Paths.ReplicationSecret, naming.KeyTLSCert),
		config.FileClientKey:  filepath.Join(m.options.Paths.ReplicationSecret, naming.KeyTLSKey),
	} {
		raw, err := os.ReadFile(path)
		if err != nil {
			return false, fmt.Errorf("read a certificate: %w", err)
		}
		files[name] = string(raw)
	}
	changed, err := config.Write(m.options.Paths.TLS, files)
	if err != nil {
		return false, err
	}
	// The copies may be those of an earlier container of the pod, unchanged.
	if !changed && m.certificates.Loaded() {
		return false, nil
	}
	return changed, m.certificates.Load(m.options.Paths.TLS)
}

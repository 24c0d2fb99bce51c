package instance

import (
	"time"

	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// staleAfter is the age of the last look at the server from which on nobody
	// knows whether it serves.
	staleAfter = 5 * time.Second
	// replicaAlone is how long a replica that was streaming still serves reads
	// after it lost the primary: what it answers is old by that much at most.
	replicaAlone = 5 * time.Minute
)

// Live implements server.Health: the loop turns, or does something that takes as
// long as it takes. Recovery, a clone, or waiting for the volume are life.
func (m *Manager) Live() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.beat.IsZero() || time.Since(m.beat) < stuckAfter
}

// Started implements server.Health.
func (m *Manager) Started() bool { return true }

// Ready implements server.Health.
func (m *Manager) Ready() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.readyLocked() && time.Since(m.beat) < staleAfter
}

// readyLocked tells whether PostgreSQL serves in its role, as last seen.
func (m *Manager) readyLocked() bool {
	if m.report.State != protocol.StateRunning && m.report.State != protocol.StatePromoting {
		return false
	}
	switch m.report.Role {
	case protocol.RolePrimary:
		return true
	case protocol.RoleReplica:
		return m.report.Streaming || (!m.lastStreaming.IsZero() && time.Since(m.lastStreaming) < replicaAlone)
	}
	return false
}

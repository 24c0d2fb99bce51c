package instance

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/my-org/postgres-operator/internal/protocol"
)

// Confirm implements server.Confirmer: it answers a primary that cannot renew its
// Lease. What makes it safe is that this instance holds still; that the API server
// is, or was a moment ago, away for this one too is what tells an outage from a
// primary that alone is cut off; as does the word of an API server that it cannot
// save, since that is so for everybody. An instance that is to lead, or does, promises
// nothing.
func (m *Manager) Confirm(ctx context.Context, question protocol.Question) protocol.Confirmation {
	answer := protocol.Confirmation{Instance: m.options.Instance, PodUID: m.options.PodUID}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	answer.APIServerReachable = m.lease.Reachable(ctx)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !answer.APIServerReachable || question.NotSaved {
		m.lastOutage = time.Now()
	}
	outage := !m.lastOutage.IsZero() && time.Since(m.lastOutage) < outageEnds
	if cluster := m.watcher.Get(); outage && !m.leading && cluster != nil && !m.mayLead(cluster) {
		answer.Granted = m.giveWord()
	}
	return answer
}

// giveWord promises to hold still for GrantTime; false if that cannot be kept in mind
// through the end of this process: a mark on the volume tells the next one of it.
func (m *Manager) giveWord() bool {
	if err := os.WriteFile(m.wordFile(), nil, 0o660); err != nil {
		m.log.Warn("another instance gets no confirmation, since it cannot be written down", "error", err)
		return false
	}
	m.stillUntil = time.Now().Add(protocol.GrantTime)
	time.AfterFunc(protocol.GrantTime, m.forgetWord)
	return true
}

// recallWord finds out whether an earlier process gave its word, which may not be over:
// it holds for as long from now. The caller has the lock of the volume, so that no
// earlier process is left.
func (m *Manager) recallWord() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, err := os.Stat(m.wordFile()); !errors.Is(err, fs.ErrNotExist) { // or nobody knows
		m.stillUntil = time.Now().Add(protocol.GrantTime)
		time.AfterFunc(protocol.GrantTime, m.forgetWord)
	}
}

// forgetWord removes the mark of a word that is over.
func (m *Manager) forgetWord() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if time.Now().Before(m.stillUntil) {
		return // another one was given since
	}
	if err := os.Remove(m.wordFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Warn("the next process of this instance will wait before it leads", "error", err)
	}
}

// wordFile is beside the lock, on the volume.
func (m *Manager) wordFile() string {
	return filepath.Join(filepath.Dir(m.options.Paths.Lock), "gave-its-word")
}

// beginToLead tells whether this instance may go for the Lease: not before the
// word that it gave to another is over. From then on it gives none.
func (m *Manager) beginToLead() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if time.Now().Before(m.stillUntil) {
		return false
	}
	m.leading = true
	return true
}

// endToLead is the opposite, once PostgreSQL does not run as a primary.
func (m *Manager) endToLead() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.leading = false
}

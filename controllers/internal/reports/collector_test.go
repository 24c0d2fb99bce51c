package reports_test

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/my-org/postgres-operator/controllers/internal/reports"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const patience = 20 * time.Second

var name = types.NamespacedName{Namespace: "t", Name: "db"}

// instance answers like one: at once the first time, then when something changes.
type instance struct {
	report  atomic.Pointer[protocol.Report]
	changed chan struct{}
	hangs   atomic.Bool
}

func (i *instance) Status(ctx context.Context, _, after string, wait time.Duration) (protocol.Report, error) {
	if i.hangs.Load() {
		<-ctx.Done()
		return protocol.Report{}, ctx.Err()
	}
	report := i.report.Load()
	if report == nil {
		return protocol.Report{}, errors.New("refused")
	}
	if report.Revision != after {
		return *report, nil
	}
	select {
	case <-i.changed:
	case <-time.After(wait):
	case <-ctx.Done():
		return protocol.Report{}, ctx.Err()
	}
	return *i.report.Load(), nil
}

func (i *instance) Close() {}

func (i *instance) set(report protocol.Report) {
	report.PodUID = "uid"
	i.report.Store(&report)
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

func collect(t *testing.T, i *instance) (*reports.Collector, func() state.ReportEntry) {
	t.Helper()
	i.changed = make(chan struct{}, 1)
	collector := reports.New(func(*tls.Config) reports.Source { return i }, time.Now)
	go func() {
		for range collector.Events() { //nolint:revive // only to make room
		}
	}()
	targets := []reports.Target{{Instance: "db-primary", PodUID: "uid", Host: "10.0.0.1"}}
	require.NoError(t, collector.Sync(name, targets, "key", func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS13}, nil }))
	t.Cleanup(func() { collector.Forget(name) })
	return collector, func() state.ReportEntry { return collector.Reports(name)["uid"] }
}

func TestAHungInstanceIsKnownSoonOnceItMatters(t *testing.T) {
	i := &instance{}
	i.set(protocol.Report{Revision: "1", State: protocol.StateRunning, Role: protocol.RolePrimary})
	collector, entry := collect(t, i)
	require.Eventually(t, func() bool { return entry().Current() }, patience, 10*time.Millisecond)
	assert.True(t, entry().DownSince.IsZero())

	i.hangs.Store(true)
	collector.Hasten(name, true)
	began := time.Now()
	require.Eventually(t, func() bool { return entry().Error != "" }, patience, 10*time.Millisecond)
	assert.Less(t, time.Since(began), 15*time.Second, "much sooner than a patient question takes")
	assert.True(t, entry().Known, "what was known stays known")

	i.hangs.Store(false)
	require.Eventually(t, func() bool { return entry().Current() }, patience, 10*time.Millisecond)
}

func TestSinceWhenAServerIsDown(t *testing.T) {
	i := &instance{}
	i.set(protocol.Report{Revision: "1", State: protocol.StateRunning, Role: protocol.RolePrimary})
	_, entry := collect(t, i)
	require.Eventually(t, func() bool { return entry().Current() }, patience, 10*time.Millisecond)
	i.set(protocol.Report{Revision: "2", State: protocol.StateRecovering})
	require.Eventually(t, func() bool { return !entry().DownSince.IsZero() }, patience, 10*time.Millisecond)
	since := entry().DownSince
	i.set(protocol.Report{Revision: "3", State: protocol.StateStarting})
	require.Eventually(t, func() bool { return entry().Report.Revision == "3" }, patience, 10*time.Millisecond)
	assert.Equal(t, since, entry().DownSince, "it has been down all the while")
	i.set(protocol.Report{Revision: "4", State: protocol.StateFenced})
	require.Eventually(t, func() bool { return entry().DownSince.IsZero() }, patience, 10*time.Millisecond, "fenced is not down")
	i.set(protocol.Report{Revision: "5", State: protocol.StateStarting})
	require.Eventually(t, func() bool { return !entry().DownSince.IsZero() }, patience, 10*time.Millisecond)
	i.set(protocol.Report{Revision: "6", State: protocol.StateRunning, Role: protocol.RoleReplica})
	require.Eventually(t, func() bool { return entry().DownSince.IsZero() }, patience, 10*time.Millisecond)
}

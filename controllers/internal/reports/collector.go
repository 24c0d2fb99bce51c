package reports

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// holdTime is how long an instance may hold back its answer. The age of a
	// report is at most this, and a little, on a healthy instance.
	holdTime = 20 * time.Second
	// answerTime is the time beyond holdTime after which an instance counts as
	// hung.
	answerTime = 5 * time.Second
	// urgentHold and urgentAnswer are the same while something is decided about the
	// cluster: whether an instance is alive, and how far it has come.
	urgentHold   = time.Second
	urgentAnswer = time.Second
	// retryFirst and retryMost bound the pause after a failed question. A pod
	// that has just started answers within a second or two; one that is gone for
	// long is asked rarely.
	retryFirst = 200 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Source asks one instance. It is implemented by protocol.Client.
type Source interface {
	Status(ctx context.Context, host, after string, wait time.Duration) (protocol.Report, error)
	Close()
}

// Dial makes a Source that uses the given TLS configuration.
type Dial func(config *tls.Config) Source

// Target is one instance to ask.
type Target struct {
	Instance string
	PodUID   types.UID
	// Host is the pod's IP address.
	Host string
}

// Collector keeps the latest report of every instance of every cluster.
type Collector struct {
	dial   Dial
	now    func() time.Time
	events chan event.TypedGenericEvent[*dbv1alpha1.PostgresCluster]

	mutex    sync.Mutex
	clusters map[types.NamespacedName]*cluster
	closed   bool
}

// cluster is what the collector knows of one PostgresCluster.
type cluster struct {
	credentials string // what the TLS configuration was made from
	source      Source
	pollers     map[types.UID]*poller
	urgent      bool
}

// poller is the goroutine of one pod and what it learnt last.
type poller struct {
	target Target
	stop   context.CancelFunc
	entry  state.ReportEntry
	// interrupt ends the present question or pause, so that the next one is asked as
	// is fit now.
	interrupt context.CancelFunc
}

// New makes a Collector. The clock is injected for tests.
func New(dial Dial, now func() time.Time) *Collector {
	return &Collector{
		dial: dial, now: now,
		// Events beyond the buffer wait in the pollers; the controller drains fast.
		events:   make(chan event.TypedGenericEvent[*dbv1alpha1.PostgresCluster], 1024),
		clusters: map[types.NamespacedName]*cluster{},
	}
}

// Events tells which clusters have a changed report.
func (c *Collector) Events() <-chan event.TypedGenericEvent[*dbv1alpha1.PostgresCluster] {
	return c.events
}

// Sync says which pods of a cluster are to be asked, and with which credentials:
// the key identifies them, and config is called only if the key has changed.
// Pods that are no longer named are forgotten.
func (c *Collector) Sync(name types.NamespacedName, targets []Target, key string, config func() (*tls.Config, error)) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return nil
	}
	known := c.clusters[name]
	if known == nil || known.credentials != key {
		settings, err := config()
		if err != nil {
			return err
		}
		c.forget(name)
		known = &cluster{credentials: key, source: c.dial(settings), pollers: map[types.UID]*poller{}}
		c.clusters[name] = known
	}
	wanted := map[types.UID]Target{}
	for _, target := range targets {
		wanted[target.PodUID] = target
	}
	for uid, running := range known.pollers {
		if wanted[uid] != running.target {
			running.stop()
			delete(known.pollers, uid)
		}
	}
	for uid, target := range wanted {
		if known.pollers[uid] == nil {
			ctx, stop := context.WithCancel(context.Background())
			started := &poller{target: target, stop: stop}
			known.pollers[uid] = started
			go c.poll(ctx, name, known.source, started)
		}
	}
	return nil
}

// Reports returns what is known, by pod.
func (c *Collector) Reports(name types.NamespacedName) map[types.UID]state.ReportEntry {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	reports := map[types.UID]state.ReportEntry{}
	if known := c.clusters[name]; known != nil {
		for uid, poller := range known.pollers {
			reports[uid] = poller.entry
		}
	}
	return reports
}

// Forget ends everything about a cluster.
func (c *Collector) Forget(name types.NamespacedName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.forget(name)
}

// Start implements manager.Runnable: it waits for the end and stops every poller.
func (c *Collector) Start(ctx context.Context) error {
	<-ctx.Done()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	for name := range maps.Clone(c.clusters) {
		c.forget(name)
	}
	return nil
}

// Hasten makes the questions to a cluster's instances short, or patient again. An
// instance that hangs is then known to within two seconds.
func (c *Collector) Hasten(name types.NamespacedName, urgent bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	known := c.clusters[name]
	if known == nil || known.urgent == urgent {
		return
	}
	known.urgent = urgent
	for _, running := range known.pollers {
		if urgent && running.interrupt != nil {
			running.interrupt()
		}
	}
}

// begin makes the context of the next question or pause; it tells how long an
// answer may be held back, and how long to wait for it.
func (c *Collector) begin(ctx context.Context, name types.NamespacedName, p *poller) (context.Context, context.CancelFunc, time.Duration, time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	asking, cancel := context.WithCancel(ctx)
	p.interrupt = cancel
	if known := c.clusters[name]; known != nil && known.urgent {
		return asking, cancel, urgentHold, urgentAnswer
	}
	return asking, cancel, holdTime, answerTime
}

func (c *Collector) forget(name types.NamespacedName) {
	known := c.clusters[name]
	if known == nil {
		return
	}
	for _, poller := range known.pollers {
		poller.stop()
	}
	known.source.Close()
	delete(c.clusters, name)
}

// poll asks one instance until it is stopped.
func (c *Collector) poll(ctx context.Context, name types.NamespacedName, source Source, p *poller) {
	revision, pause := "", retryFirst
	for ctx.Err() == nil {
		asking, cancel, hold, answer := c.begin(ctx, name, p)
		bounded, end := context.WithTimeout(asking, hold+answer)
		report, err := source.Status(bounded, p.target.Host, revision, hold)
		interrupted := asking.Err() != nil
		end()
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil && interrupted {
			continue // asked anew, and shortly
		}
		if err == nil && types.UID(report.PodUID) != p.target.PodUID {
			// The address was given to another pod meanwhile.
			err = fmt.Errorf("pod %s answers at the address of %s", report.PodUID, p.target.Instance)
		}
		changed := c.record(p, report, err)
		if changed {
			c.notify(ctx, name)
		}
		if err == nil {
			revision, pause = report.Revision, retryFirst
			continue
		}
		revision = ""
		waiting, cancel, _, _ := c.begin(ctx, name, p)
		select {
		case <-waiting.Done(): // the end, or it has become urgent
		case <-time.After(pause):
		}
		cancel()
		pause = min(2*pause, retryMost)
		if hold == urgentHold {
			pause = retryFirst
		}
	}
}

// record stores an answer and tells whether it says something new.
func (c *Collector) record(p *poller, report protocol.Report, err error) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	before := p.entry
	if err != nil {
		p.entry.Error = err.Error()
		p.entry.FailedSince = before.FailedSince
		if before.Error == "" {
			p.entry.FailedSince = c.now()
		}
		return before.Error == ""
	}
	p.entry = state.ReportEntry{Known: true, Report: report, At: c.now(), DownSince: before.DownSince}
	switch {
	case report.Role != protocol.RoleNone || report.State == protocol.StateFenced: // as a person wants it
		p.entry.DownSince = time.Time{}
	case before.DownSince.IsZero():
		p.entry.DownSince = p.entry.At
	}
	return !before.Known || before.Error != "" || before.Report.Revision != report.Revision
}

// notify asks for a pass of the cluster.
func (c *Collector) notify(ctx context.Context, name types.NamespacedName) {
	object := &dbv1alpha1.PostgresCluster{}
	object.Namespace, object.Name = name.Namespace, name.Name
	select {
	case c.events <- event.TypedGenericEvent[*dbv1alpha1.PostgresCluster]{Object: object}:
	case <-ctx.Done():
	}
}

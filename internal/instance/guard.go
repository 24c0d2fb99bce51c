package instance

import (
	"context"
	"slices"
	"time"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/isolation"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// guardLook is how often the guard looks at the clock.
	guardLook = 100 * time.Millisecond
	// renewRetry is the pause after a renewal that failed.
	renewRetry = time.Second
	// outageEnds is how long a peer goes on to confirm after it has found the API
	// server away: not everybody reaches it again in the same moment.
	outageEnds = 30 * time.Second
	// reachTime bounds the request with which a peer finds out whether it reaches
	// the API server.
	reachTime = time.Second
)

// guard keeps the right of a primary to be written to, and kills PostgreSQL when
// it cannot. It has a goroutine of its own: nothing that the supervision waits for
// may delay it. Its first act after a time in which the machine stood still is to
// see that the right is over.
type guard struct {
	*supervision
	peers     isolation.Peers
	base      time.Time // from when on a Lease was needed
	renewing  bool
	nextRenew time.Time
	fresh     bool // the cluster had one member, and no Lease, a moment ago
	other     bool // somebody else holds the Lease
	asking    bool
	granted   time.Time // when the peers were asked that all confirmed; zero if they did not
	results   chan func()
}

// startGuard begins to keep the right. The Lease was just taken, or is not needed.
func (s *supervision) startGuard(ctx context.Context) {
	g := &guard{
		supervision: s, results: make(chan func(), 2),
		peers: isolation.Peers{Cluster: s.options.Cluster, Namespace: s.options.Namespace, TLS: s.options.Paths.TLS},
	}
	go g.run(ctx)
}

func (g *guard) run(ctx context.Context) {
	ticker := time.NewTicker(guardLook)
	defer ticker.Stop()
	for {
		select {
		case <-g.postmaster.Done():
			return
		case apply := <-g.results:
			apply()
		case <-ticker.C:
		}
		if g.postmaster.Ended() {
			return
		}
		cluster := g.watcher.Get()
		if cluster.Spec.Replicas < 2 && len(cluster.Status.InstanceNames) < 2 {
			g.base, g.fresh = time.Time{}, true
			if _, held := g.lease.Renewed(); held && !g.renewing {
				g.inBackground(func() func() {
					_ = g.lease.Release(context.WithoutCancel(ctx), "") // there is nobody to take it
					return func() {}
				})
			}
			continue
		}
		if g.base.IsZero() {
			g.base = time.Now()
		}
		g.renew(ctx, cluster)
		switch isolation.Decide(g.input(cluster)) {
		case isolation.AskPeers:
			g.ask(ctx, cluster)
		case isolation.Stop:
			g.end()
			return
		case isolation.Continue:
		}
	}
}

func (g *guard) input(cluster *dbv1alpha1.PostgresCluster) isolation.Input {
	since := g.base
	if renewed, held := g.lease.Renewed(); held && renewed.After(since) {
		since = renewed
	}
	in := isolation.Input{OtherHolder: g.other, SinceRenewal: time.Since(since), LeaseDuration: cluster.Spec.Failover.LeaseDuration()}
	if !g.granted.IsZero() {
		in.Granted, in.SinceGrant = true, time.Since(g.granted)
	}
	return in
}

// inBackground does one thing that may take long; what it returns is done by the
// guard itself.
func (g *guard) inBackground(work func() func()) {
	g.renewing = true
	go func() {
		apply := work()
		g.results <- func() {
			g.renewing = false
			apply()
		}
	}()
}

func (g *guard) renew(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	if g.renewing || time.Now().Before(g.nextRenew) || !g.mayLead(cluster) {
		return // one that is not to lead is about to be stopped
	}
	spec := cluster.Spec.Failover
	g.nextRenew = time.Now().Add(spec.RenewInterval())
	g.inBackground(func() func() {
		take := g.lease.Renew
		if g.fresh {
			take = g.lease.Acquire
		}
		held, err := take(context.WithoutCancel(ctx), spec.LeaseDuration())
		return func() {
			switch {
			case held:
				g.granted, g.fresh = time.Time{}, false
			case err == nil:
				g.other = true
			default:
				g.log.Warn("the Lease was not renewed", "error", err)
				g.nextRenew = time.Now().Add(min(renewRetry, spec.RenewInterval()))
			}
		}
	})
}

// ask asks the peers whether the API server is away for them as well.
func (g *guard) ask(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	if g.asking {
		return
	}
	g.asking = true
	names := slices.DeleteFunc(slices.Clone(cluster.Status.InstanceNames), func(name string) bool { return name == g.options.Instance })
	began := time.Now()
	go func() {
		confirmed, err := g.peers.Confirm(context.WithoutCancel(ctx), g.lease.Holder, names)
		g.results <- func() {
			g.asking = false
			if confirmed {
				g.log.Warn("the API server is away for every instance; going on", "peers", names)
				g.granted = began
				return
			}
			g.log.Warn("not every instance confirms that the API server is away", "error", err)
		}
	}()
}

// end kills PostgreSQL: what was committed is on disk, and nothing that stops more
// slowly is sure to be gone in time.
func (g *guard) end() {
	renewed, _ := g.lease.Renewed()
	g.log.Error("the right to be written to could not be kept; PostgreSQL is killed", "lastRenewal", renewed, "otherHolder", g.other)
	g.postmaster.Kill()
	g.lease.Forget()
	g.mutex.Lock()
	g.isolated = true
	g.mutex.Unlock()
}

// Confirm implements server.Confirmer: it answers a primary that cannot renew its
// Lease. What makes it safe is that this instance holds still; that the API server
// is, or was a moment ago, away for this one too is what tells an outage from a
// primary that alone is cut off. An instance that is to lead, or does, promises
// nothing.
func (m *Manager) Confirm(ctx context.Context, _ string) protocol.Confirmation {
	answer := protocol.Confirmation{Instance: m.options.Instance, PodUID: m.options.PodUID}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	answer.APIServerReachable = m.lease.Reachable(ctx)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !answer.APIServerReachable {
		m.lastOutage = time.Now()
	}
	outage := !m.lastOutage.IsZero() && time.Since(m.lastOutage) < outageEnds
	if cluster := m.watcher.Get(); outage && !m.leading && cluster != nil && !m.mayLead(cluster) {
		answer.Granted = true
		m.stillUntil = time.Now().Add(protocol.GrantTime)
	}
	return answer
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

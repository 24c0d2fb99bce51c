package instance

import (
	"context"
	"time"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/isolation"
	"github.com/my-org/postgres-operator/internal/instance/lease"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// guardLook is how often the guard looks at the clock.
	guardLook = 100 * time.Millisecond
	// renewRetry is the pause after a renewal that failed.
	renewRetry = 500 * time.Millisecond
	// renewAtLeast is what one renewal may take, however short the interval is.
	renewAtLeast = time.Second
	// askPause is the pause after a question that peers did not confirm.
	askPause = 300 * time.Millisecond
	// learnEvery is how often the peers' addresses are looked up while all is well.
	learnEvery = 15 * time.Second
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
	base      time.Time // from when on the Lease was held or needed; zero while it is not
	renewing  bool
	nextRenew time.Time
	nextLearn time.Time
	nextAsk   time.Time
	fresh     bool // the cluster had one member, and no Lease, a moment ago
	other     bool // somebody else holds the Lease, or had it in between
	failed    bool // a renewal has since the last that did not
	notSaved  bool // the API server was reached and could not save
	asking    bool
	granted   time.Time // when the peers were asked that all confirmed; zero if they did not
	results   chan func()
}

// startGuard begins to keep the right. The Lease was just taken, or is not needed.
func (s *supervision) startGuard(ctx context.Context) {
	s.setIsolated(false)
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
			g.alone(ctx)
			continue
		}
		if g.base.IsZero() {
			g.base = time.Now()
			if renewed, held := g.lease.Renewed(); held && !g.fresh {
				g.base = renewed // the machine may have stood still since
			}
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

// alone is the guard of a cluster with one member: nobody else could be the primary.
// A Lease that is left is given up; there is nobody to take it.
func (g *guard) alone(ctx context.Context) {
	g.base, g.fresh = time.Time{}, true
	if _, held := g.lease.Renewed(); held && !g.renewing && time.Now().After(g.nextRenew) {
		g.nextRenew = time.Now().Add(renewRetry)
		g.inBackground(func() func() {
			_ = g.lease.Release(context.WithoutCancel(ctx), "") // tried again
			return func() {}
		})
	}
}

func (g *guard) input(cluster *dbv1alpha1.PostgresCluster) isolation.Input {
	since, lasts := g.base, cluster.Spec.Failover.LeaseDuration()
	if renewed, held := g.lease.Renewed(); held && !renewed.Before(since) {
		since, lasts = renewed, g.lease.Lasts()
	}
	in := isolation.Input{OtherHolder: g.other, SinceRenewal: time.Since(since), RenewalFailed: g.failed, LeaseDuration: lasts}
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

// keeps tells whether the Lease is to be renewed. In a switchover the former primary
// keeps it until it has stopped cleanly, however long that takes; in a failover it
// is stopped by us if it does not stop by itself.
func (g *guard) keeps(cluster *dbv1alpha1.PostgresCluster) bool {
	change := cluster.Status.PrimaryChange
	if change != nil && change.Type == dbv1alpha1.PrimaryChangeSwitchover && change.From == g.options.Instance {
		return true
	}
	return g.isTarget(cluster) && (change == nil || change.To == g.options.Instance)
}

func (g *guard) renew(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	spec := cluster.Spec.Failover
	if soon := time.Now().Add(spec.RenewInterval()); g.nextRenew.After(soon) {
		g.nextRenew = soon // the interval was made shorter
	}
	if g.renewing || time.Now().Before(g.nextRenew) || !g.keeps(cluster) {
		return
	}
	g.nextRenew = time.Now().Add(spec.RenewInterval())
	g.inBackground(func() func() {
		take := g.lease.Renew
		if g.fresh {
			take = g.lease.Acquire
		}
		// One that hangs leaves time for others.
		requesting, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(spec.RenewInterval()/2, renewAtLeast))
		defer cancel()
		held, err := take(requesting, spec.LeaseDuration())
		return func() {
			g.failed, g.notSaved = err != nil, lease.NotSaved(err)
			switch {
			case held:
				g.granted, g.fresh = time.Time{}, false
				g.learn(ctx, cluster)
			case err == nil:
				g.other = true
			default:
				g.log.Warn("the Lease was not renewed", "error", err)
				g.nextRenew = time.Now().Add(renewRetry)
			}
		}
	})
}

// learn looks up where the peers are, while that can be looked up.
func (g *guard) learn(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	if g.asking || time.Now().Before(g.nextLearn) {
		return
	}
	g.asking, g.nextLearn = true, time.Now().Add(learnEvery)
	names := g.peerNames(cluster)
	go func() {
		g.peers.Learn(context.WithoutCancel(ctx), names)
		g.results <- func() { g.asking = false }
	}()
}

// ask asks the peers whether the API server is away for them as well.
func (g *guard) ask(ctx context.Context, cluster *dbv1alpha1.PostgresCluster) {
	if g.asking || time.Now().Before(g.nextAsk) {
		return
	}
	g.asking = true
	names := g.peerNames(cluster)
	question := protocol.Question{Primary: g.lease.Holder, NotSaved: g.notSaved}
	began := time.Now()
	go func() {
		confirmed, err := g.peers.Confirm(context.WithoutCancel(ctx), question, names)
		g.results <- func() {
			g.asking = false
			if confirmed {
				g.log.Warn("the API server is away for every instance; going on", "peers", names)
				g.granted = began
				return
			}
			g.nextAsk = time.Now().Add(askPause)
			g.log.Warn("not every instance confirms that the API server is away", "error", err)
		}
	}()
}

// end kills PostgreSQL: what was committed is on disk, and nothing that stops more
// slowly is sure to be gone in time.
func (g *guard) end() {
	renewed, _ := g.lease.Renewed()
	g.log.Error("the right to be written to could not be kept; PostgreSQL is killed", "lastRenewal", renewed, "otherHolder", g.other)
	g.setIsolated(true) // before the end of PostgreSQL is noticed
	g.lease.Forget()
	g.postmaster.Kill()
}

func (m *Manager) setIsolated(isolated bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.isolated = isolated
}

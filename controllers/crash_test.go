//go:build envtest

package controllers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// dieAfter cuts an operator off when its k-th write since arm was called has been
// carried out; the answer is lost with it. Events are no part of what is done.
type dieAfter struct {
	k     int32
	made  atomic.Int32
	armed atomic.Bool
	died  chan struct{}
	once  sync.Once
}

func (d *dieAfter) prepare(w *wire) {
	d.died = make(chan struct{})
	w.after = func(c call) error {
		if !d.armed.Load() || !c.writes() || c.event() || c.status >= 300 {
			return nil
		}
		if d.made.Add(1) < d.k {
			return nil
		}
		w.Cut()
		d.once.Do(func() { close(d.died) })
		return errCut
	}
}

// stories of one change each, through which the operator is killed.
var crashStories = []struct {
	name string
	from int32 // instances before the change; none if 0
	act  func(*testing.T, *world)
	end  func(*testing.T, *world)
}{
	{"create", 0, func(t *testing.T, w *world) { w.create(t, 2) }, func(t *testing.T, w *world) { w.awaitReady(t) }},
	{"scale up", 1, func(t *testing.T, w *world) { require.NoError(t, w.change(t, `{"spec":{"replicas":2}}`)) },
		func(t *testing.T, w *world) { w.awaitReady(t) }},
	{"scale down", 2, func(t *testing.T, w *world) { require.NoError(t, w.change(t, `{"spec":{"replicas":1}}`)) },
		func(t *testing.T, w *world) {
			w.awaitReady(t)
			eventually(t, "the end of the replica", func() string { return fmt.Sprint(w.names(t)) }, func() bool { return !strings.Contains(fmt.Sprint(w.names(t)), "db-replica-1") })
		}},
	{"failover", 3, func(t *testing.T, w *world) {
		pod := &corev1.Pod{}
		require.NoError(t, api.Get(t.Context(), w.key("db-primary-0"), pod))
		require.NoError(t, api.Delete(t.Context(), pod))
	}, func(t *testing.T, w *world) {
		eventually(t, "one change of the primary", func() string { return w.story(t) }, func() bool {
			status := w.cluster(t).Status
			return status.PrimaryChange == nil && status.LastPrimaryChange != nil
		})
		w.awaitReady(t)
		assert.Equal(t, int64(1), w.cluster(t).Status.LastPrimaryChange.Number, "one incident, one change")
	}},
	{"switchover", 2, func(t *testing.T, w *world) {
		require.NoError(t, w.change(t, `{"metadata":{"annotations":{"db.my-domain.com/switchover":"db-replica-1"}}}`))
	}, func(t *testing.T, w *world) {
		eventually(t, "the primary elsewhere", func() string { return w.story(t) }, func() bool {
			status := w.cluster(t).Status
			return status.PrimaryChange == nil && status.CurrentPrimary == "db-replica-1"
		})
		w.awaitReady(t)
		assert.Equal(t, int64(1), w.cluster(t).Status.LastPrimaryChange.Number, "one request, one change")
		assert.Empty(t, w.cluster(t).Annotations, "the request has been dealt with")
	}},
	{"delete", 2, func(t *testing.T, w *world) { require.NoError(t, api.Delete(t.Context(), w.cluster(t))) },
		func(t *testing.T, w *world) { w.awaitGone(t) }},
}

// TestTheOperatorMayDieAfterAnyWrite kills the operator after its k-th write, for
// every k; its successor brings about the same world as if nothing had happened.
func TestTheOperatorMayDieAfterAnyWrite(t *testing.T) {
	for _, story := range crashStories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			undisturbed, writes := []string(nil), int32(0)
			run := func(t *testing.T, k int32) ([]string, int32) {
				w := newWorld(t)
				death := &dieAfter{k: k}
				first := startOperator(t, w, death.prepare)
				if story.from > 0 {
					w.create(t, story.from)
					w.awaitReady(t)
					pause(time.Second) // what was begun is done
				}
				death.armed.Store(true)
				story.act(t, w)
				if k < 1<<30 {
					select {
					case <-death.died:
					case <-time.After(3 * time.Second): // this time fewer writes were needed
					}
					first.Kill()
					startOperator(t, w)
				}
				story.end(t, w)
				return w.names(t), death.made.Load()
			}
			undisturbed, writes = run(t, 1<<30)
			require.Positive(t, writes)
			t.Logf("%d writes", writes)
			for k := int32(1); k <= writes; k++ {
				t.Run(fmt.Sprintf("write %d", k), func(t *testing.T) {
					names, _ := run(t, k)
					assert.Equal(t, undisturbed, names)
				})
			}
		})
	}
}

// onceEach fails the first request of each verb and kind.
func onceEach(fail func(call) (*http.Response, error)) func(call) (*http.Response, error) {
	var mutex sync.Mutex
	seen := map[string]bool{}
	return func(c call) (*http.Response, error) {
		key := c.method + " " + c.resource
		mutex.Lock()
		defer mutex.Unlock()
		if c.resource == "" || seen[key] {
			return nil, nil
		}
		seen[key] = true
		return fail(c)
	}
}

func TestEachRequestMayFailOnce(t *testing.T) {
	answer := func(code int, reason metav1.StatusReason) func(call) (*http.Response, error) {
		return func(call) (*http.Response, error) { return refusal(code, reason), nil }
	}
	for name, fail := range map[string]func(call) (*http.Response, error){
		"conflict":       answer(http.StatusConflict, metav1.StatusReasonConflict),
		"too many":       answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests),
		"internal error": answer(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"timeout":        func(call) (*http.Response, error) { return nil, context.DeadlineExceeded },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			startOperator(t, w, func(o *wire) { o.before = onceEach(fail) })
			w.create(t, 2)
			w.awaitReady(t)
			total := 0
			for _, count := range w.events(t) {
				total += count
			}
			assert.Less(t, total, 12, "no flood of events: %v", w.events(t))
			require.NoError(t, api.Delete(t.Context(), w.cluster(t)))
			w.awaitGone(t)
		})
	}
}

// TestAWriteThatFailsIsTriedAgain, though no event comes that would ask for it.
func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var armed atomic.Bool
	refuse := onceEach(func(call) (*http.Response, error) {
		return refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
	})
	startOperator(t, w, func(o *wire) {
		o.before = func(c call) (*http.Response, error) {
			if !armed.Load() || !c.writes() || c.event() {
				return nil, nil
			}
			return refuse(c)
		}
	})
	w.create(t, 2)
	w.awaitReady(t)
	pause(time.Second) // what was begun is done
	armed.Store(true)
	service := &corev1.Service{}
	require.NoError(t, api.Get(t.Context(), w.key("db-replicas"), service))
	require.NoError(t, api.Delete(t.Context(), service))
	eventually(t, "the Service anew", func() string { return w.story(t) }, func() bool {
		return api.Get(t.Context(), w.key("db-replicas"), &corev1.Service{}) == nil
	})
	w.awaitReady(t)
}

// TestAnOutageOfTheAPIServerChangesNothing: what cannot be read has not gone.
func TestAnOutageOfTheAPIServerChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var outage atomic.Bool
	startOperator(t, w, func(o *wire) {
		o.before = func(call) (*http.Response, error) {
			if outage.Load() {
				return refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
			}
			return nil, nil
		}
	})
	w.create(t, 2)
	w.awaitReady(t)
	pods := func() map[string]string {
		var list corev1.PodList
		require.NoError(t, api.List(t.Context(), &list, client.InNamespace(w.namespace)))
		uids := map[string]string{}
		for _, pod := range list.Items {
			uids[pod.Name] = string(pod.UID) + pod.Labels[naming.LabelRole]
		}
		return uids
	}
	secret := &corev1.Secret{}
	require.NoError(t, api.Get(t.Context(), w.key("db-app"), secret))
	before, password := pods(), string(secret.Data[naming.KeyPassword])
	outage.Store(true)
	for range 10 {
		require.NoError(t, w.change(t, `{"metadata":{"annotations":{"example.test/touched":"`+time.Now().String()+`"}}}`))
		pause(500 * time.Millisecond)
		assert.Equal(t, dbv1alpha1.PhaseReady, w.cluster(t).Status.Phase)
	}
	require.NoError(t, w.change(t, `{"spec":{"postgresql":{"parameters":{"work_mem":"8MB"}}}}`))
	outage.Store(false)
	w.awaitReady(t)
	assert.Equal(t, before, pods(), "no pod was restarted or given another role")
	require.NoError(t, api.Get(t.Context(), w.key("db-app"), secret))
	assert.Equal(t, password, string(secret.Data[naming.KeyPassword]))
}

// TestAnAnswerThatIsLostDoesNoHarm: each kind of write is carried out, and its
// answer lost, once.
func TestAnAnswerThatIsLostDoesNoHarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mutex sync.Mutex
	seen := map[string]bool{}
	startOperator(t, w, func(o *wire) {
		o.after = func(c call) error {
			mutex.Lock()
			defer mutex.Unlock()
			if !c.writes() || seen[c.method+c.resource] {
				return nil
			}
			seen[c.method+c.resource] = true
			return context.DeadlineExceeded
		}
	})
	w.create(t, 2)
	assert.Equal(t, dbv1alpha1.PhaseReady, w.awaitReady(t).Status.Phase)
	require.NoError(t, api.Delete(t.Context(), w.cluster(t)))
	w.awaitGone(t)
}

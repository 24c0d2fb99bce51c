//go:build envtest

package controllers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

func mustParse(text string) resource.Quantity { return resource.MustParse(text) }

// creations are the requests that made an object, events left out.
func creations(calls []call) []call {
	return slices.DeleteFunc(calls, func(c call) bool { return c.status != http.StatusCreated || c.event() })
}

func TestADeletedClusterGoesAndNothingIsMadeAnew(t *testing.T) {
	for name, propagation := range map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			o := startOperator(t, w)
			w.create(t, 3)
			w.awaitReady(t)
			// The cache of the operator has seen it a moment later; what it makes after
			// that counts.
			require.NoError(t, api.Delete(t.Context(), w.cluster(t), client.PropagationPolicy(propagation)))
			deleted := time.Now()
			if propagation == metav1.DeletePropagationForeground {
				go w.finishForeground(t.Context())
			}
			w.awaitGone(t)
			assert.Empty(t, creations(o.Writes(deleted.Add(500*time.Millisecond))))
		})
	}
}

// finishForeground is the garbage collector, which takes its finalizer from an owner
// whose children have gone.
func (w *world) finishForeground(ctx context.Context) {
	for ctx.Err() == nil {
		cluster := &dbv1alpha1.PostgresCluster{}
		if err := api.Get(ctx, w.key("db"), cluster); err != nil {
			return
		}
		if len(cluster.Finalizers) == 1 {
			dropFinalizer(ctx, cluster, metav1.FinalizerDeleteDependents)
		}
		pause(tick)
	}
}

func TestAClusterIsDeletedWhileTheOperatorIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := startOperator(t, w)
	w.create(t, 2)
	w.awaitReady(t)
	first.Kill()
	require.NoError(t, api.Delete(t.Context(), w.cluster(t)))
	second := startOperator(t, w)
	w.awaitGone(t)
	assert.Empty(t, creations(second.Writes(time.Time{})))
}

func TestAClusterIsDeletedWhileSomebodyKeepsTouchingIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	startOperator(t, w)
	cluster := w.create(t, 2)
	w.awaitReady(t)
	go func() {
		for n := 0; ; n++ {
			text := fmt.Sprintf(`{"metadata":{"annotations":{"example.test/touched":"%d"}}}`, n)
			if api.Patch(t.Context(), cluster.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text))) != nil {
				return
			}
			pause(100 * time.Millisecond)
		}
	}()
	require.NoError(t, api.Delete(t.Context(), cluster))
	w.awaitGone(t)
}

func TestAVolumeThatWillNotGoIsNamedAndLeftToItsHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := startOperator(t, w)
	w.create(t, 2)
	w.awaitReady(t)
	claim := &corev1.PersistentVolumeClaim{}
	hold := func(text string) {
		t.Helper()
		require.NoError(t, api.Get(t.Context(), w.key("db-replica-1-data"), claim))
		require.NoError(t, api.Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, []byte(text))))
	}
	hold(`{"metadata":{"finalizers":["example.test/hold"]}}`)
	deleted := time.Now()
	w.With(func(w *world) { w.holdPods = true })
	require.NoError(t, api.Delete(t.Context(), w.cluster(t)))
	assert.Contains(t, w.awaitReason(t, dbv1alpha1.ConditionProgressing, dbv1alpha1.ReasonDeleting), "db-primary")
	pause(2 * time.Second)
	for _, made := range o.Writes(deleted) {
		assert.False(t, made.method == http.MethodDelete && made.resource == "persistentvolumeclaims", "a volume was deleted under a pod: %s", made)
	}
	w.With(func(w *world) { w.holdPods = false })
	eventually(t, "the claim is named", func() string { return w.story(t) }, func() bool {
		return strings.Contains(w.story(t), "db-replica-1-data (held by the finalizer example.test/hold")
	})
	quiet := time.Now().Add(time.Second)
	pause(11 * time.Second)
	assert.Less(t, len(o.Writes(quiet)), 5, "no tight loop")
	require.NoError(t, api.Get(t.Context(), w.key("db-replica-1-data"), claim))
	assert.Contains(t, claim.Finalizers, "example.test/hold", "it is not torn off")
	hold(`{"metadata":{"finalizers":null}}`)
	w.awaitGone(t)
}

func TestANewClusterOfTheSameNameWaitsForTheOldVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	startOperator(t, w)
	// A claim of a cluster that was here before hangs in Terminating.
	old := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db-primary-data", Finalizers: []string{"example.test/hold"},
			Labels: map[string]string{naming.LabelCluster: "db", naming.LabelManagedBy: naming.ManagedBy, naming.LabelInstance: "db-primary"}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: mustParse("1Gi")}}},
	}
	require.NoError(t, api.Create(t.Context(), old))
	require.NoError(t, api.Delete(t.Context(), old))
	w.create(t, 1)
	eventually(t, "the claim is named", func() string { return w.story(t) }, func() bool {
		return strings.Contains(w.story(t), "db-primary-data")
	})
	pause(2 * time.Second)
	assert.NotContains(t, w.names(t), "v1.StatefulSet db-primary", "nothing starts on the old volume")
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	require.NoError(t, api.Patch(t.Context(), old, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	w.awaitReady(t)
}

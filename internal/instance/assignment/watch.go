package assignment

import (
	"context"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

// Watcher keeps the cluster object as it was last seen.
type Watcher struct {
	current atomic.Pointer[dbv1alpha1.PostgresCluster]
	changed chan struct{}
}

// Get returns the object, or nil if it was never seen. It must not be changed.
func (w *Watcher) Get() *dbv1alpha1.PostgresCluster { return w.current.Load() }

// Changed has a value when the object may have changed.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Watch begins to watch one object. While the API server cannot be reached, the
// object stays as it was last seen, and the watch is tried again and again.
func Watch(ctx context.Context, config *rest.Config, namespace, name string) (*Watcher, error) {
	client, err := restClient(config)
	if err != nil {
		return nil, err
	}
	w := &Watcher{changed: make(chan struct{}, 1)}
	source := cache.NewListWatchFromClient(client, "postgresclusters", namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &dbv1alpha1.PostgresCluster{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    w.set,
			UpdateFunc: func(_, object any) { w.set(object) },
			// A cluster that was deleted ends its pods; until then everything goes on.
		},
	})
	go informer.RunWithContext(ctx)
	return w, nil
}

// Fixed is a watcher of an object that never changes, for tests.
func Fixed(cluster *dbv1alpha1.PostgresCluster) *Watcher {
	w := &Watcher{changed: make(chan struct{}, 1)}
	w.set(cluster)
	return w
}

// Set replaces the object of a fixed watcher.
func (w *Watcher) Set(cluster *dbv1alpha1.PostgresCluster) { w.set(cluster) }

func (w *Watcher) set(object any) {
	cluster, ok := object.(*dbv1alpha1.PostgresCluster)
	if !ok {
		return
	}
	w.current.Store(cluster)
	select {
	case w.changed <- struct{}{}:
	default: // somebody is about to look anyway
	}
}

func restClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := dbv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	settings := rest.CopyConfig(config)
	settings.GroupVersion = &dbv1alpha1.GroupVersion
	settings.APIPath = "/apis"
	settings.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(settings)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return client, nil
}

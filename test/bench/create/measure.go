package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

// milestone is a step of a cluster's creation, in the words of the table.
type milestone string

const (
	podCreated       milestone = "primary pod created"
	volumeBound      milestone = "primary volume bound"
	podScheduled     milestone = "primary pod scheduled"
	primaryStarted   milestone = "primary container started"
	initdbDone       milestone = "initdb done, first server start"
	primaryReady     milestone = "primary pod ready"
	identityRecorded milestone = "system identifier recorded"
	primaryLabelled  milestone = "primary labelled, Service open"
	firstReady       milestone = "first instance ready (Available)"
	replicasStarted  milestone = "last replica container started"
	cloneStarted     milestone = "last clone started"
	cloneFinished    milestone = "last clone finished"
	replicasReady    milestone = "last replica pod ready"
	allReady         milestone = "all instances ready (Ready)"
)

// order is that of the table.
var order = []milestone{podCreated, volumeBound, podScheduled, primaryStarted, initdbDone, primaryReady, identityRecorded,
	primaryLabelled, firstReady, replicasStarted, cloneStarted, cloneFinished, replicasReady, allReady}

// measurement is one run: when each milestone was seen, counted on this
// machine's clock from the moment before the cluster was created.
type measurement struct {
	began time.Time
	times map[milestone]time.Duration
	// managers is the memory of each process 1: resident, and the private part.
	managers, managersPrivate []int64
}

// reach notes a milestone; the first sight counts.
func (m *measurement) reach(step milestone, reached bool, at time.Time) {
	if _, known := m.times[step]; reached && !known {
		m.times[step] = at.Sub(m.began)
	}
}

// measure creates a cluster, watches it to the end, and deletes it.
func (b *bench) measure(ctx context.Context, name string) (m *measurement, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	cluster := b.cluster(name)
	events, stop, err := b.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	m = &measurement{began: time.Now(), times: map[milestone]time.Duration{}}
	if err := b.client.Create(ctx, cluster); err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, b.remove(context.WithoutCancel(ctx), cluster)) }()
	pods := map[string]*corev1.Pod{}
	for m.times[allReady] == 0 {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cluster %s is not ready after %s; seen: %v", name, b.patience, m.times)
		case object := <-events:
			m.observe(name, b.instances, object, pods, time.Now())
		}
	}
	return m, b.readPods(ctx, m, pods)
}

func (b *bench) cluster(name string) *dbv1alpha1.PostgresCluster {
	return &dbv1alpha1.PostgresCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace},
		Spec: dbv1alpha1.PostgresClusterSpec{
			Replicas:        int32(b.instances),
			PostgresVersion: b.version,
			Storage:         dbv1alpha1.StorageSpec{Size: "512Mi", StorageClassName: b.class},
		},
	}
}

// watch streams the changes of the namespace from before the cluster exists.
func (b *bench) watch(ctx context.Context) (<-chan client.Object, func(), error) {
	merged := make(chan client.Object)
	var watches []watch.Interface
	stop := func() {
		for _, w := range watches {
			w.Stop()
		}
	}
	for _, list := range []client.ObjectList{&dbv1alpha1.PostgresClusterList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
		w, err := b.client.Watch(ctx, list, client.InNamespace(b.namespace))
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("watch namespace %s: %w", b.namespace, err)
		}
		watches = append(watches, w)
		go func() {
			for event := range w.ResultChan() {
				object, ok := event.Object.(client.Object)
				if !ok || event.Type == watch.Deleted {
					continue
				}
				select {
				case merged <- object:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return merged, stop, nil
}

// observe notes the milestones that an object shows.
func (m *measurement) observe(name string, instances int, object client.Object, pods map[string]*corev1.Pod, now time.Time) {
	switch object := object.(type) {
	case *dbv1alpha1.PostgresCluster:
		if object.Name != name {
			return
		}
		status := object.Status
		m.reach(identityRecorded, status.SystemIdentifier != "", now)
		m.reach(firstReady, meta.IsStatusConditionTrue(status.Conditions, dbv1alpha1.ConditionAvailable), now)
		m.reach(allReady, int(status.ReadyInstances) == instances &&
			meta.IsStatusConditionTrue(status.Conditions, dbv1alpha1.ConditionReady), now)
	case *corev1.PersistentVolumeClaim:
		m.reach(volumeBound, object.Name == naming.DataClaim(naming.HomeInstance(name)) && object.Status.Phase == corev1.ClaimBound, now)
	case *corev1.Pod:
		if object.Labels[naming.LabelCluster] == name {
			pods[object.Labels[naming.LabelInstance]] = object
			m.observePods(naming.HomeInstance(name), instances, pods, now)
		}
	}
}

func (m *measurement) observePods(home string, instances int, pods map[string]*corev1.Pod, now time.Time) {
	if primary, ok := pods[home]; ok {
		m.reach(podCreated, true, now)
		m.reach(podScheduled, holds(primary, corev1.PodScheduled), now)
		m.reach(primaryStarted, running(primary), now)
		m.reach(primaryReady, holds(primary, corev1.PodReady), now)
		m.reach(primaryLabelled, primary.Labels[naming.LabelRole] == naming.RolePrimary, now)
	}
	started, ready := 0, 0
	for instance, pod := range pods {
		if instance != home && running(pod) {
			started++
		}
		if instance != home && holds(pod, corev1.PodReady) {
			ready++
		}
	}
	m.reach(replicasStarted, instances > 1 && started == instances-1, now)
	m.reach(replicasReady, instances > 1 && ready == instances-1, now)
}

func holds(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func running(pod *corev1.Pod) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if container.Name == naming.ContainerPostgres {
			return container.State.Running != nil
		}
	}
	return false
}

//go:build envtest

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// worldBeat is how often the world moves on.
	worldBeat = 50 * time.Millisecond
	// patience is how long a story waits for what has to come: a loaded machine is
	// slow, and a test that succeeds does not wait.
	patience = time.Minute
	tick     = 50 * time.Millisecond
	systemID = "7300000000000000001"
)

// world plays what is not there: the controllers of Kubernetes that make pods and
// collect garbage, the kubelet, the storage, and the instance managers with their
// reports and their Lease.
type world struct {
	namespace string

	mutex    sync.Mutex
	next     int
	hosts    map[string]types.UID
	hubs     map[types.UID]*protocol.Hub
	leader   map[string]types.UID // pod that leads, by cluster
	timeline map[string]uint32
	// kubelet, if set, changes the status that a pod gets; silent pods answer no
	// question.
	kubelet func(*corev1.Pod)
	silent  map[string]bool
	// holdPods keeps pods that are deleted; noBinding leaves claims pending.
	holdPods  bool
	noBinding bool
	twoLeader []string
}

// newWorld makes a namespace with a world in it, which lives as long as the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	require.NoError(t, api.Create(t.Context(), space))
	w := &world{
		namespace: space.Name, hosts: map[string]types.UID{}, hubs: map[types.UID]*protocol.Hub{},
		leader: map[string]types.UID{}, timeline: map[string]uint32{}, silent: map[string]bool{},
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	watched := make(chan struct{})
	go w.turn(ctx, done)
	go w.watchRoles(ctx, watched)
	t.Cleanup(func() {
		end()
		<-done
		<-watched
		assert.Empty(t, w.twoLeader, "two pods were behind the read-write Service at once")
	})
	return w
}

// With changes the rules of the world.
func (w *world) With(change func(*world)) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	change(w)
}

// turn lets the world go round. Conflicts and things that have gone meanwhile are
// seen to in the next beat.
func (w *world) turn(ctx context.Context, done chan struct{}) {
	defer close(done)
	for ctx.Err() == nil {
		w.beat(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(worldBeat):
		}
	}
}

func (w *world) beat(ctx context.Context) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var clusters dbv1alpha1.PostgresClusterList
	var sets appsv1.StatefulSetList
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	for _, list := range []client.ObjectList{&clusters, &sets, &deployments, &pods, &claims} {
		if api.List(ctx, list, client.InNamespace(w.namespace)) != nil {
			return
		}
	}
	workloads := map[string]bool{}
	for i := range sets.Items {
		set := &sets.Items[i]
		workloads[set.Name] = true
		w.playWorkload(ctx, set, &set.Spec.Template, pods.Items)
	}
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		workloads[deployment.Name] = true
		w.playWorkload(ctx, deployment, &deployment.Spec.Template, pods.Items)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !workloads[pod.Labels[naming.LabelApp]] && pod.DeletionTimestamp == nil && controlled(pod) {
			_ = api.Delete(ctx, pod)
		}
		w.playPod(ctx, pod, clusters.Items)
	}
	for i := range claims.Items {
		w.playClaim(ctx, &claims.Items[i], pods.Items)
	}
	w.collectGarbage(ctx, clusters.Items)
}

func controlled(object metav1.Object) bool { return metav1.GetControllerOf(object) != nil }

// playWorkload is the StatefulSet and the Deployment controller: one pod of the
// present template, made after the former one has gone.
func (w *world) playWorkload(ctx context.Context, workload client.Object, template *corev1.PodTemplateSpec, all []corev1.Pod) {
	var own []*corev1.Pod
	for i := range all {
		if owner := metav1.GetControllerOf(&all[i]); owner != nil && owner.UID == workload.GetUID() {
			own = append(own, &all[i])
		}
	}
	set, isSet := workload.(*appsv1.StatefulSet)
	revision := revisionOf(template)
	if workload.GetDeletionTimestamp() != nil {
		for _, pod := range own {
			_ = api.Delete(ctx, pod)
		}
		if len(own) == 0 {
			dropFinalizer(ctx, workload, metav1.FinalizerDeleteDependents)
		}
		return
	}
	ready := int32(0)
	for _, pod := range own {
		if !isSet && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != revision && pod.DeletionTimestamp == nil {
			_ = api.Delete(ctx, pod)
		}
		if podIsReady(pod) {
			ready = 1
		}
	}
	if len(own) == 0 {
		w.makePod(ctx, workload, template, revision, isSet)
	}
	if isSet {
		status := appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, UpdateRevision: revision, CurrentRevision: revision,
			Replicas: 1, ReadyReplicas: ready, AvailableReplicas: ready, CurrentReplicas: 1, UpdatedReplicas: 1}
		if status.ReadyReplicas != set.Status.ReadyReplicas || status.ObservedGeneration != set.Status.ObservedGeneration || revision != set.Status.UpdateRevision {
			set.Status = status
			_ = api.Status().Update(ctx, set)
		}
		return
	}
	deployment := workload.(*appsv1.Deployment)
	if deployment.Status.ReadyReplicas != ready || deployment.Status.ObservedGeneration != deployment.Generation {
		deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: ready, AvailableReplicas: ready}
		_ = api.Status().Update(ctx, deployment)
	}
}

func (w *world) makePod(ctx context.Context, workload client.Object, template *corev1.PodTemplateSpec, revision string, isSet bool) {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload.GetName() + "-" + revision, UID: workload.GetUID(), Controller: ptr.To(true)}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: workload.GetName() + "-" + revision + "-0", Annotations: template.Annotations, Labels: maps.Clone(template.Labels),
	}, Spec: *template.Spec.DeepCopy()}
	if isSet {
		owner.Kind, owner.Name, pod.Name = "StatefulSet", workload.GetName(), workload.GetName()+"-0"
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	pod.Spec.NodeName = "node-1"
	if err := api.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		panic(fmt.Sprintf("the pod of %s is refused: %v", workload.GetName(), err))
	}
}

// playPod is the kubelet, and the instance manager in the pod.
func (w *world) playPod(ctx context.Context, pod *corev1.Pod, clusters []dbv1alpha1.PostgresCluster) {
	at := slices.IndexFunc(clusters, func(c dbv1alpha1.PostgresCluster) bool { return c.Name == pod.Labels[naming.LabelCluster] })
	if pod.DeletionTimestamp != nil && at >= 0 {
		w.release(ctx, &clusters[at], pod)
	}
	if pod.DeletionTimestamp != nil {
		if !w.holdPods {
			_ = api.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}
		return
	}
	before := pod.Status.DeepCopy()
	if pod.Status.PodIP == "" {
		w.next++
		pod.Status.PodIP = fmt.Sprintf("10.1.%d.%d", w.next/250, w.next%250+1)
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		started := metav1.NewTime(time.Now().Truncate(time.Second))
		pod.Status.StartTime = &started
	}
	runPod(pod)
	if w.kubelet != nil {
		w.kubelet(pod)
	}
	if !equal(before, &pod.Status) {
		_ = api.Status().Update(ctx, pod)
	}
	if at >= 0 {
		w.hosts[pod.Status.PodIP] = pod.UID
		w.manage(ctx, &clusters[at], pod)
	}
}

// runPod is the status of a pod that runs and is ready.
func runPod(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	setPodReady(pod, true)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *pod.Status.StartTime}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerPostgres, Ready: true, State: running, Image: "image", ImageID: "id"}}
}

func setPodReady(pod *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: *pod.Status.StartTime}}
}

func podIsReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// manage is the instance manager: it does what the status of the cluster assigns,
// and leads only with the Lease in its hand.
func (w *world) manage(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, pod *corev1.Pod) {
	name, instance := cluster.Name, pod.Labels[naming.LabelInstance]
	change := cluster.Status.PrimaryChange
	assigned := cluster.Status.TargetPrimary == instance && (change == nil || change.To == instance)
	if w.leader[name] == pod.UID && !assigned {
		w.release(ctx, cluster, pod)
	}
	if assigned && w.leader[name] != pod.UID && w.take(ctx, cluster, instance+"/"+string(pod.UID)) {
		w.leader[name] = pod.UID
		w.timeline[name]++
	}
	report := protocol.Report{
		ProtocolVersion: protocol.Version, Instance: instance, PodUID: string(pod.UID), State: protocol.StateRunning,
		Ready: true, SystemIdentifier: systemID, Timeline: w.timeline[name], ConfigGeneration: cluster.Generation,
	}
	if w.leader[name] == pod.UID {
		report.Role, report.WrittenLSN = protocol.RolePrimary, "0/3000100"
	} else {
		report.Role, report.ReceivedLSN, report.ReplayedLSN = protocol.RoleReplica, "0/3000100", "0/3000100"
		report.Streaming = change == nil || change.Type != dbv1alpha1.PrimaryChangeFailover
		if change != nil && !report.Streaming {
			report.StreamCut = change.Number
		}
		if w.timeline[name] == 0 {
			report.State, report.Role, report.Streaming = protocol.StateWaitingForPrimary, protocol.RoleNone, false
		}
	}
	if w.hubs[pod.UID] == nil {
		w.hubs[pod.UID] = protocol.NewHub(string(pod.UID))
	}
	w.hubs[pod.UID].Set(report)
}

// take takes the Lease if it is free; its duration is longer than any test.
func (w *world) take(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, holder string) bool {
	lease := &coordinationv1.Lease{}
	if api.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: naming.PrimaryLease(cluster.Name)}, lease) != nil ||
		(ptr.Deref(lease.Spec.HolderIdentity, "") != "" && *lease.Spec.HolderIdentity != holder) {
		return false
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &holder, ptr.To[int32](3600)
	lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	delete(lease.Annotations, naming.AnnotationFinalLSN)
	return api.Update(ctx, lease) == nil
}

// release stops the server of a pod and gives its Lease back.
func (w *world) release(ctx context.Context, cluster *dbv1alpha1.PostgresCluster, pod *corev1.Pod) {
	if w.leader[cluster.Name] == pod.UID {
		delete(w.leader, cluster.Name)
	}
	lease := &coordinationv1.Lease{}
	if api.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: naming.PrimaryLease(cluster.Name)}, lease) != nil ||
		ptr.Deref(lease.Spec.HolderIdentity, "") != pod.Labels[naming.LabelInstance]+"/"+string(pod.UID) {
		return
	}
	lease.Spec.HolderIdentity = nil
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, naming.AnnotationFinalLSN, "0/30000F0")
	_ = api.Update(ctx, lease)
}

// playClaim is the storage: claims are bound, and go when no pod uses them.
func (w *world) playClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, pods []corev1.Pod) {
	if claim.DeletionTimestamp != nil {
		used := slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
			})
		})
		if !used {
			dropFinalizer(ctx, claim, "kubernetes.io/pvc-protection")
		}
		return
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if capacity := claim.Status.Capacity[corev1.ResourceStorage]; w.noBinding || (claim.Status.Phase == corev1.ClaimBound && capacity.Cmp(size) == 0) {
		return
	}
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: size}
	_ = api.Status().Update(ctx, claim)
}

func dropFinalizer(ctx context.Context, object client.Object, finalizer string) {
	if at := slices.Index(object.GetFinalizers(), finalizer); at >= 0 {
		object.SetFinalizers(slices.Delete(slices.Clone(object.GetFinalizers()), at, at+1))
		_ = api.Update(ctx, object)
	}
}

// collectGarbage deletes what a cluster that has gone owned.
func (w *world) collectGarbage(ctx context.Context, clusters []dbv1alpha1.PostgresCluster) {
	alive := map[types.UID]bool{}
	for i := range clusters {
		alive[clusters[i].UID] = true
	}
	for _, list := range childLists() {
		if api.List(ctx, list, client.InNamespace(w.namespace)) != nil {
			return
		}
		objects, _ := meta.ExtractList(list)
		for _, object := range objects {
			child := object.(client.Object)
			if owner := metav1.GetControllerOf(child); owner != nil && owner.Kind == "PostgresCluster" && !alive[owner.UID] && child.GetDeletionTimestamp() == nil {
				_ = api.Delete(ctx, child)
			}
		}
	}
}

// Status implements reports.Source: it is asked in the place of the pods.
func (w *world) Status(ctx context.Context, host, after string, wait time.Duration) (protocol.Report, error) {
	deadline := time.Now().Add(wait)
	for {
		w.mutex.Lock()
		hub, silent := w.hubs[w.hosts[host]], w.silent[host]
		w.mutex.Unlock()
		if hub == nil || silent {
			return protocol.Report{}, errors.New("no answer")
		}
		if report := hub.Get(); report.Revision != after || time.Now().After(deadline) {
			return report, nil
		}
		select {
		case <-ctx.Done():
			return protocol.Report{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Close implements reports.Source.
func (w *world) Close() {}

// watchRoles sees each change of a pod's role, and notes every moment at which two
// pods of a cluster are primary.
func (w *world) watchRoles(ctx context.Context, done chan struct{}) {
	defer close(done)
	watcher, err := api.Watch(ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	if err != nil {
		return
	}
	defer watcher.Stop()
	primaries := map[string]string{}
	for event := range watcher.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		delete(primaries, pod.Name)
		if event.Type != watch.Deleted && pod.Labels[naming.LabelRole] == naming.RolePrimary {
			for other, cluster := range primaries {
				if cluster == pod.Labels[naming.LabelCluster] {
					w.With(func(w *world) { w.twoLeader = append(w.twoLeader, other+" and "+pod.Name) })
				}
			}
			primaries[pod.Name] = pod.Labels[naming.LabelCluster]
		}
	}
}

func revisionOf(template *corev1.PodTemplateSpec) string {
	raw, _ := json.Marshal(template)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:4])
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

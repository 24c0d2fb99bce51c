package state

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// Instance is one PostgreSQL instance: its workload, pods, volume and report.
// Any of them can be missing.
type Instance struct {
	Name     string
	Ordinal  int
	Workload *Workload
	Claim    *corev1.PersistentVolumeClaim
	// Pod is the newest pod that is not being deleted, Terminating the others.
	Pod         *corev1.Pod
	Terminating []*corev1.Pod
	// Report is about Pod.
	Report ReportEntry
}

// Workload is the StatefulSet or the Deployment of an instance.
type Workload struct {
	StatefulSet *appsv1.StatefulSet
	Deployment  *appsv1.Deployment
}

// Object is the workload as an API object's metadata.
func (w *Workload) Object() metav1.Object {
	if w.StatefulSet != nil {
		return w.StatefulSet
	}
	return w.Deployment
}

// Template is the pod template as it is.
func (w *Workload) Template() *corev1.PodTemplateSpec {
	if w.StatefulSet != nil {
		return &w.StatefulSet.Spec.Template
	}
	return &w.Deployment.Spec.Template
}

// ManagerImage is the image that the init container of the workload copies the
// instance manager from.
func (w *Workload) ManagerImage() string {
	for _, container := range w.Template().Spec.InitContainers {
		if container.Name == naming.ContainerInstall {
			return container.Image
		}
	}
	return ""
}

// Exists tells whether the instance has a workload that is not going away.
func (i *Instance) Exists() bool {
	return i != nil && i.Workload != nil && i.Workload.Object().GetDeletionTimestamp() == nil
}

// HasPods tells whether any pod of the instance is left.
func (i *Instance) HasPods() bool { return i != nil && (i.Pod != nil || len(i.Terminating) > 0) }

// Serving tells whether the instance's pod is ready in the kubelet's eyes, which
// is what puts it behind its Service.
func (i *Instance) Serving() bool {
	return i != nil && i.Pod != nil && PodReady(i.Pod)
}

// PodReady tells whether the kubelet reports the pod as ready.
func PodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// State is what the instance last said it is doing, or false if
// nothing is known.
func (i *Instance) State() (protocol.State, bool) {
	if i == nil || !i.Report.Known {
		return "", false
	}
	return i.Report.Report.State, true
}

// IsPrimary tells whether PostgreSQL on the instance runs and has last answered
// that it is not in recovery.
func (i *Instance) IsPrimary() bool {
	if i == nil || !i.Report.Known {
		return false
	}
	report := i.Report.Report
	return report.State == protocol.StateRunning && report.Role == protocol.RolePrimary
}

// OutdatedPod tells whether the pod was made from an older template than its
// StatefulSet has now: with the OnDelete strategy nobody but us replaces it.
// A Deployment replaces its own.
func (i *Instance) OutdatedPod() bool {
	if i.Pod == nil || i.Workload == nil || i.Workload.StatefulSet == nil {
		return false
	}
	set := i.Workload.StatefulSet
	if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" {
		return false // not known yet
	}
	return i.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision
}

// Replacing tells whether the workload's own controller has still to act on the
// workload's present template: the pod that is seen may be the old one.
func (i *Instance) Replacing() bool {
	if i.Workload == nil {
		return false
	}
	if set := i.Workload.StatefulSet; set != nil {
		return set.Status.ObservedGeneration != set.Generation
	}
	deployment := i.Workload.Deployment
	return deployment.Status.ObservedGeneration != deployment.Generation ||
		deployment.Status.UpdatedReplicas < 1 || deployment.Status.Replicas > deployment.Status.UpdatedReplicas
}

func (i *Instance) addPod(pod *corev1.Pod, report ReportEntry) {
	switch {
	case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		i.Terminating = append(i.Terminating, pod)
	case i.Pod != nil && pod.CreationTimestamp.Before(&i.Pod.CreationTimestamp):
		i.Terminating = append(i.Terminating, pod)
	default:
		if i.Pod != nil {
			i.Terminating = append(i.Terminating, i.Pod)
		}
		i.Pod, i.Report = pod, report
	}
}

// Pods are all pods of the instance, the newest first.
func (i *Instance) Pods() []*corev1.Pod {
	if i.Pod == nil {
		return i.Terminating
	}
	return append([]*corev1.Pod{i.Pod}, i.Terminating...)
}

// restartMemory is how long a container has to run after a restart, so that the kubelet
// starts it again without a pause when it ends: twice the longest pause.
const restartMemory = 10 * time.Minute

// Looping tells whether the kubelet waits before it starts the container of PostgreSQL
// again, longer each time. It says so only a while after the end; that it will follows
// from its rule: the first restart is at once, the next ones are not.
func (i *Instance) Looping() bool {
	container := postgresStatus(i.Pod)
	switch {
	case container == nil:
		return false
	case container.State.Waiting != nil:
		return container.State.Waiting.Reason == "CrashLoopBackOff"
	}
	end := container.State.Terminated
	return end != nil && container.RestartCount > 0 && end.FinishedAt.Sub(end.StartedAt.Time) < restartMemory
}

// ended tells whether the kubelet's word, which may be old, is that the pod's
// container of PostgreSQL has ended and that no other has taken its place; and when
// it ended, on the clock of its node, in whole seconds.
func ended(pod *corev1.Pod) (time.Time, bool) {
	container := postgresStatus(pod)
	if container == nil || container.State.Running != nil {
		return time.Time{}, false
	}
	for _, end := range []*corev1.ContainerStateTerminated{container.State.Terminated, container.LastTerminationState.Terminated} {
		if end != nil {
			return end.FinishedAt.Time, true
		}
	}
	return time.Time{}, false
}

// Dead is PodDead of the instance's newest pod.
func (s *Snapshot) Dead(i *Instance) bool { return i != nil && i.Pod != nil && s.PodDead(i, i.Pod) }

// PodDead tells whether the container of PostgreSQL of one of an instance's pods has
// ended and no other runs in its place. What the kubelet says was true once: an
// instance that answers contradicts it, and so does a container that has taken the
// Lease since, as far as seconds on the node's clock tell.
func (s *Snapshot) PodDead(i *Instance, pod *corev1.Pod) bool {
	at, dead := ended(pod)
	switch {
	case !dead || (pod == i.Pod && i.Report.Current()):
		return false
	case s.Lease.HolderPod() != string(pod.UID):
		return true
	}
	return !s.Lease.AcquiredAt.IsZero() && s.Lease.AcquiredAt.Truncate(time.Second).Before(at)
}

func postgresStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for at := range pod.Status.ContainerStatuses {
		if container := &pod.Status.ContainerStatuses[at]; container.Name == naming.ContainerPostgres {
			return container
		}
	}
	return nil
}

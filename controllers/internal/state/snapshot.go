package state

import (
	"slices"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// ReportEntry is the latest report of one pod.
type ReportEntry struct {
	// Known tells whether there ever was a report; Report and At are its content
	// and the operator's clock when it came.
	Known  bool
	Report protocol.Report
	At     time.Time
	// Error is why the last question was not answered, empty if it was;
	// FailedSince is when that began.
	Error       string
	FailedSince time.Time
	// DownSince is when an instance that answers was first seen with a PostgreSQL
	// that does not run; zero if it runs.
	DownSince time.Time
}

// Current tells whether the last question was answered.
func (e ReportEntry) Current() bool { return e.Known && e.Error == "" }

// Observed is what was read, from which a Snapshot is made.
type Observed struct {
	Now          time.Time
	Cluster      *dbv1alpha1.PostgresCluster
	StatefulSets []appsv1.StatefulSet
	Deployments  []appsv1.Deployment
	Pods         []corev1.Pod
	Claims       []corev1.PersistentVolumeClaim
	Secrets      []corev1.Secret
	Reports      map[types.UID]ReportEntry
	Lease        Lease
	// Cordoned are the nodes, of those that were looked at, that take no new pods.
	Cordoned map[string]bool
}

// Snapshot is the world of one cluster at one moment.
type Snapshot struct {
	Now     time.Time
	Cluster *dbv1alpha1.PostgresCluster
	// Instances are all that exist in any form (workload, pod or volume), by
	// ordinal.
	Instances []*Instance
	Lease     Lease
	cordoned  map[string]bool
	secrets   map[string]*corev1.Secret
}

// New sorts what was observed by instance. Objects that the cluster does not
// control are left out, as are pods that only carry our labels.
func New(o Observed) *Snapshot {
	s := &Snapshot{Now: o.Now, Cluster: o.Cluster, Lease: o.Lease, cordoned: o.Cordoned, secrets: map[string]*corev1.Secret{}}
	for i := range o.StatefulSets {
		if set := &o.StatefulSets[i]; s.ours(set) {
			s.addWorkload(set.Name, &Workload{StatefulSet: set})
		}
	}
	for i := range o.Deployments {
		if deployment := &o.Deployments[i]; s.ours(deployment) {
			s.addWorkload(deployment.Name, &Workload{Deployment: deployment})
		}
	}
	for i := range o.Claims {
		if claim := &o.Claims[i]; s.ours(claim) {
			if instance := s.instance(claim.Labels[naming.LabelInstance]); instance != nil {
				instance.Claim = claim
			}
		}
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		name := pod.Labels[naming.LabelInstance]
		if !madeByWorkload(pod, name) {
			continue
		}
		if instance := s.instance(name); instance != nil {
			instance.addPod(pod, o.Reports[pod.UID])
		}
	}
	for i := range o.Secrets {
		if secret := &o.Secrets[i]; s.ours(secret) {
			s.secrets[secret.Name] = secret
		}
	}
	sort.Slice(s.Instances, func(i, j int) bool { return s.Instances[i].Ordinal < s.Instances[j].Ordinal })
	return s
}

// Instance returns the instance of a name, or nil if nothing of it exists.
func (s *Snapshot) Instance(name string) *Instance {
	at := slices.IndexFunc(s.Instances, func(i *Instance) bool { return i.Name == name })
	if at < 0 {
		return nil
	}
	return s.Instances[at]
}

// OnCordonedNode tells whether an instance runs on a node that takes no new pods,
// and is likely to be emptied; false if nobody looked.
func (s *Snapshot) OnCordonedNode(name string) bool {
	instance := s.Instance(name)
	return instance != nil && instance.Pod != nil && s.cordoned[instance.Pod.Spec.NodeName]
}

// Secret returns a Secret of ours, or nil.
func (s *Snapshot) Secret(name string) *corev1.Secret { return s.secrets[name] }

func (s *Snapshot) ours(object metav1.Object) bool {
	return metav1.IsControlledBy(object, s.Cluster)
}

func (s *Snapshot) addWorkload(name string, workload *Workload) {
	if instance := s.instance(name); instance != nil {
		instance.Workload = workload
	}
}

// instance finds or makes the entry of an instance; nil if the name is none of
// this cluster's.
func (s *Snapshot) instance(name string) *Instance {
	ordinal, ok := naming.Ordinal(s.Cluster.Name, name)
	if !ok {
		return nil
	}
	if known := s.Instance(name); known != nil {
		return known
	}
	added := &Instance{Name: name, Ordinal: ordinal}
	s.Instances = append(s.Instances, added)
	return added
}

// madeByWorkload tells whether the pod was made by the StatefulSet of the
// instance's name, or by a ReplicaSet of its Deployment.
func madeByWorkload(pod *corev1.Pod, instance string) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	switch owner.Kind {
	case "StatefulSet":
		return owner.Name == instance
	case "ReplicaSet":
		return strings.HasPrefix(owner.Name, instance+"-")
	}
	return false
}

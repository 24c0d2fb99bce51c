package controllers

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/my-org/postgres-operator/controllers/internal/kube"
	"github.com/my-org/postgres-operator/controllers/internal/plan"
	"github.com/my-org/postgres-operator/controllers/internal/resources"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/validation"
)

// build is how this pass makes the workloads of a cluster.
type build struct {
	snapshot *state.Snapshot
	options  Options
	image    string
	changed  map[string]bool
}

// newBuild resolves the image and compares the workloads that exist with those
// that are wanted. The error is one that the user has to act upon.
func (r *PostgresClusterReconciler) newBuild(snapshot *state.Snapshot) (*build, error) {
	image, err := validation.Image(snapshot.Cluster, r.Options.LookupEnv, r.Options.PostgresRepository)
	if err != nil {
		return nil, err
	}
	b := &build{snapshot: snapshot, options: r.Options, image: image, changed: map[string]bool{}}
	for _, instance := range snapshot.Instances {
		if !instance.Exists() {
			continue
		}
		if b.changed[instance.Name], err = b.differs(instance); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// differs tells whether the instance's workload has another pod template than is
// wanted: because something else is wanted now (a field given up included), or
// because somebody changed it.
func (b *build) differs(instance *state.Instance) (bool, error) {
	wanted, err := b.workload(instance.Name)
	if err != nil {
		return false, err
	}
	if instance.Workload.Object().GetAnnotations()[naming.AnnotationTemplateHash] != wanted.GetAnnotations()[naming.AnnotationTemplateHash] {
		return true, nil
	}
	holds, err := kube.Holds(instance.Workload.Template(), templateOf(wanted))
	if err != nil {
		return false, fmt.Errorf("compare the pod template of %s: %w", instance.Name, err)
	}
	return !holds, nil
}

func (b *build) wanted() plan.Wanted { return plan.Wanted{Changed: b.changed} }

// workload builds the workload of an instance. The image of the instance manager
// stays what it is for a workload that exists: a new operator restarts no
// database by itself.
func (b *build) workload(instance string) (client.Object, error) {
	w := resources.Workload{
		Cluster: b.snapshot.Cluster, Instance: instance, Image: b.image,
		ManagerImage: b.options.ManagerImage, ManagerPullPolicy: b.options.ManagerPullPolicy,
		PlatformAssignsIDs: b.options.PlatformAssignsIDs,
	}
	if known := b.snapshot.Instance(instance); known.Exists() && known.Workload.ManagerImage() != "" {
		w.ManagerImage = known.Workload.ManagerImage()
	}
	var workload client.Object
	if instance == naming.HomeInstance(b.snapshot.Cluster.Name) {
		workload = resources.StatefulSet(w)
	} else {
		workload = resources.Deployment(w)
	}
	hash, err := kube.Hash(templateOf(workload))
	if err != nil {
		return nil, fmt.Errorf("hash the pod template of %s: %w", instance, err)
	}
	annotations := map[string]string{naming.AnnotationTemplateHash: hash}
	maps.Copy(annotations, workload.GetAnnotations())
	workload.SetAnnotations(annotations)
	return workload, nil
}

func templateOf(workload client.Object) *corev1.PodTemplateSpec {
	if set, ok := workload.(*appsv1.StatefulSet); ok {
		return &set.Spec.Template
	}
	return &workload.(*appsv1.Deployment).Spec.Template
}

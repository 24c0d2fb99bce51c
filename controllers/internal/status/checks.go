package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/naming"
)

const (
	// UnreachableAfter is how long a running pod may leave the operator's questions
	// unanswered before that is reported. A start takes seconds.
	UnreachableAfter = 30 * time.Second
	// crashLoopRestarts is the number of restarts of a waiting container from which
	// on it counts as looping.
	crashLoopRestarts = 2
)

// Check looks for one kind of fault.
type Check struct {
	Name string
	Find func(Input) *Fault
}

// Checks are asked in this order; the first fault is the one that is reported.
var Checks = []Check{
	{"pass", passFault},
	{"candidate", candidateFault},
	{"fence", fenceFault},
	{"image", eachInstance(imageFault)},
	{"schedule", eachInstance(scheduleFault)},
	{"report", eachInstance(reportedFault)},
	{"crash loop", eachInstance(crashFault)},
	{"unreachable", eachInstance(unreachableFault)},
}

func passFault(in Input) *Fault {
	if len(in.Faults) == 0 {
		return nil
	}
	return &in.Faults[0]
}

// candidateFault: the primary is lost, and nothing that happens by itself gives the
// cluster another one for certain.
func candidateFault(in Input) *Fault {
	for _, wait := range in.Plan.Waits {
		if wait.Reason == dbv1alpha1.ReasonNoCandidate {
			return &Fault{wait.Reason, wait.Message}
		}
	}
	return nil
}

// fenceFault names the instances that people have fenced.
func fenceFault(in Input) *Fault {
	var fenced []string
	for _, name := range in.Plan.Assignment.Members {
		if naming.Fenced(in.Snapshot.Cluster.Annotations, name) {
			fenced = append(fenced, name)
		}
	}
	if len(fenced) == 0 {
		return nil
	}
	return &Fault{dbv1alpha1.ReasonFenced, fmt.Sprintf("PostgreSQL is stopped on %s, as the annotation %s asks: remove it to start them",
		strings.Join(fenced, ", "), naming.AnnotationFence)}
}

// eachInstance asks about the members in order.
func eachInstance(find func(Input, *state.Instance) *Fault) func(Input) *Fault {
	return func(in Input) *Fault {
		for _, instance := range in.Snapshot.Instances {
			if !slices.Contains(in.Plan.Assignment.Members, instance.Name) || instance.Pod == nil {
				continue
			}
			if fault := find(in, instance); fault != nil {
				return fault
			}
		}
		return nil
	}
}

func imageFault(_ Input, instance *state.Instance) *Fault {
	for _, container := range containerStatuses(instance.Pod) {
		waiting := container.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			return &Fault{dbv1alpha1.ReasonImageUnavailable, fmt.Sprintf(
				"instance %s: image %q cannot be pulled: correct spec.image or spec.postgresVersion, or the registry's access (spec.imagePullSecrets)",
				instance.Name, imageOf(instance.Pod, container.Name))}
		case "CreateContainerConfigError", "CreateContainerError":
			return &Fault{dbv1alpha1.ReasonCrashLooping, fmt.Sprintf("instance %s: container %s cannot be created: %s",
				instance.Name, container.Name, waiting.Message)}
		}
	}
	return nil
}

func scheduleFault(_ Input, instance *state.Instance) *Fault {
	for _, condition := range instance.Pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable {
			return &Fault{dbv1alpha1.ReasonUnschedulable, fmt.Sprintf(
				"instance %s finds no node: %s", instance.Name, condition.Message)}
		}
	}
	return nil
}

// reportedFault passes on what the instance itself says.
func reportedFault(_ Input, instance *state.Instance) *Fault {
	if !instance.Report.Known || instance.Report.Report.Problem == nil {
		return nil
	}
	problem := instance.Report.Report.Problem
	return &Fault{string(problem.Reason), fmt.Sprintf("instance %s: %s", instance.Name, problem.Message)}
}

func crashFault(_ Input, instance *state.Instance) *Fault {
	for _, container := range containerStatuses(instance.Pod) {
		waiting := container.State.Waiting
		if waiting != nil && waiting.Reason == "CrashLoopBackOff" && container.RestartCount >= crashLoopRestarts {
			return &Fault{dbv1alpha1.ReasonCrashLooping, fmt.Sprintf(
				"instance %s: container %s ends again and again: see kubectl logs %s -c %s --previous",
				instance.Name, container.Name, instance.Pod.Name, container.Name)}
		}
	}
	return nil
}

// unreachableFault reports an instance that has run for long enough and does not
// answer.
func unreachableFault(in Input, instance *state.Instance) *Fault {
	report := instance.Report
	if report.Error == "" || in.Snapshot.Now.Sub(report.FailedSince) < UnreachableAfter || !hasRunFor(in.Snapshot.Now, instance.Pod, UnreachableAfter) {
		return nil
	}
	return &Fault{dbv1alpha1.ReasonInstanceUnreachable, fmt.Sprintf(
		"instance %s does not answer the operator: look at its node and at the network between them", instance.Name)}
}

// hasRunFor tells whether the container of PostgreSQL has been running for a
// time. Before, there is nobody who could answer: images are being pulled.
func hasRunFor(now time.Time, pod *corev1.Pod, duration time.Duration) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if container.Name == naming.ContainerPostgres && container.State.Running != nil {
			return now.Sub(container.State.Running.StartedAt.Time) >= duration
		}
	}
	return false
}

func containerStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// imageOf is the image that the pod asks for: the status may name another
// spelling of it, or none yet.
func imageOf(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

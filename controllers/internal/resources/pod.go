package resources

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

const (
	// gracePeriodSeconds covers the checkpoint of a stop: five minutes write some
	// tens of gigabytes. The instance manager bounds its own stop by it.
	gracePeriodSeconds = 300
	// startupFailures seconds are how long the instance manager itself may take to
	// come up. Recovery and clones happen behind a manager that is up, and take as
	// long as they take.
	startupFailures = 600
	// defaultID is the user and group of the official image.
	defaultID = 999
)

// podTemplate is the pod of an instance. What it holds is the restart contract:
// a change of it restarts databases.
func podTemplate(w Workload) corev1.PodTemplateSpec {
	spec := w.Cluster.Spec
	annotations := map[string]string{}
	maps.Copy(annotations, spec.PodMetadata.Annotations)
	// kubectl logs and exec mean PostgreSQL unless told otherwise.
	annotations["kubectl.kubernetes.io/default-container"] = naming.ContainerPostgres
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: podLabels(w.Cluster, w.Instance), Annotations: annotations},
		Spec: corev1.PodSpec{
			ServiceAccountName:            naming.InstanceAccount(w.Cluster.Name),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](gracePeriodSeconds),
			SecurityContext:               podSecurity(w),
			ImagePullSecrets:              spec.ImagePullSecrets,
			Affinity:                      affinity(w.Cluster),
			Tolerations:                   spec.Tolerations,
			NodeSelector:                  spec.NodeSelector.Strings(),
			TopologySpreadConstraints:     spread(w.Cluster),
			PriorityClassName:             spec.PriorityClassName,
			InitContainers:                []corev1.Container{installContainer(w)},
			Containers:                    []corev1.Container{postgresContainer(w)},
			Volumes:                       volumes(w),
		},
	}
}

// installContainer copies the program into the pod, so that the PostgreSQL image
// can be anybody's. Its requests are below what any pod of PostgreSQL asks for,
// and equal its limits, so a Guaranteed pod stays one.
func installContainer(w Workload) corev1.Container {
	small := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	return corev1.Container{
		Name:            naming.ContainerInstall,
		Image:           w.ManagerImage,
		ImagePullPolicy: w.ManagerPullPolicy,
		Command:         []string{"/postgres-operator", "instance", "install", naming.DirController},
		Resources:       corev1.ResourceRequirements{Requests: small, Limits: small},
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeController, MountPath: naming.DirController}},
	}
}

func postgresContainer(w Workload) corev1.Container {
	return corev1.Container{
		Name:            naming.ContainerPostgres,
		Image:           w.Image,
		ImagePullPolicy: w.Cluster.Spec.ImagePullPolicy,
		Command:         []string{naming.FileManager, "instance", "run"},
		Env:             environment(w),
		Ports: []corev1.ContainerPort{
			port(naming.PortNamePostgres, naming.PortPostgres), port(naming.PortNameHealth, naming.PortHealth),
			port(naming.PortNameControl, naming.PortControl), port(naming.PortNameMetrics, naming.PortMetrics),
		},
		Resources:       w.Cluster.Spec.Resources,
		SecurityContext: containerSecurity(),
		StartupProbe:    probe("/startupz", 1, 5, startupFailures),
		LivenessProbe:   probe("/livez", 10, 5, 6),
		ReadinessProbe:  probe("/readyz", 1, 3, 3),
		VolumeMounts:    mounts(w),
	}
}

func probe(path string, period, timeout, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString(naming.PortNameHealth), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds: period, TimeoutSeconds: timeout, FailureThreshold: failures, SuccessThreshold: 1,
	}
}

func port(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

func environment(w Workload) []corev1.EnvVar {
	fromField := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		{Name: naming.EnvCluster, Value: w.Cluster.Name},
		{Name: naming.EnvInstance, Value: w.Instance},
		fromField(naming.EnvNamespace, "metadata.namespace"),
		fromField(naming.EnvPodName, "metadata.name"),
		fromField(naming.EnvPodUID, "metadata.uid"),
		fromField(naming.EnvPodIP, "status.podIP"),
		// What psql in the pod connects to.
		{Name: "PGHOST", Value: naming.DirSocket},
		{Name: "PGUSER", Value: naming.UserSuperuser},
		{Name: "PGDATA", Value: naming.DirData},
		{Name: "HOME", Value: "/tmp"},
	}
	if memory := sizeOf(w.Cluster, corev1.ResourceMemory); memory != nil {
		env = append(env, corev1.EnvVar{Name: naming.EnvMemoryBytes, Value: strconv.FormatInt(memory.Value(), 10)})
	}
	if cpu := sizeOf(w.Cluster, corev1.ResourceCPU); cpu != nil {
		env = append(env, corev1.EnvVar{Name: naming.EnvCPUMillis, Value: strconv.FormatInt(cpu.MilliValue(), 10)})
	}
	return env
}

// sizeOf is the limit of a resource, else its request, else nil.
func sizeOf(cluster *dbv1alpha1.PostgresCluster, name corev1.ResourceName) *resource.Quantity {
	for _, list := range []corev1.ResourceList{cluster.Spec.Resources.Limits, cluster.Spec.Resources.Requests} {
		if quantity, ok := list[name]; ok && !quantity.IsZero() {
			return &quantity
		}
	}
	return nil
}

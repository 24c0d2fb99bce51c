package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/my-org/postgres-operator/internal/naming"
)

// Names of the pod's volumes.
const (
	volumeData        = "data"
	volumeController  = "controller"
	volumeSocket      = "socket"
	volumeTemporary   = "tmp"
	volumeShared      = "shm"
	volumeServer      = "server-certificate"
	volumeReplication = "replication-certificate"
	volumeApp         = "app-credentials"
	volumePostInit    = "post-init"
)

// secretMode: readable for the pod's group, which the volume belongs to.
const secretMode = 0o440

func volumes(w Workload) []corev1.Volume {
	name := w.Cluster.Name
	list := []corev1.Volume{
		{Name: volumeData, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: naming.DataClaim(w.Instance)}}},
		emptyDir(volumeController, corev1.StorageMediumDefault),
		emptyDir(volumeSocket, corev1.StorageMediumDefault),
		emptyDir(volumeTemporary, corev1.StorageMediumDefault),
		// The runtime's own /dev/shm has 64 MiB, too little for parallel queries.
		// What is used counts against the container's memory limit.
		emptyDir(volumeShared, corev1.StorageMediumMemory),
		secretVolume(volumeServer, naming.ServerSecret(name)),
		secretVolume(volumeReplication, naming.ReplicationSecret(name)),
		secretVolume(volumeApp, naming.AppSecret(name), naming.KeyPassword),
	}
	if sources := postInit(w); len(sources) > 0 {
		list = append(list, corev1.Volume{Name: volumePostInit, VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: ptr.To[int32](secretMode)}}})
	}
	return list
}

func mounts(w Workload) []corev1.VolumeMount {
	list := []corev1.VolumeMount{
		{Name: volumeData, MountPath: naming.DirVolume},
		{Name: volumeController, MountPath: naming.DirController},
		{Name: volumeController, MountPath: "/etc/passwd", SubPath: naming.SubPathPasswd, ReadOnly: true},
		{Name: volumeSocket, MountPath: naming.DirSocket},
		{Name: volumeTemporary, MountPath: "/tmp"},
		{Name: volumeShared, MountPath: "/dev/shm"},
		{Name: volumeServer, MountPath: naming.DirServerSecret, ReadOnly: true},
		{Name: volumeReplication, MountPath: naming.DirReplicationSecret, ReadOnly: true},
		{Name: volumeApp, MountPath: naming.DirAppSecret, ReadOnly: true},
	}
	if len(postInit(w)) > 0 {
		list = append(list, corev1.VolumeMount{Name: volumePostInit, MountPath: naming.DirPostInit, ReadOnly: true})
	}
	return list
}

// postInit are the post-init scripts as files whose names sort in their order.
// They are for the instance that initialises; whether it can is decided by the
// instance manager, so the template is the same for all.
func postInit(w Workload) []corev1.VolumeProjection {
	var sources []corev1.VolumeProjection
	for i, source := range w.Cluster.Spec.Bootstrap.InitDB.PostInitSQL {
		file := fmt.Sprintf("%03d.sql", i)
		switch {
		case source.SecretKeyRef != nil:
			sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: source.SecretKeyRef.Name},
				Items:                []corev1.KeyToPath{{Key: source.SecretKeyRef.Key, Path: file}},
			}})
		case source.ConfigMapKeyRef != nil:
			sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: source.ConfigMapKeyRef.Name},
				Items:                []corev1.KeyToPath{{Key: source.ConfigMapKeyRef.Key, Path: file}},
			}})
		}
	}
	return sources
}

func emptyDir(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

func secretVolume(name, secret string, keys ...string) corev1.Volume {
	source := &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](secretMode)}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: source}}
}

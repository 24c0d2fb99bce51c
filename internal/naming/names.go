package naming

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxClusterNameLength is the longest name of a PostgresCluster, in bytes.
//
// The StatefulSet controller labels each pod with the name of the set's
// revision, which is the set's name, a dash and up to ten characters; a label
// value holds 63. So: 63 - len("-primary") - 11 = 44. Every other derived name
// (Services, slots, hostnames) is shorter.
const MaxClusterNameLength = 63 - len(primarySuffix) - 11

// MaxInstances is the largest number of instances of one cluster. Ordinals have
// at most two digits, which keeps the derived names within their limits.
const MaxInstances = 50

const (
	primarySuffix = "-primary"
	replicaInfix  = "-replica-"
)

// HomeInstance is the name of the instance of the StatefulSet: the home of the
// primary, ordinal 0.
func HomeInstance(cluster string) string { return cluster + primarySuffix }

// Instance is the name of the instance with an ordinal: 0 is the home of the
// primary (a StatefulSet), every other one a replica's Deployment.
func Instance(cluster string, ordinal int) string {
	if ordinal == 0 {
		return HomeInstance(cluster)
	}
	return cluster + replicaInfix + strconv.Itoa(ordinal)
}

// Ordinal is the reverse of Instance. It reports false for a name that is not
// one of the cluster's instances.
func Ordinal(cluster, instance string) (int, bool) {
	if instance == HomeInstance(cluster) {
		return 0, true
	}
	digits, found := strings.CutPrefix(instance, cluster+replicaInfix)
	if !found {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

// InstanceHostname is the host name of an instance's pod. Together with
// PodsService it makes a DNS name that outlives the pod.
func InstanceHostname(cluster, instance string) string {
	if instance == HomeInstance(cluster) {
		return instance + "-0" // the StatefulSet controller sets this one itself
	}
	return instance
}

// InstanceHost is the DNS name of an instance's pod, which outlives the pod.
func InstanceHost(cluster, namespace, instance string) string {
	return InstanceHostname(cluster, instance) + "." + ServiceHost(PodsService(cluster), namespace)
}

// DataClaim is the name of the PersistentVolumeClaim of an instance's PGDATA.
func DataClaim(instance string) string { return instance + "-data" }

// PrimaryService is the name of the read-write Service.
func PrimaryService(cluster string) string { return cluster + "-primary" }

// ReplicasService is the name of the read-only Service.
func ReplicasService(cluster string) string { return cluster + "-replicas" }

// PodsService is the name of the headless Service that gives each instance its
// DNS name.
func PodsService(cluster string) string { return cluster + "-pods" }

// PrimaryLease is the name of the Lease whose holder may open for writes.
func PrimaryLease(cluster string) string { return cluster + "-primary" }

// AppSecret holds the application user's credentials.
func AppSecret(cluster string) string { return cluster + "-app" }

// CASecret holds the cluster's certificate authority. It is mounted nowhere.
func CASecret(cluster string) string { return cluster + "-ca" }

// ServerSecret holds the certificate that PostgreSQL and the instance manager
// present.
func ServerSecret(cluster string) string { return cluster + "-server" }

// ReplicationSecret holds the client certificate with which instances replicate
// and ask each other.
func ReplicationSecret(cluster string) string { return cluster + "-replication" }

// InstanceAccount is the name of the ServiceAccount, Role and RoleBinding of
// the instances.
func InstanceAccount(cluster string) string { return cluster + "-instance" }

// DisruptionBudget is the name of the cluster's PodDisruptionBudget.
func DisruptionBudget(cluster string) string { return cluster }

// NetworkPolicy is the name of the cluster's NetworkPolicy.
func NetworkPolicy(cluster string) string { return cluster }

// ServiceHost is the DNS name of a Service as certificates and connection
// strings carry it: without the cluster domain, which differs between clusters.
func ServiceHost(service, namespace string) string {
	return fmt.Sprintf("%s.%s.svc", service, namespace)
}

// ServerDNSNames are the names in the server certificate, wildcard for the
// instances included.
func ServerDNSNames(cluster, namespace string) []string {
	var names []string
	for _, service := range []string{PrimaryService(cluster), ReplicasService(cluster), PodsService(cluster)} {
		names = append(names, service, service+"."+namespace, ServiceHost(service, namespace),
			ServiceHost(service, namespace)+".cluster.local")
	}
	pods := ServiceHost(PodsService(cluster), namespace)
	return append(names, "*."+pods, "*."+pods+".cluster.local", "localhost")
}

// Slot is the name of an instance's physical replication slot on the primary.
// Slot names hold only lower-case letters, digits and underscores.
func Slot(instance string) string { return strings.ReplaceAll(instance, "-", "_") }

// Fenced tells whether the annotations of a cluster fence an instance.
func Fenced(annotations map[string]string, instance string) bool {
	for name := range strings.SplitSeq(annotations[AnnotationFence], ",") {
		if name = strings.TrimSpace(name); name == FenceAll || name == instance {
			return true
		}
	}
	return false
}

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PostgresCluster is a PostgreSQL primary with streaming replicas.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.instances,selectorpath=.status.selector
// +kubebuilder:resource:shortName=pgc,categories=all
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.currentPrimary`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.postgresVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PostgresCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PostgresClusterSpec   `json:"spec,omitempty"`
	Status PostgresClusterStatus `json:"status,omitempty"`
}

// PostgresClusterList is a list of PostgresCluster.
//
// +kubebuilder:object:root=true
type PostgresClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PostgresCluster `json:"items"`
}

// PostgresClusterSpec is what the user wants.
type PostgresClusterSpec struct {
	// The number of PostgreSQL instances in the cluster (1 primary + N-1 replicas).
	Replicas int32 `json:"replicas"`

	// The PostgreSQL version, major and minor (e.g., "15.2").
	PostgresVersion string `json:"postgresVersion"`

	Storage StorageSpec `json:"storage"`

	// Image replaces the image that is found through postgresVersion. It may be
	// any image that holds a PostgreSQL server of the same major.
	Image string `json:"image,omitempty"`

	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Resources of the PostgreSQL container. Memory and CPU decide the defaults of
	// PostgreSQL's own memory and worker settings.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	PostgreSQL PostgreSQLSpec `json:"postgresql,omitempty"`

	Bootstrap BootstrapSpec `json:"bootstrap,omitempty"`

	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
	NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	PriorityClassName         string                            `json:"priorityClassName,omitempty"`

	// PodMetadata is added to the pods' labels and annotations.
	PodMetadata PodMetadata `json:"podMetadata,omitempty"`

	SecurityContext SecurityContextSpec `json:"securityContext,omitempty"`
}

// StorageSpec describes the volume of each instance.
type StorageSpec struct {
	// The size of the persistent volume, e.g., 10Gi.
	Size string `json:"size"`
	// The storage class to use for the persistent volume.
	StorageClassName string `json:"storageClassName"`
}

// PostgreSQLSpec is the configuration of the server.
type PostgreSQLSpec struct {
	// Parameters of postgresql.conf. They win over the defaults that are derived
	// from the pod's memory and CPU.
	Parameters map[string]string `json:"parameters,omitempty"`
	// HBA rules, lines of pg_hba.conf, added before the operator's own.
	HBA []string `json:"hba,omitempty"`
}

// BootstrapSpec says how the first instance gets its data. It is read once, when
// the cluster is created.
type BootstrapSpec struct {
	InitDB InitDBSpec `json:"initdb,omitempty"`
}

// LocaleProvider of initdb.
type LocaleProvider string

// Locale providers.
const (
	LocaleProviderLibc    LocaleProvider = "libc"
	LocaleProviderICU     LocaleProvider = "icu"
	LocaleProviderBuiltin LocaleProvider = "builtin"
)

// InitDBSpec is the new database cluster.
type InitDBSpec struct {
	// Database is the application's database. Default "app".
	Database string `json:"database,omitempty"`
	// Owner is the role that owns it. Default: the database's name.
	Owner string `json:"owner,omitempty"`
	// Encoding of the databases. Default UTF8.
	Encoding string `json:"encoding,omitempty"`
	// LocaleProvider: libc (default), icu (PostgreSQL 15 and later) or builtin (17
	// and later).
	LocaleProvider LocaleProvider `json:"localeProvider,omitempty"`
	// Locale of the provider. Default C (libc), und (icu) or C.UTF-8 (builtin).
	Locale string `json:"locale,omitempty"`
	// DataChecksums protect the pages of tables. Default true.
	DataChecksums *bool `json:"dataChecksums,omitempty"`
	// PostInitSQL are scripts run once by the superuser in the application's
	// database, in order.
	PostInitSQL []SQLSource `json:"postInitSQL,omitempty"`
}

// SQLSource is one key of a Secret or of a ConfigMap: exactly one is set.
type SQLSource struct {
	SecretKeyRef    *KeyReference `json:"secretKeyRef,omitempty"`
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// KeyReference is a key of an object in the cluster's namespace.
type KeyReference struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// PodMetadata is added to pods.
type PodMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SecurityContextSpec overrides parts of the security contexts. What the
// restricted Pod Security standard forbids cannot be set.
type SecurityContextSpec struct {
	// RunAsUser is the user id of PostgreSQL. Default 999, or what the platform
	// assigns (OpenShift).
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is the group id. Default 999, or what the platform assigns.
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// FSGroup owns the volume. Default 999, or what the platform assigns.
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// FSGroupChangePolicy: OnRootMismatch (default) or Always.
	FSGroupChangePolicy *corev1.PodFSGroupChangePolicy `json:"fsGroupChangePolicy,omitempty"`
	SeccompProfile      *corev1.SeccompProfile         `json:"seccompProfile,omitempty"`
	SELinuxOptions      *corev1.SELinuxOptions         `json:"seLinuxOptions,omitempty"`
}

// Phase summarises the conditions in one word.
type Phase string

// Phases.
const (
	PhaseCreating Phase = "Creating"
	PhaseReady    Phase = "Ready"
	PhaseFailed   Phase = "Failed"
)

// PostgresClusterStatus is what the operator sees, and what it assigns to the
// instances.
type PostgresClusterStatus struct {
	// +kubebuilder:validation:Enum=Creating;Ready;Failed
	Phase Phase `json:"phase,omitempty"`
	// PrimaryHost is the IP address of the primary's pod; empty if none serves.
	PrimaryHost string `json:"primaryHost,omitempty"`
	// ReplicaHosts are the IP addresses of the streaming replicas' pods.
	ReplicaHosts []string `json:"replicaHosts,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Instances is the number of instances that exist.
	Instances int32 `json:"instances,omitempty"`
	// ReadyInstances is the number of instances that serve.
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// Ready is readyInstances and the wanted number, as in "2/3".
	Ready string `json:"ready,omitempty"`
	// Selector selects the cluster's pods, for the scale subresource.
	Selector string `json:"selector,omitempty"`

	// InstanceNames are the members, assigned by the operator. The primary keeps a
	// replication slot for each of the others.
	InstanceNames []string `json:"instanceNames,omitempty"`
	// TargetPrimary is the instance that shall be the primary: the operator's
	// assignment to the instances.
	TargetPrimary string `json:"targetPrimary,omitempty"`
	// CurrentPrimary is the instance that is the primary.
	CurrentPrimary string `json:"currentPrimary,omitempty"`
	// SystemIdentifier of the database cluster; empty until it was initialised.
	// Once set, no instance initialises anew.
	SystemIdentifier string `json:"systemIdentifier,omitempty"`
}

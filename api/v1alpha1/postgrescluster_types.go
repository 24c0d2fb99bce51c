package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PostgresCluster is a PostgreSQL primary with streaming replicas.
//
// The rules about the name ask about new objects only: a name cannot change, and
// a rule of the whole object is asked again at each write of the status.
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
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 44",optionalOldSelf=true,message="metadata.name must have at most 44 characters, so that the names of pods and labels fit: choose a shorter one"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must begin with a letter and hold only lower-case letters, digits and dashes, since Services are named after it: choose another"
type PostgresCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what you want. All of replicas, postgresVersion and storage are
	// needed; everything else has a default.
	//
	// +required
	Spec PostgresClusterSpec `json:"spec,omitempty"`
	// Status is what the operator sees. It is the operator's alone to write.
	Status PostgresClusterStatus `json:"status,omitempty,omitzero"`
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
//
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !has(self.bootstrap) || !has(self.bootstrap.initdb) || !has(self.bootstrap.initdb.localeProvider) || self.bootstrap.initdb.localeProvider != 'icu' || int(self.postgresVersion.split('.')[0]) >= 15",optionalOldSelf=true,message="spec.bootstrap.initdb.localeProvider: icu needs PostgreSQL 15 or later: choose libc, or a later postgresVersion"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !has(self.bootstrap) || !has(self.bootstrap.initdb) || !has(self.bootstrap.initdb.localeProvider) || self.bootstrap.initdb.localeProvider != 'builtin' || int(self.postgresVersion.split('.')[0]) >= 17",optionalOldSelf=true,message="spec.bootstrap.initdb.localeProvider: builtin needs PostgreSQL 17 or later: choose libc, or a later postgresVersion"
// +kubebuilder:validation:XValidation:rule="!has(self.replication) || !has(self.replication.synchronous) || !has(self.replication.synchronous.number) || self.replication.synchronous.number < self.replicas",message="spec.replication.synchronous.number must be less than spec.replicas, since the primary does not wait for itself: lower it, or raise spec.replicas"
type PostgresClusterSpec struct {
	parameterMajors `json:",inline"`

	// The number of PostgreSQL instances in the cluster (1 primary + N-1 replicas).
	// More are cloned, fewer removed from the highest number down; the primary
	// stays. No instance is restarted.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Replicas int32 `json:"replicas"`

	// The PostgreSQL version, major and minor (e.g., "15.2"), in quotes: without
	// them YAML reads a number. Majors 13 to 18. A minor can be changed both ways:
	// instances are restarted, one at a time. The major is fixed.
	//
	// +kubebuilder:validation:Pattern=`^1[3-8]\.[0-9]+$`
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="!self.matches('[.]0[0-9]')",message="spec.postgresVersion: the minor has no leading zero: remove it"
	// +kubebuilder:validation:XValidation:rule="self.split('.')[0] == oldSelf.split('.')[0]",message="spec.postgresVersion: the major cannot be changed in place: create a cluster of the new major and move the data, or take the change back"
	PostgresVersion string `json:"postgresVersion"`

	// Storage of each instance: every one has a volume of its own.
	Storage StorageSpec `json:"storage"`

	// Image replaces the image that is found through postgresVersion. It may be
	// any image that holds a PostgreSQL server of the same major. A change restarts
	// the instances, one at a time.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9./_:@-]*$`
	Image string `json:"image,omitempty"`

	// ImagePullPolicy of the PostgreSQL image: Always, IfNotPresent or Never.
	// Default: Kubernetes' own. A change restarts the instances, one at a time.
	//
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are Secrets of this namespace with access to the registry.
	// Default: none. A change restarts the instances, one at a time.
	//
	// +kubebuilder:validation:MaxItems=20
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Resources of the PostgreSQL container. Memory and CPU (limits, else requests)
	// decide the defaults of PostgreSQL's own memory and worker settings. Default:
	// none, and modest settings. A change restarts the instances, one at a time.
	//
	// +kubebuilder:validation:XValidation:rule="['cpu','memory','ephemeral-storage'].all(k, !has(self.requests) || !(k in self.requests) || !has(self.limits) || !(k in self.limits) || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",message="spec.resources: a request is above its limit: lower the request or raise the limit"
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="spec.resources.claims: instances have no device claims: remove it"
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	// PostgreSQL is the configuration of the server.
	PostgreSQL PostgreSQLSpec `json:"postgresql,omitempty,omitzero"`

	// Bootstrap says how the database is made. It is read once, when the cluster is
	// created, and is fixed then.
	//
	// +kubebuilder:default={}
	Bootstrap BootstrapSpec `json:"bootstrap,omitempty,omitzero"`

	// Failover says how the cluster gets another primary.
	//
	// +kubebuilder:default={}
	Failover FailoverSpec `json:"failover,omitempty,omitzero"`

	// Replication says what a commit waits for. Default: for no replica.
	Replication ReplicationSpec `json:"replication,omitempty,omitzero"`

	// Update says how instances are restarted when something needs that.
	//
	// +kubebuilder:default={}
	Update UpdateSpec `json:"update,omitempty,omitzero"`

	// MaintenanceWindow is when restarts, and switchovers that nobody asked for, may
	// begin. What cannot wait does not: failovers, repairs, instances that do not serve.
	// The annotation db.my-domain.com/apply-now lets what waits through once. Default:
	// none, nothing waits.
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty"`

	// SingleInstanceEviction says whether the pod of a cluster of one instance may be
	// evicted: Allowed (default), draining its node ends, and the database is away until
	// the pod runs elsewhere; or Refused, every drain of its node waits until this is
	// changed or there is a second instance. A change takes effect at once.
	//
	// +kubebuilder:default=Allowed
	// +kubebuilder:validation:Enum=Allowed;Refused
	SingleInstanceEviction EvictionPolicy `json:"singleInstanceEviction,omitempty"`

	// Affinity of the pods, as in a pod's spec. Unless it has a podAntiAffinity, the instances prefer
	// different nodes. A change restarts the instances, one at a time.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Tolerations of the pods. Default: none. A change restarts the instances, one
	// at a time.
	//
	// +kubebuilder:validation:MaxItems=50
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// NodeSelector of the pods: labels that a node must have. Default: none. A
	// change restarts the instances, one at a time.
	//
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="spec.nodeSelector holds a key that is no key of a label: correct it"
	NodeSelector LabelMap `json:"nodeSelector,omitempty"`
	// TopologySpreadConstraints of the pods; one without a labelSelector means this
	// cluster's pods. Default: none. A change restarts the instances, one at a time.
	//
	// +kubebuilder:validation:MaxItems=20
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// PriorityClassName of the pods; the class has to exist. Default: the cluster's
	// own. A change restarts the instances, one at a time.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// PodMetadata is added to the pods' labels and annotations. A change restarts
	// the instances, one at a time.
	PodMetadata PodMetadata `json:"podMetadata,omitempty,omitzero"`

	// SecurityContext overrides parts of the pods' security context. A change
	// restarts the instances, one at a time.
	SecurityContext SecurityContextSpec `json:"securityContext,omitempty,omitzero"`
}

// StorageSpec describes the volume of each instance.
type StorageSpec struct {
	// The size of the persistent volume of each instance, e.g., 10Gi, in bytes or
	// with a unit; from 256Mi to 64Ti. It can grow, while PostgreSQL runs if the
	// storage class allows, and never shrinks.
	//
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*([EPTGMK]i|[EPTGMk])?$`
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('256Mi')) >= 0 && quantity(self).compareTo(quantity('64Ti')) <= 0",message="spec.storage.size must be 256Mi to 64Ti: choose a size between them"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(self) || !isQuantity(oldSelf) || quantity(self).compareTo(quantity(oldSelf)) >= 0",message="spec.storage.size cannot shrink: no volume can; take the change back"
	Size string `json:"size"`
	// The storage class to use for the persistent volume. It is fixed when the
	// cluster is created. "" means a volume that was made by hand.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.storage.storageClassName is fixed when the cluster is created: take the change back"
	StorageClassName string `json:"storageClassName"`
	// AccessMode of the volumes: ReadWriteOnce (default), or ReadWriteOncePod where
	// the class's driver has it, so that Kubernetes too lets one pod at a time use a
	// volume. The instance's own lock on the volume does so in any case. It is fixed
	// when the cluster is created.
	//
	// +kubebuilder:default=ReadWriteOnce
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.storage.accessMode is fixed when the cluster is created: take the change back"
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
}

// PostgreSQLSpec is the configuration of the server.
type PostgreSQLSpec struct {
	// Parameters of postgresql.conf. They win over the defaults that are derived
	// from the pod's memory and CPU. Most are reloaded; some restart PostgreSQL, one
	// instance at a time, as spec.update and spec.maintenanceWindow say. Names are lower-case;
	// those with a dot belong to extensions.
	Parameters Parameters `json:"parameters,omitempty"`
	// HBA rules, lines of pg_hba.conf, added before the operator's own rule for
	// everybody (scram-sha-256 over TLS). Replication keeps its place before them.
	// Default: none. A change is reloaded.
	//
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1000
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.matches('^(local([ \\t]+([^ \\t\\n\\r\"#]|\"[^\"\\n\\r]*\")+){2}|(host|hostssl|hostnossl|hostgssenc|hostnogssenc)([ \\t]+([^ \\t\\n\\r\"#]|\"[^\"\\n\\r]*\")+){3}([ \\t]+[0-9a-fA-F.:]+)?)[ \\t]+(trust|reject|md5|password|scram-sha-256|peer|ident|cert|gss|pam|ldap|radius|oauth)([ \\t]+([^ \\t\\n\\r\"#=]|\"[^\"\\n\\r]*\")*=([^ \\t\\n\\r\"#]|\"[^\"\\n\\r]*\")*)*[ \\t]*$'))",message="spec.postgresql.hba: a rule is one line of type, database, user, address (not for local), method and options (name=value), without a comment: correct it"
	HBA []string `json:"hba,omitempty"`
}

// ParameterValue is the value of a parameter: one line.
//
// +kubebuilder:validation:MaxLength=1000
// +kubebuilder:validation:Pattern=`^[^\n\r\x00]*$`
type ParameterValue string

// ParameterStrings are the parameters as plain strings.
func (s PostgreSQLSpec) ParameterStrings() map[string]string {
	values := make(map[string]string, len(s.Parameters))
	for name, value := range s.Parameters {
		values[name] = string(value)
	}
	return values
}

// BootstrapSpec says how the first instance gets its data. It is read once, when
// the cluster is created.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.bootstrap is read once, when the cluster is created, and cannot be changed: take the change back"
type BootstrapSpec struct {
	// InitDB makes a new, empty database cluster with one database for the
	// application.
	//
	// +kubebuilder:default={}
	InitDB InitDBSpec `json:"initdb,omitempty,omitzero"`
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
//
// +kubebuilder:validation:XValidation:rule="(!has(self.database) || bytes(self.database).size() <= 63) && (!has(self.owner) || bytes(self.owner).size() <= 63)",message="spec.bootstrap.initdb: database and owner have at most 63 bytes each: shorten them"
// +kubebuilder:validation:XValidation:rule="!has(self.database) || !(self.database in ['postgres','template0','template1'])",message="spec.bootstrap.initdb.database: PostgreSQL has made postgres, template0 and template1 for itself: choose another"
// +kubebuilder:validation:XValidation:rule="!((has(self.owner) ? self.owner : has(self.database) ? self.database : 'app') in ['postgres','streaming_replica','public','none']) && !(has(self.owner) ? self.owner : has(self.database) ? self.database : 'app').startsWith('pg_')",message="spec.bootstrap.initdb.owner (if absent, the database's name) cannot be postgres, streaming_replica, public, none or pg_...: PostgreSQL and the operator have taken them; choose another"
type InitDBSpec struct {
	// Database is the application's database. Default "app".
	//
	// +kubebuilder:default=app
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]*$`
	Database string `json:"database,omitempty"`
	// Owner is the role that owns it, and the user in the Secret <name>-app.
	// Default: the database's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]*$`
	Owner string `json:"owner,omitempty"`
	// Encoding of the databases. Default UTF8.
	//
	// +kubebuilder:default=UTF8
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Encoding string `json:"encoding,omitempty"`
	// LocaleProvider: libc (default), icu (PostgreSQL 15 and later) or builtin (17
	// and later).
	//
	// +kubebuilder:default=libc
	// +kubebuilder:validation:Enum=libc;icu;builtin
	LocaleProvider LocaleProvider `json:"localeProvider,omitempty"`
	// Locale of the provider. Default C (libc), und (icu) or C.UTF-8 (builtin).
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.@=-]+$`
	Locale string `json:"locale,omitempty"`
	// DataChecksums let PostgreSQL notice pages that the storage has spoilt. Default
	// true.
	//
	// +kubebuilder:default=true
	DataChecksums *bool `json:"dataChecksums,omitempty"`
	// PostInitSQL are scripts run once by the superuser in the application's
	// database, in order.
	//
	// +kubebuilder:validation:MaxItems=50
	PostInitSQL []SQLSource `json:"postInitSQL,omitempty"`
}

// Names are the names of the application's database and of its owner, defaults
// filled in for objects that were stored without them.
func (s InitDBSpec) Names() (database, owner string) {
	database = s.Database
	if database == "" {
		database = "app"
	}
	owner = s.Owner
	if owner == "" {
		owner = database
	}
	return database, owner
}

// SQLSource is one key of a Secret or of a ConfigMap: exactly one is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type SQLSource struct {
	// SecretKeyRef is a key of a Secret.
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef is a key of a ConfigMap.
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// KeyReference is a key of an object in the cluster's namespace.
type KeyReference struct {
	// Name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// LabelMap are labels, each with a value that a label can have.
type LabelMap map[string]LabelValue

// Strings are the labels as plain strings; nil if there are none.
func (m LabelMap) Strings() map[string]string {
	if len(m) == 0 {
		return nil
	}
	labels := make(map[string]string, len(m))
	for key, value := range m {
		labels[key] = string(value)
	}
	return labels
}

// PodMetadata is added to pods.
type PodMetadata struct {
	// Labels of the pods, beside the operator's own. Default: none. A change
	// restarts the instances, one at a time.
	//
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="spec.podMetadata.labels holds a key that is no key of a label: correct it"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['app','cluster','app.kubernetes.io/managed-by','app.kubernetes.io/name']) && !k.startsWith('db.my-domain.com/'))",message="spec.podMetadata.labels holds a label of the operator's own (app, cluster, app.kubernetes.io/managed-by, app.kubernetes.io/name, db.my-domain.com/...): use another"
	Labels LabelMap `json:"labels,omitempty"`
	// Annotations of the pods. Default: none. A change restarts the instances, one
	// at a time.
	//
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="spec.podMetadata.annotations holds a key that is no key of an annotation: correct it"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('db.my-domain.com/'))",message="spec.podMetadata.annotations: keys of db.my-domain.com/ are the operator's own: use others"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SecurityContextSpec overrides parts of the security contexts. What the
// restricted Pod Security standard forbids cannot be set.
type SecurityContextSpec struct {
	// RunAsUser is the user id of PostgreSQL. Default 999, or what the platform
	// assigns (OpenShift).
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is the group id. Default 999, or what the platform assigns.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// FSGroup owns the volume. Default 999, or what the platform assigns.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// FSGroupChangePolicy says when the files of the volume are given to fsGroup:
	// OnRootMismatch (default), or Always, which takes minutes on a large volume.
	//
	// +kubebuilder:validation:Enum=OnRootMismatch;Always
	FSGroupChangePolicy *corev1.PodFSGroupChangePolicy `json:"fsGroupChangePolicy,omitempty"`
	// SeccompProfile of the pods. Default RuntimeDefault. Unconfined is refused, as
	// the restricted standard does.
	//
	// +kubebuilder:validation:XValidation:rule="self.type in ['RuntimeDefault','Localhost'] && (self.type == 'Localhost') == has(self.localhostProfile)",message="spec.securityContext.seccompProfile: the type is RuntimeDefault, or Localhost with a localhostProfile: choose one"
	SeccompProfile *corev1.SeccompProfile `json:"seccompProfile,omitempty"`
	// SELinuxOptions of the pods. Default: the platform's own.
	SELinuxOptions *corev1.SELinuxOptions `json:"seLinuxOptions,omitempty"`
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
	// Phase sums the conditions up in a word: Creating, Ready or Failed.
	//
	// +kubebuilder:validation:Enum=Creating;Ready;Failed
	Phase Phase `json:"phase,omitempty"`
	// PrimaryHost is the IP address of the primary's pod; empty if none serves.
	PrimaryHost string `json:"primaryHost,omitempty"`
	// ReplicaHosts are the IP addresses of the streaming replicas' pods.
	ReplicaHosts []string `json:"replicaHosts,omitempty"`
	// Conditions are Ready (the summary), Available, Progressing and Degraded, each
	// with a reason, and a message that says what is awaited.
	//
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
	// Timeline of the primary, as it was last seen. Only an instance on it can become
	// the primary.
	Timeline int64 `json:"timeline,omitempty"`
	// PrimaryChange is the failover or switchover that is under way.
	PrimaryChange *PrimaryChange `json:"primaryChange,omitempty"`
	// LastPrimaryChange is the last one that ended.
	LastPrimaryChange *PrimaryChange `json:"lastPrimaryChange,omitempty"`
	// Rejoining is the instance that may rewind or copy its data anew at present: one
	// at a time.
	Rejoining string `json:"rejoining,omitempty"`
	// Restarting is the restart that is under way: one at a time.
	Restarting *RestartStatus `json:"restarting,omitempty"`
	// PendingChange is what the difference between the spec and the world will do;
	// absent if there is none.
	PendingChange *PendingChange `json:"pendingChange,omitempty"`
	// Synchronous is what commits wait for; absent without synchronous replication.
	Synchronous *SynchronousStatus `json:"synchronous,omitempty"`
}

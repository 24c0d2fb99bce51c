package naming

// Labels of the objects of a cluster.
const (
	// LabelCluster names the cluster. Volumes are found by it on deletion.
	LabelCluster = "cluster"
	// LabelApp is the workload's name on its pods.
	LabelApp = "app"
	// LabelInstance names the instance that a workload, pod or volume belongs to.
	LabelInstance = "db.my-domain.com/instance"
	// LabelRole is the present role of a pod; the Services select by it. The
	// operator sets it on running pods, never in a template.
	LabelRole = "db.my-domain.com/role"
	// LabelManagedBy with ManagedBy is on every object of ours; caches hold
	// nothing else.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelName      = "app.kubernetes.io/name"

	ManagedBy = "postgres-operator"
	// AppName is the value of LabelName.
	AppName = "postgresql"
)

// FenceAll is the value of AnnotationFence for every instance.
const FenceAll = "all"

// Values of LabelRole.
const (
	RolePrimary = "primary"
	RoleReplica = "replica"
)

// Annotations.
const (
	// AnnotationAppliedHash is the hash of what the operator applied last.
	AnnotationAppliedHash = "db.my-domain.com/applied-hash"
	// AnnotationTemplateHash, on a workload, is the hash of its pod template as it
	// was applied: another one means a restart.
	AnnotationTemplateHash = "db.my-domain.com/template-hash"
	// AnnotationSwitchover on a cluster asks for a switchover to the instance that
	// is its value, or to the best one if it is empty. The operator removes it when
	// it has taken the request up.
	AnnotationSwitchover = "db.my-domain.com/switchover"
	// AnnotationApplyNow on a cluster lets through, once, what waits for the maintenance
	// window. The operator removes it when nothing is left that waits.
	AnnotationApplyNow = "db.my-domain.com/apply-now"
	// AnnotationFence on a cluster fences instances: "all", or names with commas
	// between. PostgreSQL is stopped on them, the pods stay.
	AnnotationFence = "db.my-domain.com/fence"
	// AnnotationFinalLSN on a Lease is where the WAL of the primary that released it
	// ends: nobody is promoted under that release without it.
	AnnotationFinalLSN = "db.my-domain.com/final-lsn"
)

const (
	// Finalizer keeps a deleted cluster until its volumes are dealt with.
	Finalizer = "db.my-domain.com/finalizer"
	// FieldOwner is the operator's one field manager in server-side apply.
	FieldOwner = "postgres-operator"
)

// Ports of an instance's pod.
const (
	PortPostgres = 5432
	// PortHealth serves /livez, /readyz and /startupz to the kubelet, in plain.
	PortHealth = 8080
	// PortControl serves reports to operator and peers over mutual TLS.
	PortControl = 8443
	// PortMetrics serves /metrics to Prometheus.
	PortMetrics = 9187

	PortNamePostgres = "postgres"
	PortNameHealth   = "health"
	PortNameControl  = "control"
	PortNameMetrics  = "metrics"
)

// ContainerPostgres is the container whose process 1 is the instance manager;
// ContainerInstall the init container that copies the program in.
const (
	ContainerPostgres = "postgres"
	ContainerInstall  = "install"
)

// Paths in an instance's pod.
const (
	// DirController is an emptyDir with the program, the passwd file and what the
	// instance manager writes at run time.
	DirController = "/controller"
	// FileManager is the program, copied by the init container.
	FileManager = DirController + "/postgres-operator"
	// FilePasswd is mounted over /etc/passwd (sub-path SubPathPasswd), so that any user id has an entry.
	FilePasswd    = DirController + "/passwd"
	SubPathPasswd = "passwd"
	// DirTLS holds private copies of the certificates with the modes that
	// PostgreSQL and libpq want.
	DirTLS = DirController + "/tls"

	// DirVolume is where the instance's volume is mounted.
	DirVolume = "/pgdata"
	// DirData is PGDATA. The volume's root is not used itself: it may hold
	// lost+found and has a mode that PostgreSQL refuses.
	DirData = DirVolume + "/data"
	// FileVolumeLock is locked for as long as anything of PostgreSQL may run on
	// the volume.
	FileVolumeLock = DirVolume + "/instance.lock"

	// DirSocket is the emptyDir of PostgreSQL's Unix socket, where psql looks.
	DirSocket = "/var/run/postgresql"
	// DirServerSecret and DirReplicationSecret are the mounted Secrets.
	DirServerSecret      = "/certificates/server"
	DirReplicationSecret = "/certificates/replication"
	// DirAppSecret is the mounted Secret of the application user; only the
	// password in it is read, when the cluster is initialised.
	DirAppSecret = "/credentials/app"
	// DirPostInit holds the mounted post-init SQL, if the spec names any.
	DirPostInit = "/bootstrap/post-init"
)

// Keys of the Secrets.
const (
	KeyTLSCert  = "tls.crt"
	KeyTLSKey   = "tls.key"
	KeyCACert   = "ca.crt"
	KeyUsername = "username"
	KeyPassword = "password"
)

// Environment of the containers of an instance's pod.
const (
	EnvCluster   = "CLUSTER_NAME"
	EnvNamespace = "POD_NAMESPACE"
	EnvInstance  = "INSTANCE_NAME"
	EnvPodName   = "POD_NAME"
	EnvPodUID    = "POD_UID"
	EnvPodIP     = "POD_IP"
	// EnvMemoryBytes and EnvCPUMillis are the container's limits (else requests);
	// absent if the spec sets neither.
	EnvMemoryBytes = "POSTGRES_MEMORY_BYTES"
	EnvCPUMillis   = "POSTGRES_CPU_MILLIS"
)

// Environment of the operator.
const (
	// EnvRelatedImagePrefix with major and minor ("RELATED_IMAGE_POSTGRES_15_20")
	// names the image of a PostgreSQL version.
	EnvRelatedImagePrefix = "RELATED_IMAGE_POSTGRES_"
)

// Names inside PostgreSQL and of certificates.
const (
	// UserReplication is the role, and the common name of the certificate, of the
	// replicas.
	UserReplication = "streaming_replica"
	// UserSuperuser owns the database cluster; it connects through the socket.
	UserSuperuser = "postgres"
	// OperatorCommonName is the common name in the operator's client certificate.
	OperatorCommonName = "postgres-operator"
	// ServerCommonName is the common name in the server certificate.
	ServerCommonName = "postgresql"
)

package v1alpha1

// Condition types of a PostgresCluster.
const (
	// ConditionReady is the summary: everything is as the spec says, and serves.
	ConditionReady = "Ready"
	// ConditionAvailable: the primary accepts connections through its Service.
	ConditionAvailable = "Available"
	// ConditionProgressing: the operator is on its way to what the spec says.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: something is wrong that does not pass by itself.
	ConditionDegraded = "Degraded"
	// ConditionSynchronous: every commit is acknowledged by as many replicas as
	// spec.replication.synchronous asks for. Absent if it does not ask.
	ConditionSynchronous = "Synchronous"
)

// Reasons of conditions.
const (
	// ReasonReady: all instances run and stream.
	ReasonReady = "Ready"
	// ReasonPrimaryServing: the primary accepts connections.
	ReasonPrimaryServing = "PrimaryServing"
	// ReasonPrimaryNotServing: no primary accepts connections.
	ReasonPrimaryNotServing = "PrimaryNotServing"
	// ReasonSettled: nothing is left to do.
	ReasonSettled = "Settled"
	// ReasonHealthy: nothing is wrong.
	ReasonHealthy = "Healthy"

	// ReasonInitializing: the first instance is being initialised.
	ReasonInitializing = "Initializing"
	// ReasonCloning: replicas are being cloned.
	ReasonCloning = "Cloning"
	// ReasonStartingInstances: pods are on their way.
	ReasonStartingInstances = "StartingInstances"
	// ReasonScalingDown: instances are being removed.
	ReasonScalingDown = "ScalingDown"
	// ReasonRollingOut: instances are being restarted, one at a time.
	ReasonRollingOut = "RollingOut"
	// ReasonApplyingConfiguration: a changed configuration is being loaded.
	ReasonApplyingConfiguration = "ApplyingConfiguration"
	// ReasonRestartPending: parameters wait for a restart of PostgreSQL.
	ReasonRestartPending = "RestartPending"
	// ReasonFailingOver: the primary is lost, and a replica takes its place.
	ReasonFailingOver = "FailingOver"
	// ReasonSwitchingOver: another instance becomes the primary, as planned.
	ReasonSwitchingOver = "SwitchingOver"
	// ReasonRejoining: an instance makes its data follow the primary again.
	ReasonRejoining = "Rejoining"
	// ReasonFenced: instances are stopped because the cluster is annotated so.
	ReasonFenced = "Fenced"
	// ReasonDeleting: the cluster is being deleted.
	ReasonDeleting = "Deleting"

	// ReasonNoCandidate: the primary is lost, and no replica may take its place.
	ReasonNoCandidate = "NoCandidate"
	// ReasonTooFewReplicas: commits wait, or are acknowledged by fewer replicas than
	// asked for.
	ReasonTooFewReplicas = "TooFewReplicas"
	// ReasonSynchronous: commits are acknowledged by as many replicas as asked for.
	ReasonSynchronous = "Synchronous"

	// ReasonInvalidSpec: the stored object cannot be carried out.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonImageUnavailable: no image is known for the version, or it cannot be pulled.
	ReasonImageUnavailable = "ImageUnavailable"
	// ReasonUnschedulable: a pod finds no node.
	ReasonUnschedulable = "Unschedulable"
	// ReasonCrashLooping: a container ends again and again.
	ReasonCrashLooping = "CrashLooping"
	// ReasonInstanceUnreachable: an instance does not answer.
	ReasonInstanceUnreachable = "InstanceUnreachable"
	// ReasonNotOurs: an object of a needed name belongs to someone else.
	ReasonNotOurs = "NotOurs"
	// ReasonTerminating: an object of a needed name is still being deleted.
	ReasonTerminating = "Terminating"
	// ReasonApplyFailed: the API server refused an object.
	ReasonApplyFailed = "ApplyFailed"
)

package protocol

import "time"

// Version of the protocol. It is raised when a field changes its meaning; new
// optional fields do not raise it. Operator and instance manager of neighbouring
// releases work together.
const Version = 1

// PathStatus serves the Report. With "?after=<revision>&wait=<duration>" the
// answer is held back until the report's revision differs from the given one,
// or the duration is over.
const PathStatus = "/v1/status"

// State is what the instance manager is doing.
type State string

// States of an instance.
const (
	// StateStarting: the manager runs and has not decided anything yet.
	StateStarting State = "Starting"
	// StateWaitingForVolume: another process holds the volume's lock.
	StateWaitingForVolume State = "WaitingForVolume"
	// StateWaitingForAssignment: neither primary nor replica is assigned yet, or
	// the API server could not be asked.
	StateWaitingForAssignment State = "WaitingForAssignment"
	// StateInitializing: initdb and what belongs to it.
	StateInitializing State = "Initializing"
	// StateWaitingForPrimary: nothing to clone from, or to follow, yet.
	StateWaitingForPrimary State = "WaitingForPrimary"
	// StateCloning: pg_basebackup is running.
	StateCloning State = "Cloning"
	// StateRecovering: postgres was started and does not accept connections yet.
	StateRecovering State = "Recovering"
	// StateRunning: postgres accepts connections.
	StateRunning State = "Running"
	// StateWaitingToRejoin: the data cannot follow the primary, and the operator has
	// not let this instance rebuild it yet. Rejoin says what is needed.
	StateWaitingToRejoin State = "WaitingToRejoin"
	// StateRejoining: pg_rewind, or a new copy in the place of the old one.
	StateRejoining State = "Rejoining"
	// StatePromoting: this replica is to be the primary, and waits for the right to
	// or is being promoted.
	StatePromoting State = "Promoting"
	// StateFenced: PostgreSQL was stopped on request.
	StateFenced State = "Fenced"
	// StateStopping: the manager was told to end.
	StateStopping State = "Stopping"
	// StateBlocked: a person must act; Problem says why.
	StateBlocked State = "Blocked"
)

// Role of an instance, as PostgreSQL itself answers.
type Role string

// Roles. An instance that does not run has none.
const (
	RoleNone    Role = ""
	RolePrimary Role = "primary"
	RoleReplica Role = "replica"
)

// ProblemReason says why an instance is not what it should be.
type ProblemReason string

// Problems that an instance reports.
const (
	// ProblemForeignData: the volume holds a data directory that is not this
	// cluster's. It is never touched.
	ProblemForeignData ProblemReason = "ForeignData"
	// ProblemWrongVersion: the image's server has another major than the spec, or
	// than the data directory.
	ProblemWrongVersion ProblemReason = "WrongVersion"
	// ProblemNoBinaries: no PostgreSQL was found in the image.
	ProblemNoBinaries ProblemReason = "NoBinaries"
	// ProblemInitFailed: initdb or the SQL after it failed.
	ProblemInitFailed ProblemReason = "InitFailed"
	// ProblemCloneFailed: pg_basebackup failed; it is tried again.
	ProblemCloneFailed ProblemReason = "CloneFailed"
	// ProblemDataMissing: this instance is the primary of a cluster that has been
	// initialised, and its volume is empty.
	ProblemDataMissing ProblemReason = "DataMissing"
	// ProblemCrashing: postgres ends again and again; it is tried again.
	ProblemCrashing ProblemReason = "Crashing"
	// ProblemDiskFull: the volume has no room left.
	ProblemDiskFull ProblemReason = "DiskFull"
	// ProblemRejoinFailed: the data could not be made to follow the primary; it is
	// tried again, ever more rarely.
	ProblemRejoinFailed ProblemReason = "RejoinFailed"
	// ProblemIsolated: the primary could not keep its Lease and stopped PostgreSQL.
	ProblemIsolated ProblemReason = "Isolated"
	// ProblemConfigRefused: PostgreSQL refused the configuration; the old one is
	// in force.
	ProblemConfigRefused ProblemReason = "ConfigRefused"
)

// Problem is a fault with PostgreSQL's own words where there are any. Never a
// secret.
type Problem struct {
	Reason  ProblemReason `json:"reason"`
	Message string        `json:"message"`
}

// Report is the state of one instance at one moment.
type Report struct {
	ProtocolVersion int    `json:"protocolVersion"`
	ManagerVersion  string `json:"managerVersion"`
	Instance        string `json:"instance"`
	PodUID          string `json:"podUID"`

	// Revision changes whenever anything but Time, positions and disk numbers
	// changes. It is unique to one life of the manager.
	Revision string    `json:"revision"`
	Time     time.Time `json:"time"`

	State   State    `json:"state"`
	Problem *Problem `json:"problem,omitempty"`
	Role    Role     `json:"role,omitempty"`
	// Ready is what /readyz answers.
	Ready bool `json:"ready"`

	// ServerVersion is the version of the image's binaries, such as "15.20".
	ServerVersion string `json:"serverVersion,omitempty"`
	// SystemIdentifier of the data directory; empty if there is none.
	SystemIdentifier string `json:"systemIdentifier,omitempty"`
	// Timeline of the data directory; 0 if unknown.
	Timeline uint32 `json:"timeline,omitempty"`

	// WrittenLSN is the primary's insert position; ReceivedLSN (flushed by the
	// WAL receiver, or replayed if that is further) and ReplayedLSN are a
	// replica's. In PostgreSQL's text form, empty if unknown.
	WrittenLSN  string `json:"writtenLSN,omitempty"`
	ReceivedLSN string `json:"receivedLSN,omitempty"`
	ReplayedLSN string `json:"replayedLSN,omitempty"`
	// Streaming: the WAL receiver is connected to the primary.
	Streaming bool `json:"streaming,omitempty"`
	// Replicas are the connections of pg_stat_replication on a primary.
	Replicas []ReplicaConnection `json:"replicas,omitempty"`

	// ConfigGeneration is the generation of the PostgresCluster whose
	// configuration is in force (rendered and loaded).
	ConfigGeneration int64 `json:"configGeneration,omitempty"`
	// PendingRestart names the parameters that wait for a restart of postgres.
	PendingRestart []string `json:"pendingRestart,omitempty"`

	// HeldParameters names those that a replica keeps as high as the primary has them,
	// although the spec lowers them: it cannot follow with less. As the primary it would
	// have to restart for them.
	HeldParameters []string `json:"heldParameters,omitempty"`

	// StreamCut is the number of the change of the primary for which this replica
	// has stopped receiving WAL, so that ReceivedLSN stays; 0 if it receives.
	StreamCut int64 `json:"streamCut,omitempty"`
	// Refusal of a promotion; nil if there was none. It stays until another change of
	// the primary.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Rejoin is what has to be done to the data, in StateWaitingToRejoin and
	// StateRejoining.
	Rejoin *Rejoin `json:"rejoin,omitempty"`
	// SynchronousNames is synchronous_standby_names as a primary has it in force.
	SynchronousNames string `json:"synchronousNames,omitempty"`

	// Disk of the volume, in bytes; zero if unknown.
	Disk Disk `json:"disk"`
}

// RejoinMethod is how data is made to follow the primary.
type RejoinMethod string

// Methods to rejoin.
const (
	// RejoinRewind: pg_rewind takes back what the primary does not have.
	RejoinRewind RejoinMethod = "Rewind"
	// RejoinClone: a new copy of the primary replaces the data.
	RejoinClone RejoinMethod = "Clone"
)

// Rejoin says what has to be done to data that cannot follow the primary.
type Rejoin struct {
	Method RejoinMethod `json:"method"`
	// Message says why.
	Message string `json:"message"`
	// Lost is what this data has that the primary's lacks; nil if that is not known.
	Lost *Lost `json:"lost,omitempty"`
	// Attempts that failed so far.
	Attempts int `json:"attempts,omitempty"`
	// Paused: the last attempt failed, and the next is not due yet.
	Paused bool `json:"paused,omitempty"`
}

// Lost is the WAL of a former primary that its successor never received.
type Lost struct {
	// Bytes of WAL records.
	Bytes int64 `json:"bytes"`
	// Commits among them: transactions that clients may have seen acknowledged.
	Commits int64 `json:"commits"`
}

// Refusal says why an instance was not promoted.
type Refusal struct {
	// Change is the number of the change of the primary that was refused.
	Change  int64  `json:"change"`
	Message string `json:"message"`
}

// ReplicaConnection is one WAL sender of a primary.
type ReplicaConnection struct {
	// Instance is the application_name.
	Instance string `json:"instance"`
	// State as in pg_stat_replication: startup, catchup, streaming, backup.
	State    string `json:"state"`
	FlushLSN string `json:"flushLSN,omitempty"`
}

// Disk is the size of a file system, in bytes.
type Disk struct {
	TotalBytes     int64 `json:"totalBytes,omitempty"`
	AvailableBytes int64 `json:"availableBytes,omitempty"`
}

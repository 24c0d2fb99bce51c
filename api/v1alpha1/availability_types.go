package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailoverSpec says how the cluster gets another primary. A change takes effect at
// once; nothing is restarted.
//
// +kubebuilder:validation:XValidation:rule="(has(self.leaseDurationSeconds) ? self.leaseDurationSeconds : 10) >= 3 * (has(self.renewIntervalSeconds) ? self.renewIntervalSeconds : 3)",message="spec.failover.leaseDurationSeconds must be at least three times renewIntervalSeconds, so that two lost renewals stop no database: raise the one or lower the other"
type FailoverSpec struct {
	// LeaseDurationSeconds is how long a primary keeps the right to be written to
	// after it was last renewed. A primary that cannot renew stops PostgreSQL before
	// it is over, and a lost node costs about as much. Default 10.
	//
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=6
	// +kubebuilder:validation:Maximum=300
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
	// RenewIntervalSeconds is how often the primary renews that right: one write to
	// the API server each. Default 3.
	//
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	RenewIntervalSeconds int32 `json:"renewIntervalSeconds,omitempty"`
	// PrimaryDownSeconds is how long PostgreSQL of the primary may be down, for
	// instance in crash recovery, while its instance manager is alive, before a
	// replica takes over. A crash that is over sooner loses nothing, a failover
	// without synchronous replication may. Default 30.
	//
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=86400
	PrimaryDownSeconds int32 `json:"primaryDownSeconds,omitempty"`
	// Priority names instances that are preferred as the new primary, best first,
	// among those that have received the same. Instances that are not named come
	// last. Default: none is preferred.
	//
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Priority []string `json:"priority,omitempty"`
	// Failback says whether the primary goes back to its home, the StatefulSet
	// <name>-primary, after a failover: Manual (by a switchover that is asked for;
	// the default) or Automatic (by a planned switchover, once the home instance
	// streams without lag).
	//
	// +kubebuilder:default=Manual
	// +kubebuilder:validation:Enum=Manual;Automatic
	Failback FailbackPolicy `json:"failback,omitempty"`
}

// FailbackPolicy says whether the primary returns to its home by itself.
type FailbackPolicy string

// Failback policies.
const (
	FailbackManual    FailbackPolicy = "Manual"
	FailbackAutomatic FailbackPolicy = "Automatic"
)

// EvictionPolicy says whether a pod may be evicted.
type EvictionPolicy string

// Eviction policies.
const (
	EvictionAllowed EvictionPolicy = "Allowed"
	EvictionRefused EvictionPolicy = "Refused"
)

// LeaseDuration is LeaseDurationSeconds, or its default for objects stored
// without it.
func (s FailoverSpec) LeaseDuration() time.Duration { return seconds(s.LeaseDurationSeconds, 10) }

// RenewInterval is RenewIntervalSeconds, or its default.
func (s FailoverSpec) RenewInterval() time.Duration { return seconds(s.RenewIntervalSeconds, 3) }

// PrimaryDown is PrimaryDownSeconds, or its default.
func (s FailoverSpec) PrimaryDown() time.Duration { return seconds(s.PrimaryDownSeconds, 30) }

func seconds(value, otherwise int32) time.Duration {
	if value <= 0 {
		value = otherwise
	}
	return time.Duration(value) * time.Second
}

// ReplicationSpec says what a commit waits for.
type ReplicationSpec struct {
	// Synchronous makes each commit wait until replicas have it. Default: absent, a
	// commit waits for no replica, and a failover after a crash may lose the last
	// moments. A change is reloaded.
	Synchronous *SynchronousSpec `json:"synchronous,omitempty"`
}

// SynchronousSpec is synchronous replication.
type SynchronousSpec struct {
	// Method: any (default), a commit waits for that many replicas, whichever are
	// first; or first, for the first that many connected ones in the order of
	// spec.failover.priority and then of their numbers.
	//
	// +kubebuilder:default=any
	// +kubebuilder:validation:Enum=any;first
	Method SynchronousMethod `json:"method,omitempty"`
	// Number of replicas that a commit waits for; less than spec.replicas. Default 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=49
	Number int32 `json:"number,omitempty"`
	// DataDurability: required (default), commits wait for as long as too few
	// replicas are there; or preferred, commits then wait for those that are there,
	// and for none if there is none. Only required keeps every acknowledged commit
	// through the loss of a node.
	//
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;preferred
	DataDurability DataDurability `json:"dataDurability,omitempty"`
}

// Acknowledgements is Number, or its default for objects stored without it.
func (s SynchronousSpec) Acknowledgements() int32 { return max(s.Number, 1) }

// SynchronousMethod of synchronous_standby_names.
type SynchronousMethod string

// Methods.
const (
	SynchronousAny   SynchronousMethod = "any"
	SynchronousFirst SynchronousMethod = "first"
)

// DataDurability says what happens when replicas are missing.
type DataDurability string

// Durabilities.
const (
	DurabilityRequired  DataDurability = "required"
	DurabilityPreferred DataDurability = "preferred"
)

// PrimaryChangeType is what makes another instance the primary.
type PrimaryChangeType string

// Types of a change of the primary.
const (
	// PrimaryChangeFailover: the primary was lost.
	PrimaryChangeFailover PrimaryChangeType = "Failover"
	// PrimaryChangeSwitchover: planned; no acknowledged commit is lost.
	PrimaryChangeSwitchover PrimaryChangeType = "Switchover"
)

// PrimaryChange is one change of the primary, under way or done.
type PrimaryChange struct {
	// Number of the change, counted from 1 in the life of the cluster.
	Number int64 `json:"number"`
	// Type: Failover or Switchover.
	Type PrimaryChangeType `json:"type"`
	// From is the instance that was the primary.
	From string `json:"from"`
	// To is the instance that becomes the primary; empty while the replicas stop
	// receiving and are compared.
	To string `json:"to,omitempty"`
	// LeaseTransitions of the Lease when To was chosen: more of them mean that To may
	// have led, whether or not anybody has seen it.
	LeaseTransitions int32 `json:"leaseTransitions,omitempty"`
	// Reason says why, in one word.
	Reason string `json:"reason"`
	// Message says why, in a sentence.
	Message string `json:"message,omitempty"`
	// StartedAt is when the change was decided.
	StartedAt metav1.Time `json:"startedAt"`
	// CompletedAt is when the new primary accepted writes, or the change was given up.
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// Result, once it is done: Promoted, or Reverted to the former primary.
	Result string `json:"result,omitempty"`
	// LostBytesAtMost bounds the WAL that the former primary may have written and
	// the new one has not: 0 if nothing can be lost, else known once the former primary
	// has come back; absent until then.
	LostBytesAtMost *int64 `json:"lostBytesAtMost,omitempty"`
}

// Results of a change of the primary.
const (
	PrimaryChangePromoted = "Promoted"
	PrimaryChangeReverted = "Reverted"
)

// SynchronousRule is what a commit waits for: that many of these replicas.
type SynchronousRule struct {
	// Method: any or first.
	Method SynchronousMethod `json:"method"`
	// Number of replicas; 0 if a commit waits for none.
	Number int32 `json:"number"`
	// Standbys are the instances that count, in order; the primary among them counts
	// for nothing.
	Standbys []string `json:"standbys,omitempty"`
}

// Replicas are the instances that count under a primary, in order.
func (r SynchronousRule) Replicas(primary string) []string {
	return slices.DeleteFunc(slices.Clone(r.Standbys), func(name string) bool { return name == primary })
}

// SynchronousStatus is what is asked of commits, and what may be in force.
type SynchronousStatus struct {
	// Wanted is the rule that the primary shall follow.
	Wanted SynchronousRule `json:"wanted"`
	// Possible are the rules under which commits may have been acknowledged: the
	// wanted one alone, once the primary has said that it follows it. A replica is
	// promoted only with proof under each of them.
	Possible []SynchronousRule `json:"possible,omitempty"`
}

package v1alpha1

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpdateSpec says how instances are restarted when something needs that: replicas
// first, one at a time, each streaming again before the next, the primary last.
type UpdateSpec struct {
	// Primary: Switchover (default), the primary moves to a replica first, and is
	// restarted as one; or Restart, it is restarted where it is. Without a replica that
	// is fit to take over it is restarted where it is. No acknowledged commit is lost
	// either way. A change takes effect at the next restart.
	//
	// +kubebuilder:default=Switchover
	// +kubebuilder:validation:Enum=Switchover;Restart
	Primary PrimaryUpdate `json:"primary,omitempty"`
}

// PrimaryUpdate is how the primary is restarted.
type PrimaryUpdate string

// Ways to restart the primary.
const (
	PrimaryUpdateSwitchover PrimaryUpdate = "Switchover"
	PrimaryUpdateRestart    PrimaryUpdate = "Restart"
)

// Weekday is a day of the week.
//
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Weekday string

// MaintenanceWindow is when disruptive steps may begin that can wait.
type MaintenanceWindow struct {
	// Days on which it opens. Default: every day.
	//
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	Days []Weekday `json:"days,omitempty"`
	// Start is the time of day at which it opens, as in "02:30".
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`
	// DurationMinutes is how long it stays open. Default 120.
	//
	// +kubebuilder:default=120
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=1440
	DurationMinutes int32 `json:"durationMinutes,omitempty"`
	// TimeZone of start and days, as in "Europe/Berlin". Default UTC.
	//
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`
	TimeZone string `json:"timeZone,omitempty"`
}

// StartsAt is Start in numbers; midnight if it cannot be read.
func (w MaintenanceWindow) StartsAt() (hour, minute int) {
	hours, minutes, _ := strings.Cut(w.Start, ":")
	hour, _ = strconv.Atoi(hours)
	minute, _ = strconv.Atoi(minutes)
	return hour, minute
}

// Lasts is DurationMinutes, or its default.
func (w MaintenanceWindow) Lasts() time.Duration {
	if w.DurationMinutes <= 0 {
		return 2 * time.Hour
	}
	return time.Duration(w.DurationMinutes) * time.Minute
}

// Location is TimeZone; an error if there is none of that name.
func (w MaintenanceWindow) Location() (*time.Location, error) { return time.LoadLocation(w.TimeZone) }

// RestartStatus is a restart that is under way.
type RestartStatus struct {
	// Instance whose turn it is.
	Instance string `json:"instance"`
	// What is restarted: its Pod, or PostgreSQL in it.
	What RestartTarget `json:"what"`
	// StartedAt is when its turn came.
	StartedAt metav1.Time `json:"startedAt"`
}

// RestartTarget is what is restarted.
type RestartTarget string

// What can be restarted.
const (
	RestartPod        RestartTarget = "Pod"
	RestartPostgreSQL RestartTarget = "PostgreSQL"
)

// PendingAction is what a change that is not carried out yet will do.
//
// +kubebuilder:validation:Enum=Reload;Clone;RestartReplicas;RestartPrimary;Switchover
type PendingAction string

// Pending actions.
const (
	// PendingReload: PostgreSQL loads its configuration; no client notices.
	PendingReload PendingAction = "Reload"
	// PendingClone: new instances copy the primary; no client notices.
	PendingClone PendingAction = "Clone"
	// PendingRestartReplicas: replicas are restarted, one at a time.
	PendingRestartReplicas PendingAction = "RestartReplicas"
	// PendingRestartPrimary: the primary is restarted where it is.
	PendingRestartPrimary PendingAction = "RestartPrimary"
	// PendingSwitchover: the primary moves to another instance, without loss.
	PendingSwitchover PendingAction = "Switchover"
)

// PendingChange is what the difference between the spec and the world will do.
type PendingChange struct {
	// Actions, in the order in which they come.
	Actions []PendingAction `json:"actions"`
	// Instances that they are about.
	Instances []string `json:"instances,omitempty"`
	// Message says it in words.
	Message string `json:"message"`
	// NotBefore is when the maintenance window opens for which restarts and
	// switchovers wait; absent if they do not wait.
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}

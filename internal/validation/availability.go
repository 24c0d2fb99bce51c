package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

func checkFailover(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	spec := cluster.Spec.Failover
	if spec.LeaseDuration() < 3*spec.RenewInterval() {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "failover", "leaseDurationSeconds"), spec.LeaseDurationSeconds,
			"must be at least three times renewIntervalSeconds, so that two lost renewals stop no database")}
	}
	return nil
}

func checkReplication(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	spec := cluster.Spec.Replication.Synchronous
	if spec != nil && spec.Acknowledgements() >= cluster.Spec.Replicas {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "replication", "synchronous", "number"), spec.Number,
			"must be less than spec.replicas, since the primary does not wait for itself")}
	}
	return nil
}

// checkMaintenanceWindow: only the operator knows the names of the time zones.
func checkMaintenanceWindow(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	window := cluster.Spec.MaintenanceWindow
	if window == nil {
		return nil
	}
	if _, err := window.Location(); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "maintenanceWindow", "timeZone"), window.TimeZone,
			"is no name of a time zone, such as Europe/Berlin")}
	}
	return nil
}

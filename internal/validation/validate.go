package validation

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// Bounds of the storage: initdb and the smallest WAL need the lower one; the
// upper one is beyond any volume, and within what quantities can count.
const (
	minStorage = "256Mi"
	maxStorage = "64Ti"
)

var (
	namePattern = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	sizePattern = regexp.MustCompile(`^[1-9][0-9]*([EPTGMK]i|[EPTGMk])?$`)
)

// checks are asked in this order; all faults are reported.
var checks = []struct {
	name  string
	check func(*dbv1alpha1.PostgresCluster) field.ErrorList
}{
	{"name", checkName},
	{"replicas", checkReplicas},
	{"failover", checkFailover},
	{"replication", checkReplication},
	{"maintenance window", checkMaintenanceWindow},
	{"version", checkVersion},
	{"storage", checkStorage},
	{"parameters", checkParameters},
	{"hba", checkHBA},
	{"bootstrap", checkBootstrap},
	{"image", checkImage},
	{"pod metadata", checkPodMetadata},
	{"scheduling", checkScheduling},
	{"resources", checkResources},
	{"security context", checkSecurityContext},
}

// Validate returns what cannot be carried out, with the field, the value and the
// remedy.
func Validate(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	var faults field.ErrorList
	for _, c := range checks {
		faults = append(faults, c.check(cluster)...)
	}
	return faults
}

func checkName(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if len(cluster.Name) > naming.MaxClusterNameLength {
		return field.ErrorList{field.Invalid(path, cluster.Name, fmt.Sprintf("must have at most %d characters, so that the names of pods and labels fit", naming.MaxClusterNameLength))}
	}
	if !namePattern.MatchString(cluster.Name) {
		return field.ErrorList{field.Invalid(path, cluster.Name, "must begin with a letter and hold only lower-case letters, digits and dashes, since Services are named after it")}
	}
	return nil
}

func checkReplicas(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	if replicas := cluster.Spec.Replicas; replicas < 1 || replicas > naming.MaxInstances {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), replicas, fmt.Sprintf("must be 1 to %d", naming.MaxInstances))}
	}
	return nil
}

func checkVersion(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	path := field.NewPath("spec", "postgresVersion")
	version, err := postgres.ParseVersion(cluster.Spec.PostgresVersion)
	if err != nil {
		return field.ErrorList{field.Invalid(path, cluster.Spec.PostgresVersion, err.Error())}
	}
	if version.Major < postgres.OldestMajor || version.Major > postgres.NewestMajor {
		return field.ErrorList{field.Invalid(path, cluster.Spec.PostgresVersion, fmt.Sprintf("majors %d to %d are supported", postgres.OldestMajor, postgres.NewestMajor))}
	}
	if version.String() != cluster.Spec.PostgresVersion {
		return field.ErrorList{field.Invalid(path, cluster.Spec.PostgresVersion, fmt.Sprintf("must have no leading zero: write %s", version))}
	}
	return nil
}

func checkStorage(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	path := field.NewPath("spec", "storage", "size")
	text := cluster.Spec.Storage.Size
	if !sizePattern.MatchString(text) || len(text) > 20 {
		return field.ErrorList{field.Invalid(path, text, "must be a whole number with a unit, such as 10Gi")}
	}
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a whole number with a unit, such as 10Gi")}
	}
	if size.Cmp(resource.MustParse(minStorage)) < 0 || size.Cmp(resource.MustParse(maxStorage)) > 0 {
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf("must be %s to %s", minStorage, maxStorage))}
	}
	return nil
}

func checkParameters(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	version, err := postgres.ParseVersion(cluster.Spec.PostgresVersion)
	if err != nil {
		return nil // reported by its own check
	}
	var faults field.ErrorList
	path := field.NewPath("spec", "postgresql", "parameters")
	for _, fault := range postgres.CheckParameters(version.Major, cluster.Spec.PostgreSQL.ParameterStrings()) {
		faults = append(faults, field.Invalid(path.Key(fault.Name), fault.Value, fault.Error()))
	}
	return faults
}

func checkHBA(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	version, err := postgres.ParseVersion(cluster.Spec.PostgresVersion)
	if err != nil {
		return nil // reported by its own check
	}
	var faults field.ErrorList
	path := field.NewPath("spec", "postgresql", "hba")
	for i, rule := range cluster.Spec.PostgreSQL.HBA {
		if err := postgres.CheckHBARule(version.Major, rule); err != nil {
			faults = append(faults, field.Invalid(path.Index(i), rule, err.Error()))
		}
	}
	return faults
}

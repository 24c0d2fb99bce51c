package validation

import (
	"fmt"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// Image finds the image of a cluster: spec.image, else the one that the
// installation names for the version (RELATED_IMAGE_POSTGRES_15_20), else the
// version as a tag of the repository.
func Image(cluster *dbv1alpha1.PostgresCluster, lookup func(string) (string, bool), repository string) (string, error) {
	if cluster.Spec.Image != "" {
		return cluster.Spec.Image, nil
	}
	version, err := postgres.ParseVersion(cluster.Spec.PostgresVersion)
	if err != nil {
		return "", fmt.Errorf("spec.postgresVersion: %w", err)
	}
	variable := fmt.Sprintf("%s%d_%d", naming.EnvRelatedImagePrefix, version.Major, version.Minor)
	if image, set := lookup(variable); set && image != "" {
		return image, nil
	}
	if repository == "" {
		return "", fmt.Errorf("spec.postgresVersion: the installation has no image for %s: name one in spec.image", version)
	}
	return repository + ":" + version.String(), nil
}

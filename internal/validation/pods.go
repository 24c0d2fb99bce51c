package validation

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

var imagePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9./_:@-]{0,511}$`)

// ourLabels are set by the operator: selectors and Services depend on them.
var ourLabels = []string{naming.LabelCluster, naming.LabelApp, naming.LabelManagedBy, naming.LabelName}

func checkImage(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	var faults field.ErrorList
	if image := cluster.Spec.Image; image != "" && !imagePattern.MatchString(image) {
		faults = append(faults, field.Invalid(field.NewPath("spec", "image"), image, "must be the reference of an image"))
	}
	switch policy := cluster.Spec.ImagePullPolicy; policy {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		faults = append(faults, field.Invalid(field.NewPath("spec", "imagePullPolicy"), policy, "must be Always, IfNotPresent or Never"))
	}
	return faults
}

func checkPodMetadata(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	labels, annotations := cluster.Spec.PodMetadata.Labels.Strings(), cluster.Spec.PodMetadata.Annotations
	path := field.NewPath("spec", "podMetadata")
	faults := metavalidation.ValidateLabels(labels, path.Child("labels"))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if slices.Contains(ourLabels, key) || isOurs(key) {
			faults = append(faults, field.Invalid(path.Child("labels").Key(key), labels[key], "is the operator's own label: use another"))
		}
	}
	faults = append(faults, apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if isOurs(key) {
			faults = append(faults, field.Invalid(path.Child("annotations").Key(key), annotations[key], "is the operator's own annotation: use another"))
		}
	}
	return faults
}

func isOurs(key string) bool { return strings.HasPrefix(key, dbv1alpha1.GroupVersion.Group+"/") }

func checkScheduling(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	path := field.NewPath("spec")
	faults := metavalidation.ValidateLabels(cluster.Spec.NodeSelector.Strings(), path.Child("nodeSelector"))
	if class := cluster.Spec.PriorityClassName; class != "" {
		for _, message := range validation.IsDNS1123Subdomain(class) {
			faults = append(faults, field.Invalid(path.Child("priorityClassName"), class, message))
		}
	}
	return faults
}

// checkResources finds what every pod would be refused for.
func checkResources(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	var faults field.ErrorList
	path := field.NewPath("spec", "resources")
	requests, limits := cluster.Spec.Resources.Requests, cluster.Spec.Resources.Limits
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"requests", requests}, {"limits", limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			if quantity := list.values[name]; quantity.Sign() < 0 {
				faults = append(faults, field.Invalid(path.Child(list.name).Key(string(name)), quantity.String(), "must not be negative"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request := requests[name]
		if limit, limited := limits[name]; limited && request.Cmp(limit) > 0 {
			faults = append(faults, field.Invalid(path.Child("requests").Key(string(name)), request.String(), fmt.Sprintf("is above the limit of %s: lower it or raise the limit", limit.String())))
		}
	}
	if len(cluster.Spec.Resources.Claims) > 0 {
		faults = append(faults, field.Forbidden(path.Child("claims"), "instances have no device claims: remove it"))
	}
	return faults
}

func checkSecurityContext(cluster *dbv1alpha1.PostgresCluster) field.ErrorList {
	var faults field.ErrorList
	path := field.NewPath("spec", "securityContext")
	spec := cluster.Spec.SecurityContext
	for _, id := range []struct {
		name  string
		value *int64
	}{{"runAsUser", spec.RunAsUser}, {"runAsGroup", spec.RunAsGroup}, {"fsGroup", spec.FSGroup}} {
		if id.value != nil && (*id.value < 1 || *id.value > math.MaxInt32) {
			faults = append(faults, field.Invalid(path.Child(id.name), *id.value, fmt.Sprintf("must be 1 to %d: PostgreSQL does not run as root", math.MaxInt32)))
		}
	}
	if profile := spec.SeccompProfile; profile != nil {
		local := profile.Type == corev1.SeccompProfileTypeLocalhost
		if !local && profile.Type != corev1.SeccompProfileTypeRuntimeDefault || local != (profile.LocalhostProfile != nil) {
			faults = append(faults, field.Invalid(path.Child("seccompProfile"), profile.Type, "must be RuntimeDefault, or Localhost with a localhostProfile"))
		}
	}
	return faults
}

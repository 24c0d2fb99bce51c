//go:build envtest

package controllers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/my-org/postgres-operator/internal/naming"
)

// goldens are the objects of the golden files of the builders, in a namespace.
func goldens(t *testing.T, namespace string) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("internal/resources/testdata/*/*.yaml")
	require.NoError(t, err)
	found := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		if strings.Contains(file, "/clusters/") {
			continue
		}
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(raw, &object.Object), file)
		object.SetNamespace(namespace)
		found[strings.TrimPrefix(file, "internal/resources/testdata/")] = object
	}
	require.NotEmpty(t, found)
	return found
}

func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "golden-", Labels: labels}}
	require.NoError(t, api.Create(t.Context(), space))
	return space.Name
}

// TestWhatIsAppliedTwiceChangesNothing: the API server takes each object as it is
// built, and finds nothing to change the second time, its own defaults included.
func TestWhatIsAppliedTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	space := namespace(t, nil)
	for file, object := range goldens(t, space) {
		apply := func() map[string]any {
			applied := object.DeepCopy()
			//nolint:staticcheck // the objects are read from files: there is no typed configuration of them
			require.NoError(t, api.Patch(t.Context(), applied, client.Apply, client.ForceOwnership, client.FieldOwner(naming.FieldOwner)), file)
			if applied.GetKind() == "PersistentVolumeClaim" {
				applied.SetResourceVersion("") // the API server gives claims another one though nothing differs
			}
			return applied.Object
		}
		first := apply()
		assert.Equal(t, first, apply(), file)
		require.NoError(t, api.Delete(t.Context(), object.DeepCopy()), file) // the next case has the same names
	}
}

// TestEveryPodIsRestricted: a namespace that enforces the restricted Pod Security
// standard admits the pod of each template.
func TestEveryPodIsRestricted(t *testing.T) {
	t.Parallel()
	space := namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	pods := 0
	for file, object := range goldens(t, space) {
		content, found, err := unstructured.NestedMap(object.Object, "spec", "template")
		require.NoError(t, err)
		if !found {
			continue
		}
		pods++
		template := &corev1.PodTemplateSpec{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, template))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "restricted-", Namespace: space, Labels: template.Labels}, Spec: template.Spec}
		pod.Spec.ServiceAccountName = "" // the real one is made beside the pod
		pod.Spec.PriorityClassName = ""
		require.NoError(t, api.Create(t.Context(), pod, client.DryRunAll), file)

		pod.Name, pod.Spec.Containers[0].SecurityContext = "", nil
		require.Error(t, api.Create(t.Context(), pod, client.DryRunAll), "the standard is enforced at all")
	}
	assert.Positive(t, pods)
}

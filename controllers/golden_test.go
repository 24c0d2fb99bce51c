//go:build envtest

package controllers

import (
	"encoding/base64"
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

	"github.com/my-org/postgres-operator/controllers/internal/kube"
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
		if words, found, _ := unstructured.NestedStringMap(object.Object, "stringData"); found {
			data := map[string]any{}
			for key, value := range words {
				data[key] = base64.StdEncoding.EncodeToString([]byte(value))
			}
			delete(object.Object, "stringData") // which nobody reads back
			object.Object["data"] = data
		}
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
// built; what it has made of it, its own defaults included, is up to date; and should
// it be applied again all the same, nothing changes.
func TestWhatIsAppliedTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	space := namespace(t, nil)
	applier := kube.Applier{Client: api, Live: api}
	for file, object := range goldens(t, space) {
		typed, err := api.Scheme().New(object.GroupVersionKind())
		require.NoError(t, err, file)
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed), file)
		desired := typed.(client.Object)
		owner := &metav1.ObjectMeta{UID: object.GetOwnerReferences()[0].UID}
		apply := func() *unstructured.Unstructured {
			require.NoError(t, applier.Apply(t.Context(), owner, desired.DeepCopyObject().(client.Object)), file)
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(object.GroupVersionKind())
			require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(object), live), file)
			return live
		}
		first := apply()
		assert.Equal(t, first, apply(), "%s: it is up to date", file)

		forgotten := first.DeepCopy()
		forgotten.SetAnnotations(nil) // nobody knows what was applied
		require.NoError(t, api.Patch(t.Context(), forgotten, client.MergeFrom(first)), file)
		again := apply()
		assert.NotEqual(t, first.GetResourceVersion(), again.GetResourceVersion(), "%s: it was applied again", file)
		for _, fields := range []map[string]any{first.Object, again.Object} {
			for _, moved := range []string{"resourceVersion", "managedFields", "generation"} { // a Deployment's counts annotations
				unstructured.RemoveNestedField(fields, "metadata", moved)
			}
		}
		assert.Equal(t, first, again, file)
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

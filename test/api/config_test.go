//go:build envtest

package api

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const operatorNamespace = "postgres-operator-system"

// rendered is a folder of config/ as kustomize builds it.
func rendered(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl and kustomize do: namespaces first
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), "../../config/"+folder)
	require.NoError(t, err)
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.Map()
		require.NoError(t, err)
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}

// TestInstallation: the API server takes every object of config/default, twice.
func TestInstallation(t *testing.T) {
	ctx := context.Background()
	for range 2 {
		for _, object := range rendered(t, "default") {
			err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership)
			require.NoError(t, err, "%s %s", object.GetKind(), object.GetName())
		}
	}
	namespace := &corev1.Namespace{}
	require.NoError(t, api.Get(ctx, client.ObjectKey{Name: operatorNamespace}, namespace))
	assert.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"])

	deployment := &appsv1.Deployment{}
	require.NoError(t, api.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "postgres-operator-controller-manager"}, deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	assert.NotContains(t, container.Image, "controller:")
	assert.Contains(t, container.Env, corev1.EnvVar{Name: "OPERATOR_IMAGE", Value: container.Image}, "one field governs both")

	// Admission of the namespace's security level says what it thinks of the pod.
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = operatorNamespace, deployment.Spec.Template.Spec.ServiceAccountName
	require.NoError(t, api.Get(ctx, client.ObjectKeyFromObject(account), account))
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Namespace, pod.Name = operatorNamespace, "operator"
	assert.NoError(t, api.Create(ctx, pod, client.DryRunAll))
}

// TestRightsAreNamed: no role of the operator has a wildcard.
func TestRightsAreNamed(t *testing.T) {
	for _, object := range rendered(t, "rbac") {
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		require.NoError(t, err)
		for _, rule := range rules {
			for field, values := range rule.(map[string]any) {
				assert.NotContains(t, values, "*", "%s %s: %s", object.GetKind(), object.GetName(), field)
			}
		}
	}
}

func TestSamples(t *testing.T) {
	ns := namespace(t)
	files, err := filepath.Glob("../../config/samples/db_*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		// Strict: a field that the API does not know would be dropped in silence.
		strict := client.NewNamespacedClient(client.WithFieldValidation(api, "Strict"), ns)
		assert.NoError(t, strict.Create(context.Background(), cluster(t, ns, string(content))), file)
	}
	assert.Len(t, rendered(t, "samples"), len(files), "every sample is in the kustomization")
}

// TestTheDefinitionIsTheOneOfTheTypes: all that the Go types hold survives the
// API server, so nothing in them is unknown to the definition.
func TestTheDefinitionIsTheOneOfTheTypes(t *testing.T) {
	ns := namespace(t)
	content, err := os.ReadFile("../../config/samples/db_v1alpha1_postgrescluster_configured.yaml")
	require.NoError(t, err)
	object := cluster(t, ns, strings.ReplaceAll(string(content), "name: shop\n", "name: types\n"))
	require.NoError(t, api.Create(context.Background(), object))
	sent := runtime.DeepCopyJSONValue(object.Object["spec"])
	assert.Equal(t, sent, stored(t, ns, "types").Object["spec"])
}

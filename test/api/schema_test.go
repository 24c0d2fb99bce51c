//go:build envtest

package api

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

// maxCRDBytes keeps bundles and the annotation of client-side apply within what
// they can hold.
const maxCRDBytes = 200_000

func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append([]string{"--kubeconfig", kubeconfig}, arguments...)...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "kubectl %v: %s", arguments, output)
	return string(output)
}

func TestSizeOfTheDefinition(t *testing.T) {
	text, err := json.Marshal(crd(t))
	require.NoError(t, err)
	assert.Less(t, len(text), maxCRDBytes)
	// Client-side apply keeps the whole object in an annotation; twice, since the
	// second one reads it.
	kubectl(t, "apply", "-f", crdFile)
	kubectl(t, "apply", "-f", crdFile)
}

// TestEveryFieldIsExplained: kubectl explain has something to say about each.
func TestEveryFieldIsExplained(t *testing.T) {
	root := crd(t).Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		explained(t, name, root.Properties[name])
	}
	assert.Contains(t, kubectl(t, "explain", "postgrescluster.spec.storage.size"), "never shrinks")
}

func explained(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) {
	assert.NotEmpty(t, schema.Description, path)
	for name, property := range schema.Properties {
		explained(t, path+"."+name, property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		for name, property := range schema.Items.Schema.Properties {
			explained(t, path+"[]."+name, property)
		}
	}
}

func TestDefaultsAreReadBack(t *testing.T) {
	ns := namespace(t)
	file := testdata + "base.yaml"
	kubectl(t, "-n", ns, "apply", "-f", file)
	first := stored(t, ns, "db")
	kubectl(t, "-n", ns, "apply", "-f", file)
	assert.Equal(t, first.GetResourceVersion(), stored(t, ns, "db").GetResourceVersion(), "the same file changes nothing")
	initdb, _, err := unstructured.NestedMap(first.Object, "spec", "bootstrap", "initdb")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"database": "app", "encoding": "UTF8", "dataChecksums": true, "localeProvider": "libc"}, initdb)

	// A program with the Go types sends what it has read.
	typed := &dbv1alpha1.PostgresCluster{}
	require.NoError(t, api.Get(context.Background(), client.ObjectKeyFromObject(first), typed))
	require.NoError(t, api.Update(context.Background(), typed))
	assert.Equal(t, first.GetGeneration(), typed.Generation)
}

func TestScaleAndColumns(t *testing.T) {
	ns := namespace(t)
	kubectl(t, "-n", ns, "apply", "-f", testdata+"base.yaml")
	kubectl(t, "-n", ns, "scale", "postgrescluster/db", "--replicas", "3")
	cluster := stored(t, ns, "db")
	replicas, _, err := unstructured.NestedInt64(cluster.Object, "spec", "replicas")
	require.NoError(t, err)
	assert.EqualValues(t, 3, replicas)

	patchStatus(t, cluster, `{"status":{"phase":"Creating","ready":"2/3","currentPrimary":"db-primary"}}`)
	row := kubectl(t, "-n", ns, "get", "pgc")
	for _, text := range []string{"PHASE", "READY", "PRIMARY", "VERSION", "AGE", "Creating", "2/3", "db-primary", "15.20"} {
		assert.Contains(t, row, text)
	}
	assert.Contains(t, kubectl(t, "-n", ns, "get", "all"), "postgrescluster.db.my-domain.com/db")
}

// TestOlderObjectsStayWritable: the operator writes status and finalizers of
// objects that today's rules would refuse, and people go on editing the rest of
// them.
func TestOlderObjectsStayWritable(t *testing.T) {
	ns := namespace(t)
	older := map[string]struct {
		patch string
		edit  string // of another part of the spec
	}{
		"a-name-of-an-older-release-that-is-beyond-the-limit": {patch: `{}`, edit: `{"spec":{"replicas":3}}`},
		"1.name":         {patch: `{}`, edit: `{"spec":{"replicas":3}}`},
		"size":           {patch: `{"spec":{"storage":{"size":"10GB"}}}`, edit: `{"spec":{"replicas":3}}`},
		"size-too-small": {patch: `{"spec":{"storage":{"size":"1"}}}`, edit: `{"spec":{"replicas":3}}`},
		"replicas":       {patch: `{"spec":{"replicas":100}}`, edit: `{"spec":{"image":"x"}}`},
		"version":        {patch: `{"spec":{"postgresVersion":"12.1"}}`},
		"no-storage":     {patch: `{"spec":{"storage":null}}`},
		"reserved":       {patch: `{"spec":{"postgresql":{"parameters":{"port":"1"}}}}`, edit: `{"spec":{"replicas":3}}`},
		"hba":            {patch: `{"spec":{"postgresql":{"hba":["x"]}}}`, edit: `{"spec":{"replicas":3}}`},
		"icu":            {patch: `{"spec":{"postgresVersion":"14.1","bootstrap":{"initdb":{"localeProvider":"icu"}}}}`, edit: `{"spec":{"replicas":3}}`},
		"labels":         {patch: `{"spec":{"podMetadata":{"labels":{"app":"x"}}}}`, edit: `{"spec":{"replicas":3}}`},
	}
	withoutRules(t, func() {
		for name, object := range older {
			stored := patched(t, ns, []byte(object.patch))
			stored.SetName(name)
			require.NoError(t, api.Create(context.Background(), stored))
		}
	})
	for name, object := range older {
		t.Run(name, func(t *testing.T) {
			cluster := stored(t, ns, name)
			patchStatus(t, cluster, `{"status":{"phase":"Failed"}}`)
			for _, change := range []string{
				`{"metadata":{"finalizers":["db.my-domain.com/finalizer"]}}`,
				`{"metadata":{"labels":{"a":"b"}}}`,
				object.edit,
			} {
				if change != "" {
					assert.NoError(t, api.Patch(context.Background(), cluster, client.RawPatch(types.MergePatchType, []byte(change))), change)
				}
			}
			patchStatus(t, cluster, `{"status":{"phase":"Creating"}}`)
			require.NoError(t, api.Delete(context.Background(), cluster))
			require.NoError(t, api.Patch(context.Background(), cluster, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		})
	}
}

func stored(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(dbv1alpha1.GroupVersion.WithKind("PostgresCluster"))
	require.NoError(t, api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, object))
	return object
}

func patchStatus(t *testing.T, object *unstructured.Unstructured, patch string) {
	t.Helper()
	require.NoError(t, api.Status().Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// withoutRules runs a function while the API server admits any spec.
func withoutRules(t *testing.T, during func()) {
	t.Helper()
	preserve := true
	lax := crd(t)
	schema := lax.Spec.Versions[0].Schema.OpenAPIV3Schema
	schema.XValidations = nil
	schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	replace(t, lax)
	until(t, func(err error) bool { return err == nil })
	defer func() {
		replace(t, crd(t))
		until(t, func(err error) bool { return err != nil })
	}()
	during()
}

func replace(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	live := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, api.Get(context.Background(), client.ObjectKeyFromObject(definition), live))
	live.Spec = definition.Spec
	require.NoError(t, api.Update(context.Background(), live))
}

// until waits till the API server answers a request for a bad object as wanted:
// a changed definition takes a moment.
func until(t *testing.T, wanted func(error) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		bad := patched(t, "default", []byte(`{"metadata":{"name":"1.bad"},"spec":{"replicas":0}}`))
		return wanted(api.Create(context.Background(), bad, client.DryRunAll))
	}, 30*time.Second, 100*time.Millisecond)
}

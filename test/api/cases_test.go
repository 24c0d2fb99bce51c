//go:build envtest

package api

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const testdata = "../../internal/validation/testdata/"

// createCase and updateCase are described in the files that hold them.
type createCase struct {
	Name   string          `json:"name"`
	Patch  json.RawMessage `json:"patch"`
	Reject string          `json:"reject"`
	// Admission: the Go type cannot tell. Of no meaning here.
	Admission bool `json:"admission"`
}

type updateCase struct {
	Name   string          `json:"name"`
	From   json.RawMessage `json:"from"`
	To     json.RawMessage `json:"to"`
	Reject string          `json:"reject"`
	Same   bool            `json:"same"`
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(testdata + file)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, into))
}

// patched is base.yaml with a merge patch.
func patched(t *testing.T, namespace string, patch []byte) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(testdata + "base.yaml")
	require.NoError(t, err)
	base, err := yaml.YAMLToJSON(content)
	require.NoError(t, err)
	merged, err := jsonpatch.MergePatch(base, patch)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal(merged, &object.Object))
	object.SetNamespace(namespace)
	return object
}

func TestNewObjects(t *testing.T) {
	var cases []createCase
	load(t, "create.yaml", &cases)
	ns := namespace(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			object := patched(t, ns, c.Patch)
			err := api.Create(context.Background(), object, client.DryRunAll)
			expect(t, err, c.Reject)
		})
	}
}

func TestChanges(t *testing.T) {
	var cases []updateCase
	load(t, "update.yaml", &cases)
	ns := namespace(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			ctx := context.Background()
			object := patched(t, ns, c.From)
			object.SetName(c.Name)
			require.NoError(t, api.Create(ctx, object))
			changed := patched(t, ns, c.To)
			changed.SetName(c.Name)
			changed.SetResourceVersion(object.GetResourceVersion())
			err := api.Update(ctx, changed)
			expect(t, err, c.Reject)
			if c.Same {
				assert.Equal(t, object.GetGeneration(), changed.GetGeneration(), "nothing changed")
			}
		})
	}
}

func expect(t *testing.T, err error, reject string) {
	t.Helper()
	if reject == "" {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
	require.True(t, apierrors.IsInvalid(err), "refused for another reason: %v", err)
	assert.ErrorContains(t, err, reject)
}

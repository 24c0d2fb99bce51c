package validation

import (
	"encoding/json"
	"os"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

func base(t testing.TB) []byte {
	t.Helper()
	content, err := os.ReadFile("testdata/base.yaml")
	require.NoError(t, err)
	text, err := yaml.YAMLToJSON(content)
	require.NoError(t, err)
	return text
}

// TestNewObjects asks the cases that test/api puts to the API server: what is
// refused there is refused here too, for objects that came past it.
func TestNewObjects(t *testing.T) {
	content, err := os.ReadFile("testdata/create.yaml")
	require.NoError(t, err)
	var cases []struct {
		Name      string          `json:"name"`
		Patch     json.RawMessage `json:"patch"`
		Reject    string          `json:"reject"`
		Admission bool            `json:"admission"`
	}
	require.NoError(t, yaml.UnmarshalStrict(content, &cases))
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			merged, err := jsonpatch.MergePatch(base(t), c.Patch)
			require.NoError(t, err)
			cluster := &dbv1alpha1.PostgresCluster{}
			if err := json.Unmarshal(merged, cluster); err != nil {
				require.NotEmpty(t, c.Reject, "the type refuses what is accepted: %v", err)
				return
			}
			faults := Validate(cluster)
			if c.Reject == "" {
				require.Empty(t, faults)
			} else if !c.Admission {
				require.NotEmpty(t, faults)
			}
		})
	}
}

func TestFaultsNameTheField(t *testing.T) {
	cluster := &dbv1alpha1.PostgresCluster{}
	require.NoError(t, json.Unmarshal(base(t), cluster))
	cluster.Spec.Replicas = 0
	cluster.Spec.Storage.Size = "10GB"
	cluster.Spec.PostgreSQL.Parameters = dbv1alpha1.Parameters{"port": "1"}
	message := Validate(cluster).ToAggregate().Error()
	for _, part := range []string{"spec.replicas", "spec.storage.size", "10GB", "spec.postgresql.parameters[port]"} {
		assert.Contains(t, message, part, "every fault is told, not the first alone")
	}
}

func TestImage(t *testing.T) {
	related := map[string]string{naming.EnvRelatedImagePrefix + "15_20": "mirror/pg@sha256:1", naming.EnvRelatedImagePrefix + "15_9": ""}
	lookup := func(name string) (string, bool) { value, set := related[name]; return value, set }
	for _, c := range []struct{ name, version, image, repository, want, fault string }{
		{name: "of the spec", version: "15.20", image: "my/pg:1", repository: "r", want: "my/pg:1"},
		{name: "of the installation", version: "15.20", repository: "r", want: "mirror/pg@sha256:1"},
		{name: "by tag", version: "15.2", repository: "docker.io/library/postgres", want: "docker.io/library/postgres:15.2"},
		{name: "an empty variable is none", version: "15.9", repository: "r", want: "r:15.9"},
		{name: "none", version: "15.2", fault: "spec.image"},
		{name: "no version", version: "15.2;id", repository: "r", fault: "spec.postgresVersion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &dbv1alpha1.PostgresCluster{Spec: dbv1alpha1.PostgresClusterSpec{PostgresVersion: c.version, Image: c.image}}
			image, err := Image(cluster, lookup, c.repository)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, image)
		})
	}
}

// FuzzValidate: whatever is stored, one object's faults are told and nothing
// else suffers.
func FuzzValidate(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add(base(f))
	f.Add([]byte(`{"metadata":{"name":"1db"},"spec":{"replicas":-1,"postgresVersion":"15.2;id","storage":{"size":"9999999Ei"},"postgresql":{"parameters":{"a.b":"\u0000"},"hba":["\"",""]},"bootstrap":{"initdb":{"postInitSQL":[{}]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		cluster := &dbv1alpha1.PostgresCluster{}
		if json.Unmarshal(text, cluster) != nil {
			return
		}
		faults := Validate(cluster)
		if len(faults) > 0 {
			assert.NotEmpty(t, faults.ToAggregate().Error())
			return
		}
		image, err := Image(cluster, func(string) (string, bool) { return "", false }, "docker.io/library/postgres")
		require.NoError(t, err)
		assert.Regexp(t, imagePattern, image, "nothing odd reaches a pod")
	})
}

func TestATimeZoneThatNobodyKnows(t *testing.T) {
	cluster := &dbv1alpha1.PostgresCluster{}
	cluster.Spec.MaintenanceWindow = &dbv1alpha1.MaintenanceWindow{Start: "02:30", TimeZone: "Europe/Atlantis"}
	assert.ErrorContains(t, Validate(cluster).ToAggregate(), `spec.maintenanceWindow.timeZone: Invalid value: "Europe/Atlantis": is no name of a time zone`)
	cluster.Spec.MaintenanceWindow.TimeZone = "Europe/Berlin"
	assert.NotContains(t, Validate(cluster).ToAggregate().Error(), "maintenanceWindow")
}

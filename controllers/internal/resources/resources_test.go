package resources_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/resources"
	"github.com/my-org/postgres-operator/internal/naming"
)

var write = flag.Bool("write", false, "write the golden files anew")

// cases are the clusters of the golden files: testdata/clusters, as people write
// them.
func cases(t *testing.T) map[string]*dbv1alpha1.PostgresCluster {
	t.Helper()
	files, err := filepath.Glob("testdata/clusters/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := map[string]*dbv1alpha1.PostgresCluster{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		cluster := &dbv1alpha1.PostgresCluster{}
		require.NoError(t, yaml.UnmarshalStrict(raw, cluster), file)
		cluster.UID, cluster.Namespace = "11111111-2222-3333-4444-555555555555", "team"
		found[strings.TrimSuffix(filepath.Base(file), ".yaml")] = cluster
	}
	return found
}

func workload(cluster *dbv1alpha1.PostgresCluster, ordinal int) resources.Workload {
	return resources.Workload{
		Cluster: cluster, Instance: naming.Instance(cluster.Name, ordinal), Image: "docker.io/library/postgres:15.20",
		ManagerImage: "docker.io/my-org/postgres-operator:1.0.0", ManagerPullPolicy: corev1.PullIfNotPresent,
		PlatformAssignsIDs: cluster.Name == "assigned",
	}
}

// built are the objects of a cluster without random content.
func built(cluster *dbv1alpha1.PostgresCluster) []client.Object {
	objects := []client.Object{
		resources.StatefulSet(workload(cluster, 0)), resources.Deployment(workload(cluster, 1)),
		resources.DataClaim(cluster, naming.Instance(cluster.Name, 1), nil),
		resources.PrimaryService(cluster), resources.ReplicasService(cluster), resources.PodsService(cluster),
		resources.ServiceAccount(cluster), resources.Role(cluster), resources.RoleBinding(cluster), resources.PrimaryLease(cluster),
		resources.NetworkPolicy(cluster, "postgres-operator-system"),
	}
	if budget := resources.DisruptionBudget(cluster, int(cluster.Spec.Replicas)); budget != nil {
		objects = append(objects, budget)
	}
	return objects
}

func text(t *testing.T, object client.Object) []byte {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	unstructured.RemoveNestedField(content, "status")
	raw, err := yaml.Marshal(content)
	require.NoError(t, err)
	return raw
}

func golden(t *testing.T, path string, got []byte, meaning string) {
	t.Helper()
	if *write {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "if it is new: go test ./controllers/internal/resources -write")
	assert.Equal(t, string(want), string(got), "%s%s\nif this is meant: go test ./controllers/internal/resources -write", path, meaning)
}

func TestObjectsAreAsInTheGoldenFiles(t *testing.T) {
	for name, cluster := range cases(t) {
		for _, object := range built(cluster) {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			if kind == "StatefulSet" || kind == "Deployment" {
				continue
			}
			suffix := strings.TrimPrefix(object.GetName(), cluster.Name)
			golden(t, filepath.Join("testdata", strings.ToLower(kind), name+suffix+".yaml"), text(t, object), "")
		}
	}
}

// TestSecretsAreAsInTheGoldenFiles: their keys, and what their certificates say.
func TestSecretsAreAsInTheGoldenFiles(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, cluster := range cases(t) {
		ca, err := resources.CASecret(cluster, nil, now)
		require.NoError(t, err)
		server, err := resources.ServerSecret(cluster, ca, nil, now)
		require.NoError(t, err)
		replication, err := resources.ReplicationSecret(cluster, ca, nil, now)
		require.NoError(t, err)
		app, err := resources.AppSecret(cluster, ca, nil, func() (string, error) { return "pass:word@%", nil })
		require.NoError(t, err)
		for _, secret := range []*corev1.Secret{ca, server, replication, app} {
			secret.StringData = described(t, secret.Data)
			secret.Data = nil
			suffix := strings.TrimPrefix(secret.Name, cluster.Name)
			golden(t, filepath.Join("testdata", "secret", name+suffix+".yaml"), text(t, secret), "")
		}
	}
}

// described is the data of a Secret with words in the place of what is random.
func described(t *testing.T, data map[string][]byte) map[string]string {
	t.Helper()
	words := map[string]string{}
	for key, value := range data {
		words[key] = string(value)
		block, rest := pem.Decode(value)
		if block == nil {
			continue
		}
		assert.Empty(t, rest, key)
		words[key] = block.Type
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		words[key] = fmt.Sprintf("CERTIFICATE of %s, by %s, from %s to %s, authority: %t, for servers: %t, for clients: %t, names: %v",
			certificate.Subject, certificate.Issuer, certificate.NotBefore.Format(time.DateTime), certificate.NotAfter.Format(time.DateTime), certificate.IsCA,
			slices.Contains(certificate.ExtKeyUsage, x509.ExtKeyUsageServerAuth), slices.Contains(certificate.ExtKeyUsage, x509.ExtKeyUsageClientAuth), certificate.DNSNames)
	}
	return words
}

// TestAChangedPodTemplateRestartsEveryDatabase of every user: the golden files of
// the workloads are that contract, and a change of one has to be worth it.
func TestAChangedPodTemplateRestartsEveryDatabase(t *testing.T) {
	for name, cluster := range cases(t) {
		golden(t, filepath.Join("testdata", "statefulset", name+".yaml"), text(t, resources.StatefulSet(workload(cluster, 0))),
			": a change of the pod template RESTARTS EVERY DATABASE OF EVERY USER")
		golden(t, filepath.Join("testdata", "deployment", name+".yaml"), text(t, resources.Deployment(workload(cluster, 1))),
			": a change of the pod template RESTARTS EVERY DATABASE OF EVERY USER")
	}
}

func TestTheSameClusterGivesTheSameBytes(t *testing.T) {
	for name, cluster := range cases(t) {
		var first [][]byte
		for _, object := range built(cluster) {
			first = append(first, text(t, object))
		}
		for range 50 {
			for i, object := range built(cluster) {
				require.True(t, bytes.Equal(first[i], text(t, object)), "%s %T", name, object)
			}
		}
	}
}

func TestEveryObjectIsOwnedAndFound(t *testing.T) {
	for name, cluster := range cases(t) {
		for _, object := range built(cluster) {
			assert.True(t, metav1.IsControlledBy(object, cluster), "%s %T %s", name, object, object.GetName())
			assert.Equal(t, cluster.Name, object.GetLabels()[naming.LabelCluster], "%s %T", name, object)
			assert.Equal(t, naming.ManagedBy, object.GetLabels()[naming.LabelManagedBy], "%s %T", name, object)
			assert.LessOrEqual(t, len(object.GetName()), 63)
			for key, value := range object.GetLabels() {
				assert.LessOrEqual(t, len(value), 63, key)
			}
		}
	}
}

func TestAClaimKeepsWhatNoClaimCanChange(t *testing.T) {
	cluster := cases(t)["minimal"]
	first := resources.DataClaim(cluster, "db-primary", nil)
	assert.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, first.Spec.AccessModes)

	cluster.Spec.Storage.Size, cluster.Spec.Storage.StorageClassName, cluster.Spec.Storage.AccessMode = "512Mi", "other", corev1.ReadWriteOncePod
	again := resources.DataClaim(cluster, "db-primary", first)
	assert.Equal(t, first.Spec, again.Spec, "neither class nor mode, and no smaller size")

	cluster.Spec.Storage.Size = "1Ti"
	grown := resources.DataClaim(cluster, "db-primary", first).Spec.Resources.Requests[corev1.ResourceStorage]
	assert.Zero(t, grown.Cmp(resource.MustParse("1Ti")))
	assert.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, resources.DataClaim(cluster, "db-primary", nil).Spec.AccessModes)
}

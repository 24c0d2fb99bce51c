//go:build envtest

package api

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

const crdFile = "../../config/crd/bases/db.my-domain.com_postgresclusters.yaml"

// api is the client of the API server that all tests share; restConfig and
// kubeconfig reach it in other ways.
var (
	api        client.WithWatch
	restConfig *rest.Config
	kubeconfig string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	for _, program := range []string{"kube-apiserver", "etcd", "kubectl"} {
		if _, err := os.Stat(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), program)); err != nil {
			fmt.Fprintf(os.Stderr, "KUBEBUILDER_ASSETS must name a folder with %s: run these tests with 'make envtest' (%v)\n", program, err)
			return 1
		}
	}
	for _, add := range []func() error{
		func() error { return dbv1alpha1.AddToScheme(scheme.Scheme) },
		func() error { return apiextensionsv1.AddToScheme(scheme.Scheme) },
	} {
		if err := add(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	server := &envtest.Environment{CRDDirectoryPaths: []string{crdFile}, ErrorIfCRDPathMissing: true}
	config, err := server.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the API server:", err)
		return 1
	}
	defer server.Stop() //nolint:errcheck // the tests have their result
	restConfig = config
	if api, err = client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		fmt.Fprintln(os.Stderr, "make a client:", err)
		return 1
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("api-test-%d.kubeconfig", os.Getpid()))
	defer os.Remove(file) //nolint:errcheck // a leftover does no harm
	if err := os.WriteFile(file, server.KubeConfig, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "write the kubeconfig:", err)
		return 1
	}
	kubeconfig = file
	return m.Run()
}

// namespace makes a namespace for one test.
func namespace(t *testing.T) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	require.NoError(t, api.Create(context.Background(), object))
	return object.Name
}

// cluster reads a PostgresCluster in YAML, as kubectl would send it.
func cluster(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	object.SetNamespace(namespace)
	return object
}

// crd is the project's CustomResourceDefinition.
func crd(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(crdFile)
	require.NoError(t, err)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(content, definition))
	return definition
}

package registry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func serve(t *testing.T, dir string) string {
	t.Helper()
	registry, err := Open(dir)
	require.NoError(t, err)
	server := httptest.NewServer(registry)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestImagesOutliveTheRegistry(t *testing.T) {
	dir := t.TempDir()
	host := serve(t, dir)
	image, err := random.Image(100, 2)
	require.NoError(t, err)
	index, err := random.Index(100, 1, 2)
	require.NoError(t, err)
	tag, err := name.ParseReference(host + "/library/thing:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, image))
	// The name sorts before that of the images in it, which must be there first.
	many, err := name.ParseReference(host + "/library/thing:0")
	require.NoError(t, err)
	require.NoError(t, remote.WriteIndex(many, index))

	again := serve(t, dir)
	for reference, want := range map[string]interface{ Size() (int64, error) }{"1": image, "0": index} {
		ref, err := name.ParseReference(again + "/library/thing:" + reference)
		require.NoError(t, err)
		got, err := remote.Get(ref)
		require.NoError(t, err, reference)
		size, err := want.Size()
		require.NoError(t, err)
		assert.Equal(t, size, got.Size, reference)
	}
	ref, err := name.ParseReference(again + "/library/thing:1")
	require.NoError(t, err)
	pulled, err := remote.Image(ref)
	require.NoError(t, err)
	layers, err := pulled.Layers()
	require.NoError(t, err)
	assert.Len(t, layers, 2)
}

func TestADeletedTagStaysAway(t *testing.T) {
	dir := t.TempDir()
	host := serve(t, dir)
	image, err := random.Image(10, 1)
	require.NoError(t, err)
	tag, err := name.ParseReference(host + "/thing:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, image))
	require.NoError(t, remote.Delete(tag))

	response, err := http.Get("http://" + serve(t, dir) + "/v2/thing/manifests/1")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusNotFound, response.StatusCode)
}

func TestManifestPathsStayInTheFolder(t *testing.T) {
	r := &Registry{manifests: "/data"}
	for path, want := range map[string]bool{
		"/v2/library/postgres/manifests/17": true,
		"/v2/a/manifests/sha256:00":         true,
		"/v2/../../etc/manifests/passwd":    false,
		"/v2/a/blobs/sha256:00":             false,
		"/v1/a/manifests/1":                 false,
	} {
		_, ok := r.manifestFile(path)
		assert.Equal(t, want, ok, path)
	}
}

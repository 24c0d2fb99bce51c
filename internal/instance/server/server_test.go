package server

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/pki"
	"github.com/my-org/postgres-operator/internal/protocol"
)

type health struct{ live, started, ready bool }

func (h health) Live() bool    { return h.live }
func (h health) Started() bool { return h.started }
func (h health) Ready() bool   { return h.ready }

func TestEachProbeHasItsOwnAnswer(t *testing.T) {
	handler := HealthHandler(health{live: true, started: true})
	for path, status := range map[string]int{"/livez": 200, "/startupz": 200, "/readyz": 503, "/v1/status": 404} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, status, recorder.Code, path)
		if path != "/v1/status" {
			assert.Empty(t, recorder.Body.String(), "it tells nothing else to anybody")
		}
	}
}

func TestReportsAreForTheOperatorAndTheInstances(t *testing.T) {
	now := time.Now()
	ca, err := pki.EnsureCA(nil, "db", now)
	require.NoError(t, err)
	other, err := pki.EnsureCA(nil, "db", now)
	require.NoError(t, err)
	pair, err := pki.EnsureServer(ca, nil, naming.ServerDNSNames("db", "t"), now)
	require.NoError(t, err)
	directory := t.TempDir()
	for name, key := range map[string]string{config.FileServerCert: naming.KeyTLSCert, config.FileServerKey: naming.KeyTLSKey, config.FileCA: naming.KeyCACert} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), pair[key], 0o600))
	}
	var certificates Certificates
	require.NoError(t, certificates.Load(directory))
	hub := protocol.NewHub("life")
	server := httptest.NewUnstartedServer(ControlHandler(hub, nil))
	server.TLS = certificates.TLS()
	server.StartTLS()
	defer server.Close()

	client := func(authority map[string][]byte, name string) *tls.Config {
		data, err := pki.EnsureClient(authority, nil, name, now)
		require.NoError(t, err)
		settings, err := pki.ClientConfig(data, naming.ServiceHost(naming.PodsService("db"), "t"))
		require.NoError(t, err)
		return settings
	}
	ask := func(settings *tls.Config) error {
		response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: settings}}).Get(server.URL + protocol.PathStatus)
		if err == nil {
			assert.Equal(t, http.StatusOK, response.StatusCode)
			_, err = io.Copy(io.Discard, response.Body)
		}
		return err
	}
	assert.NoError(t, ask(client(ca, naming.OperatorCommonName)))
	assert.NoError(t, ask(client(ca, naming.UserReplication)))
	assert.Error(t, ask(client(ca, "app")), "another purpose")
	stranger := client(other, naming.OperatorCommonName)
	stranger.RootCAs = client(ca, naming.OperatorCommonName).RootCAs
	assert.Error(t, ask(stranger), "another cluster's authority")
	anonymous := client(ca, naming.OperatorCommonName)
	anonymous.Certificates = nil
	assert.Error(t, ask(anonymous))
}

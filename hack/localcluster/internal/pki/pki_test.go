package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCertificatesVerify(t *testing.T) {
	authority, err := NewAuthority("test")
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority.Certificate))

	server, err := authority.Issue(Subject{Name: "s", Hosts: []string{"example.org", "192.0.2.1"}})
	require.NoError(t, err)
	client, err := authority.Issue(Subject{Name: "c", Groups: []string{"g"}})
	require.NoError(t, err)

	pair, err := tls.X509KeyPair(server.Certificate, server.Key)
	require.NoError(t, err)
	for _, host := range []string{"example.org", "192.0.2.1"} {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		assert.NoError(t, err, host)
	}
	pair, err = tls.X509KeyPair(client.Certificate, client.Key)
	require.NoError(t, err)
	assert.Equal(t, []string{"g"}, pair.Leaf.Subject.Organization)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots})
	assert.Error(t, err, "a client's certificate does not make a server")
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	assert.NoError(t, err)
}

func TestKeysAreForTheOwnerAlone(t *testing.T) {
	authority, err := NewAuthority("test")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "pki")
	require.NoError(t, authority.Write(dir, "ca"))
	info, err := os.Stat(filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())
}

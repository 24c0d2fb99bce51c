package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/internal/naming"
)

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func verify(t *testing.T, bundle, leaf []byte, at time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(bundle))
	certificate, err := parseCertificate(leaf)
	require.NoError(t, err)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

func TestAuthorityAndCertificatesStayUntilTheirTime(t *testing.T) {
	ca, err := EnsureCA(nil, "db", start)
	require.NoError(t, err)
	again, err := EnsureCA(ca, "db", start.Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, ca, again)

	names := naming.ServerDNSNames("db", "t")
	server, err := EnsureServer(ca, nil, names, start)
	require.NoError(t, err)
	require.NoError(t, verify(t, server[naming.KeyCACert], server[naming.KeyTLSCert], start))
	kept, err := EnsureServer(ca, server, names, start.Add(50*24*time.Hour))
	require.NoError(t, err)
	assert.Equal(t, server, kept)

	renewed, err := EnsureServer(ca, server, names, start.Add(61*24*time.Hour))
	require.NoError(t, err)
	assert.NotEqual(t, server[naming.KeyTLSCert], renewed[naming.KeyTLSCert], "a third of its life is left")

	other, err := EnsureServer(ca, server, append(names, "more"), start)
	require.NoError(t, err)
	assert.NotEqual(t, server[naming.KeyTLSCert], other[naming.KeyTLSCert], "a name is missing")
}

func TestNewAuthorityOverlapsWithTheOld(t *testing.T) {
	ca, err := EnsureCA(nil, "db", start)
	require.NoError(t, err)
	late := start.Add(authorityLife - certificateLife + time.Hour)
	old, err := EnsureClient(ca, nil, naming.UserReplication, late)
	require.NoError(t, err)
	next, err := EnsureCA(ca, "db", late)
	require.NoError(t, err)
	require.NotEqual(t, ca[naming.KeyTLSCert], next[naming.KeyTLSCert])
	assert.NoError(t, verify(t, next[naming.KeyCACert], old[naming.KeyTLSCert], late), "who trusts the new bundle trusts old certificates")
	kept, err := EnsureClient(next, old, naming.UserReplication, late)
	require.NoError(t, err)
	assert.Equal(t, old[naming.KeyTLSCert], kept[naming.KeyTLSCert], "peers that do not know the new authority yet still accept it")
	assert.Equal(t, next[naming.KeyCACert], kept[naming.KeyCACert], "and everybody gets to know the new authority")
	later := late.Add(61 * 24 * time.Hour)
	renewed, err := EnsureClient(next, kept, naming.UserReplication, later)
	require.NoError(t, err)
	assert.NoError(t, verify(t, next[naming.KeyTLSCert], renewed[naming.KeyTLSCert], later), "its successor is the new authority's")
	other, err := EnsureCA(nil, "db", late)
	require.NoError(t, err)
	foreign, err := EnsureClient(other, kept, naming.UserReplication, late)
	require.NoError(t, err)
	assert.NoError(t, verify(t, other[naming.KeyCACert], foreign[naming.KeyTLSCert], late), "one of an unknown authority is replaced")
}

func TestUnreadableAuthorityIsNeverReplaced(t *testing.T) {
	ca, err := EnsureCA(nil, "db", start)
	require.NoError(t, err)
	other, err := EnsureCA(nil, "db", start)
	require.NoError(t, err)
	for name, data := range map[string]map[string][]byte{
		"garbage":       {naming.KeyTLSCert: []byte("x"), naming.KeyTLSKey: []byte("y")},
		"key missing":   {naming.KeyTLSCert: ca[naming.KeyTLSCert]},
		"key of others": {naming.KeyTLSCert: ca[naming.KeyTLSCert], naming.KeyTLSKey: other[naming.KeyTLSKey]},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := EnsureCA(data, "db", start)
			assert.Error(t, err)
		})
	}
}

func TestControlClientIsAcceptedByTheServer(t *testing.T) {
	ca, err := EnsureCA(nil, "db", time.Now())
	require.NoError(t, err)
	host := naming.ServiceHost(naming.PodsService("db"), "t")
	server, err := EnsureServer(ca, nil, naming.ServerDNSNames("db", "t"), time.Now())
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(server[naming.KeyTLSCert], server[naming.KeyTLSKey])
	require.NoError(t, err)
	client, err := ControlClient(ca, host, time.Now())
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca[naming.KeyCACert])
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair},
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13})
	require.NoError(t, err)
	defer listener.Close()
	names := make(chan string, 1)
	go func() {
		connection, err := listener.Accept()
		if err == nil && connection.(*tls.Conn).Handshake() == nil {
			names <- connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
		}
	}()
	connection, err := tls.Dial("tcp", listener.Addr().String(), client)
	require.NoError(t, err)
	defer connection.Close()
	assert.Equal(t, naming.OperatorCommonName, <-names)
}

func TestControlClientIsMadeAnewBeforeItEnds(t *testing.T) {
	ca, err := EnsureCA(nil, "db", start)
	require.NoError(t, err)
	assert.Equal(t, ControlClientKey(ca, start), ControlClientKey(ca, start), "the same for the same time")
	for day := range 40 {
		made := start.AddDate(0, 0, day)
		assert.NotEqual(t, ControlClientKey(ca, made), ControlClientKey(ca, made.Add(certificateLife/3)), "made on day %d", day)
	}
	other, err := EnsureCA(nil, "db", start)
	require.NoError(t, err)
	assert.NotEqual(t, ControlClientKey(ca, start), ControlClientKey(other, start), "another authority")
}

func TestPasswordsDiffer(t *testing.T) {
	one, err := NewPassword()
	require.NoError(t, err)
	other, err := NewPassword()
	require.NoError(t, err)
	assert.Len(t, one, passwordLength)
	assert.NotEqual(t, one, other)
}

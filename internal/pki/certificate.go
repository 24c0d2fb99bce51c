package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/my-org/postgres-operator/internal/naming"
)

// EnsureServer returns the data of the server certificate's Secret, made anew if
// it is missing, lacks a name, was signed by an authority that is not trusted (any
// more) or has less than a third of its life left.
//
// A certificate of a predecessor that is still trusted stays until its own time:
// by then everybody has got to know the new authority, which reaches them all at
// once with no certificate of its own.
func EnsureServer(ca, existing map[string][]byte, dnsNames []string, now time.Time) (map[string][]byte, error) {
	return ensure(ca, existing, &x509.Certificate{
		Subject:     pkix.Name{CommonName: naming.ServerCommonName},
		DNSNames:    dnsNames,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now)
}

// EnsureClient returns the data of a client certificate's Secret, like
// EnsureServer.
func EnsureClient(ca, existing map[string][]byte, commonName string, now time.Time) (map[string][]byte, error) {
	return ensure(ca, existing, &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now)
}

func ensure(ca, existing map[string][]byte, template *x509.Certificate, now time.Time) (map[string][]byte, error) {
	signer, err := parseAuthority(ca)
	if err != nil {
		return nil, err
	}
	if good(signer, existing, template, now) {
		if bytes.Equal(existing[naming.KeyCACert], signer.bundle) {
			return existing, nil
		}
		return map[string][]byte{
			naming.KeyTLSCert: existing[naming.KeyTLSCert],
			naming.KeyTLSKey:  existing[naming.KeyTLSKey],
			naming.KeyCACert:  signer.bundle,
		}, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of %q: %w", template.Subject.CommonName, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.NotBefore = now.Add(-backdate)
	template.NotAfter = now.Add(certificateLife)
	data, err := issue(template, signer.certificate, key, signer.key)
	if err != nil {
		return nil, err
	}
	data[naming.KeyCACert] = signer.bundle
	return data, nil
}

// good tells whether an existing certificate can stay. One that cannot be read
// is no use to anybody and is replaced.
func good(signer *authority, existing map[string][]byte, template *x509.Certificate, now time.Time) bool {
	if _, err := tls.X509KeyPair(existing[naming.KeyTLSCert], existing[naming.KeyTLSKey]); err != nil {
		return false
	}
	certificate, err := parseCertificate(existing[naming.KeyTLSCert])
	if err != nil {
		return false
	}
	return signer.trusts(certificate, now) &&
		certificate.Subject.CommonName == template.Subject.CommonName &&
		slices.Equal(certificate.DNSNames, template.DNSNames) &&
		now.Before(certificate.NotAfter.Add(-certificateLife/3))
}

// trusts tells whether an authority of the bundle that has not ended signed it.
func (a *authority) trusts(certificate *x509.Certificate, now time.Time) bool {
	for block, rest := pem.Decode(a.bundle); block != nil; block, rest = pem.Decode(rest) {
		issuer, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(issuer.NotAfter) && certificate.CheckSignatureFrom(issuer) == nil {
			return true
		}
	}
	return false
}

// ControlClient is the TLS configuration with which the operator asks the
// instances of a cluster: a client certificate made on the spot and kept in
// memory only, and trust in the cluster's own authority.
func ControlClient(ca map[string][]byte, serverName string, now time.Time) (*tls.Config, error) {
	data, err := EnsureClient(ca, nil, naming.OperatorCommonName, now)
	if err != nil {
		return nil, err
	}
	return ClientConfig(data, serverName)
}

// ControlClientKey identifies the configuration that ControlClient makes at a
// time: it changes with the authority, and every third of a certificate's life,
// so that an operator that runs for months never presents one that has ended.
func ControlClientKey(ca map[string][]byte, now time.Time) string {
	period := now.Unix() / int64(certificateLife/3/time.Second)
	return fmt.Sprintf("%d %s", period, ca[naming.KeyCACert])
}

// ClientConfig is a TLS configuration that presents the certificate of a Secret
// and trusts its ca.crt.
func ClientConfig(data map[string][]byte, serverName string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(data[naming.KeyTLSCert], data[naming.KeyTLSKey])
	if err != nil {
		return nil, fmt.Errorf("read a client certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data[naming.KeyCACert]) {
		return nil, fmt.Errorf("%s holds no certificate", naming.KeyCACert)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS13,
	}, nil
}

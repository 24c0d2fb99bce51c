package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/my-org/postgres-operator/internal/naming"
)

const (
	// authorityLife is long: clients are given the authority by hand.
	authorityLife = 10 * 365 * 24 * time.Hour
	// certificateLife is short, since certificates are renewed without a restart.
	certificateLife = 90 * 24 * time.Hour
	// backdate makes a new certificate valid for a peer whose clock is behind.
	backdate = 10 * time.Minute
)

// authority is a parsed certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// bundle is what clients trust: this authority, and a predecessor whose
	// certificates may still be in use.
	bundle []byte
}

// EnsureCA returns the data of the authority's Secret: the existing data if it is
// good, a new authority if there is none, or one that takes over when the
// existing one has less than a certificate's life left. The predecessor stays in
// ca.crt until it ends.
//
// Data that is there and cannot be read is an error, never replaced: every
// client's trust hangs on it.
func EnsureCA(existing map[string][]byte, name string, now time.Time) (map[string][]byte, error) {
	var old []byte
	if len(existing[naming.KeyTLSCert]) > 0 || len(existing[naming.KeyTLSKey]) > 0 {
		ca, err := parseAuthority(existing)
		if err != nil {
			return nil, err
		}
		if now.Add(certificateLife).Before(ca.certificate.NotAfter) {
			return existing, nil
		}
		old = stillValid(ca.bundle, now)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	data, err := issue(template, template, key, key)
	if err != nil {
		return nil, err
	}
	data[naming.KeyCACert] = append(bytes.Clone(data[naming.KeyTLSCert]), old...)
	return data, nil
}

// parseAuthority reads the data of the authority's Secret.
func parseAuthority(data map[string][]byte) (*authority, error) {
	certificate, err := parseCertificate(data[naming.KeyTLSCert])
	if err != nil {
		return nil, fmt.Errorf("the certificate authority's %s: %w", naming.KeyTLSCert, err)
	}
	block, _ := pem.Decode(data[naming.KeyTLSKey])
	if block == nil {
		return nil, fmt.Errorf("the certificate authority's %s holds no PEM block", naming.KeyTLSKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority's %s: %w", naming.KeyTLSKey, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the certificate authority's %s is a %T; an ECDSA key is needed", naming.KeyTLSKey, parsed)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.New("the certificate authority's key does not belong to its certificate")
	}
	bundle := data[naming.KeyCACert]
	if len(bundle) == 0 {
		bundle = data[naming.KeyTLSCert]
	}
	return &authority{certificate: certificate, key: key, bundle: bundle}, nil
}

// issue signs a certificate and returns it with its key in PEM.
func issue(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (map[string][]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choose a serial number: %w", err)
	}
	template.SerialNumber = serial
	signed, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key of %q: %w", template.Subject.CommonName, err)
	}
	return map[string][]byte{
		naming.KeyTLSCert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		naming.KeyTLSKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// stillValid keeps of a bundle the certificates that have not ended.
func stillValid(bundle []byte, now time.Time) []byte {
	var kept []byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(certificate.NotAfter) {
			kept = append(kept, pem.EncodeToMemory(block)...)
		}
	}
	return kept
}

func parseCertificate(encoded []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(encoded)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

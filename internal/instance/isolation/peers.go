package isolation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// maxAnswer bounds what is read of a peer's answer, in bytes.
const maxAnswer = 4 << 10

// lookupTime bounds finding a peer's address: DNS may be away as well, and the
// question has to be asked all the same.
const lookupTime = 300 * time.Millisecond

// Peers are the other members of the cluster. One goroutine at a time uses them.
type Peers struct {
	// Cluster and Namespace name the cluster.
	Cluster, Namespace string
	// TLS is the directory of the certificates.
	TLS string

	// addresses is where each was last found: when the API server is away, the
	// cluster's DNS may be too.
	addresses map[string]string
}

// Confirm asks all of them at once whether the API server is away for them as well.
// It is true only if each of them holds still, which only those do for which it is,
// or was a moment ago.
func (p *Peers) Confirm(ctx context.Context, question protocol.Question, names []string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	settings, err := p.settings()
	if err != nil {
		return false, err
	}
	type answer struct {
		name, address string
		err           error
	}
	answers := make(chan answer, len(names))
	for _, name := range names {
		known := p.addresses[name]
		go func() {
			address, err := p.ask(ctx, settings, question, name, known)
			answers <- answer{name, address, err}
		}()
	}
	var failed error
	for range names {
		got := <-answers
		if got.address != "" {
			p.remember(got.name, got.address)
		}
		if got.err != nil {
			failed = fmt.Errorf("instance %s: %w", got.name, got.err)
		}
	}
	return failed == nil, failed
}

func (p *Peers) ask(ctx context.Context, settings *tls.Config, question protocol.Question, name, known string) (string, error) {
	host := naming.InstanceHost(p.Cluster, p.Namespace, name)
	address := lookup(ctx, host)
	if address == "" {
		address = known // a peer that has moved since does not answer there, and nobody in its place
	}
	if address == "" {
		return "", fmt.Errorf("its address is not known")
	}
	verified := settings.Clone()
	verified.ServerName = host
	transport := &http.Transport{TLSClientConfig: verified, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	target := url.URL{Scheme: "https", Host: net.JoinHostPort(address, strconv.Itoa(naming.PortControl)), Path: protocol.PathConfirm,
		RawQuery: question.Values().Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), nil)
	if err != nil {
		return address, fmt.Errorf("ask: %w", err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return address, fmt.Errorf("ask: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing is lost with it
	var confirmation protocol.Confirmation
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&confirmation); err != nil {
		return address, fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case confirmation.Instance != name:
		return address, fmt.Errorf("instance %q answers in its place", confirmation.Instance)
	case !confirmation.Granted && confirmation.APIServerReachable:
		return address, fmt.Errorf("it reaches the API server")
	case !confirmation.Granted:
		return address, fmt.Errorf("it does not hold still")
	}
	return address, nil
}

// Learn looks up where the peers are, for a time when that cannot be looked up.
func (p *Peers) Learn(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, 2*lookupTime)
	defer cancel()
	for _, name := range names {
		if address := lookup(ctx, naming.InstanceHost(p.Cluster, p.Namespace, name)); address != "" {
			p.remember(name, address)
		}
	}
}

func (p *Peers) remember(name, address string) {
	if p.addresses == nil {
		p.addresses = map[string]string{}
	}
	p.addresses[name] = address
}

func lookup(ctx context.Context, host string) string {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

func (p *Peers) settings() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(p.TLS, config.FileClientCert), filepath.Join(p.TLS, config.FileClientKey))
	if err != nil {
		return nil, fmt.Errorf("load the replication certificate: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(p.TLS, config.FileCA))
	if err != nil {
		return nil, fmt.Errorf("load the certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", config.FileCA)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS13}, nil
}

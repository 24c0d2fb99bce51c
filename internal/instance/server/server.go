package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/my-org/postgres-operator/internal/instance/config"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/protocol"
)

const (
	// readTime bounds what a client may take to say what it wants.
	readTime = 10 * time.Second
	// idleTime is how long a connection may be idle.
	idleTime = 2 * time.Minute
	// closeTime bounds the end: the operator's questions are open by nature.
	closeTime = 200 * time.Millisecond
)

// Health is what the kubelet is told. It tells nothing else to anybody.
type Health interface {
	// Live: the manager is not stuck.
	Live() bool
	// Started: the manager is up, whatever PostgreSQL does.
	Started() bool
	// Ready: PostgreSQL serves in its role.
	Ready() bool
}

// HealthHandler serves /livez, /startupz and /readyz.
func HealthHandler(health Health) http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]func() bool{"/livez": health.Live, "/startupz": health.Started, "/readyz": health.Ready} {
		mux.HandleFunc("GET "+path, func(response http.ResponseWriter, _ *http.Request) {
			if !check() {
				response.WriteHeader(http.StatusServiceUnavailable)
			}
		})
	}
	return mux
}

// Confirmer answers a primary that cannot renew its Lease.
type Confirmer interface {
	Confirm(ctx context.Context, question protocol.Question) protocol.Confirmation
}

// ControlHandler serves reports, and the question of a primary that is cut off.
func ControlHandler(hub *protocol.Hub, confirmer Confirmer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+protocol.PathStatus, hub)
	mux.HandleFunc("POST "+protocol.PathConfirm, func(response http.ResponseWriter, request *http.Request) {
		answer := confirmer.Confirm(request.Context(), protocol.ParseQuestion(request.URL.Query()))
		response.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(response).Encode(answer) // the asker has gone: nobody to tell
	})
	return mux
}

// Certificates are the present certificates of the instance; they can be
// replaced while connections are open.
type Certificates struct {
	current atomic.Pointer[tls.Config]
}

// Load reads the private copies in a directory.
func (c *Certificates) Load(directory string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(directory, config.FileServerCert), filepath.Join(directory, config.FileServerKey))
	if err != nil {
		return fmt.Errorf("load the server certificate: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(directory, config.FileCA))
	if err != nil {
		return fmt.Errorf("load the certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return fmt.Errorf("%s holds no certificate", config.FileCA)
	}
	c.current.Store(&tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
		VerifyConnection: func(state tls.ConnectionState) error {
			name := state.PeerCertificates[0].Subject.CommonName
			if !slices.Contains([]string{naming.OperatorCommonName, naming.UserReplication}, name) {
				return fmt.Errorf("the certificate of %q is for something else", name)
			}
			return nil
		},
	})
	return nil
}

// Loaded tells whether there are certificates.
func (c *Certificates) Loaded() bool { return c.current.Load() != nil }

// TLS is a configuration that uses the certificates of the moment.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if current := c.current.Load(); current != nil {
				return current, nil
			}
			return nil, errors.New("no certificate yet")
		},
	}
}

// Serve serves a handler on a port until the context ends, over TLS if there is a
// configuration.
func Serve(ctx context.Context, log *slog.Logger, address string, handler http.Handler, settings *tls.Config) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	if settings != nil {
		listener = tls.NewListener(listener, settings)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readTime, IdleTimeout: idleTime, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		// Open questions end with the manager.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close()
		}
	})
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("a port is served no longer", "address", address, "error", err)
		}
	}()
	return nil
}

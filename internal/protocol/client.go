package protocol

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/my-org/postgres-operator/internal/naming"
)

const (
	// maxReport bounds what is read of an answer, in bytes.
	maxReport = 1 << 20
	// dialTime bounds connecting, the TLS handshake included: a node that is gone
	// answers nothing.
	dialTime = 3 * time.Second
)

// Client asks instances over mutual TLS and keeps one connection to each.
type Client struct {
	http *http.Client
}

// NewClient makes a client that presents the certificate of the configuration
// and verifies its server name, whatever address is dialled.
func NewClient(config *tls.Config) *Client {
	return &Client{http: &http.Client{Transport: &http.Transport{
		TLSClientConfig:     config,
		DialContext:         (&net.Dialer{Timeout: dialTime, KeepAlive: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: dialTime,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
		WriteBufferSize:     1 << 10,
		ReadBufferSize:      4 << 10,
	}}}
}

// Status asks the instance at an address for its report. With a revision, the
// answer comes when the report has another one, or after wait. The context bounds
// the whole of it.
func (c *Client) Status(ctx context.Context, host, after string, wait time.Duration) (Report, error) {
	address := url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(naming.PortControl)), Path: PathStatus}
	if after != "" {
		address.RawQuery = url.Values{"after": {after}, "wait": {wait.String()}}.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return Report{}, fmt.Errorf("ask for a report: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Report{}, fmt.Errorf("ask for a report: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing is lost with it
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if err != nil {
		return Report{}, fmt.Errorf("read a report: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return Report{}, fmt.Errorf("ask for a report: %s", response.Status)
	}
	var report Report
	if err := json.Unmarshal(body, &report); err != nil {
		return Report{}, fmt.Errorf("read a report: %w", err)
	}
	return report, nil
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

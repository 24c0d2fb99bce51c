package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// api asks the API server with the administrator's certificate.
type api struct {
	client *http.Client
	server string
}

func (c *Cluster) api() (*api, error) {
	ca, err := os.ReadFile(c.plan.Path("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.plan.Path("pki", "admin.crt"), c.plan.Path("pki", "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &api{server: c.plan.APIServer(), client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}}, nil
}

func (a *api) get(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, a.client, a.server+path)
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %.200s", url, response.Status, body)
	}
	return body, nil
}

// nodesReady maps the nodes that the API server knows to whether they are ready to run pods.
func (a *api) nodesReady(ctx context.Context) (map[string]bool, error) {
	body, err := a.get(ctx, "/api/v1/nodes")
	if err != nil {
		return nil, err
	}
	return parseNodes(body)
}

func parseNodes(body []byte) (map[string]bool, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				Taints []struct {
					Key string `json:"key"`
				} `json:"taints"`
			} `json:"spec"`
			Status struct {
				Conditions []struct {
					Type   string `json:"type"`
					Status string `json:"status"`
				} `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read list of nodes: %w", err)
	}
	ready := map[string]bool{}
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" {
				ready[node.Metadata.Name] = condition.Status == "True"
			}
		}
		for _, taint := range node.Spec.Taints {
			// These go a moment after the node says that it is ready, and until then nothing is scheduled there.
			if taint.Key == "node.kubernetes.io/not-ready" || taint.Key == "node.kubernetes.io/unreachable" {
				ready[node.Metadata.Name] = false
			}
		}
	}
	return ready, nil
}

// waitForNodes waits until every node is ready but those that are kept from it.
func (c *Cluster) waitForNodes(ctx context.Context, patience time.Duration, except map[string]Fault) error {
	a, err := c.api()
	if err != nil {
		return err
	}
	return waitFor(ctx, "the nodes to be ready", patience, func(ctx context.Context) error {
		ready, err := a.nodesReady(ctx)
		if err != nil {
			return err
		}
		var missing []string
		for _, node := range c.plan.Nodes {
			if except[node.Name] == "" && !ready[node.Name] {
				missing = append(missing, node.Name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("not ready: %s (see %s)", strings.Join(missing, ", "), c.plan.LogFile(missing[0]+"/kubelet"))
		}
		return nil
	})
}

func (c *Cluster) waitForAPIServer(ctx context.Context) error {
	a, err := c.api()
	if err != nil {
		return err
	}
	return waitFor(ctx, "the API server (see "+c.plan.LogFile("kube-apiserver")+")", time.Minute, func(ctx context.Context) error {
		_, err := a.get(ctx, "/readyz")
		return err
	})
}

func (c *Cluster) waitForEtcd(ctx context.Context) error {
	client := &http.Client{Timeout: time.Second}
	return waitFor(ctx, "etcd (see "+c.plan.LogFile("etcd")+")", 30*time.Second, func(ctx context.Context) error {
		_, err := get(ctx, client, c.plan.Etcd()+"/health")
		return err
	})
}

// apply hands manifests to the API server.
func (c *Cluster) apply(ctx context.Context, manifests ...string) error {
	args := []string{"--kubeconfig", c.plan.Kubeconfig(), "apply", "--server-side", "--force-conflicts"}
	for _, manifest := range manifests {
		args = append(args, "--filename", manifest)
	}
	cmd := exec.CommandContext(ctx, c.plan.Program("kubectl"), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("apply %v: %w", manifests, err), errors.New(strings.TrimSpace(stderr.String())))
	}
	return nil
}

//go:build envtest

package controllers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/reports"
)

const crdFile = "../config/crd/bases/db.my-domain.com_postgresclusters.yaml"

// api is the client of people and of the played world; restConfig is what
// operators are started with.
var (
	api        client.WithWatch
	restConfig *rest.Config
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), program)); err != nil {
			fmt.Fprintf(os.Stderr, "KUBEBUILDER_ASSETS must name a folder with %s: run these tests with 'make envtest' (%v)\n", program, err)
			return 1
		}
	}
	ctrl.SetLogger(logr.Discard())
	if err := dbv1alpha1.AddToScheme(scheme.Scheme); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := &envtest.Environment{CRDDirectoryPaths: []string{crdFile}, ErrorIfCRDPathMissing: true}
	config, err := server.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the API server:", err)
		return 1
	}
	defer server.Stop() //nolint:errcheck // the tests have their result
	config.QPS, config.Burst = 500, 1000
	restConfig = config
	if api, err = client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		fmt.Fprintln(os.Stderr, "make a client:", err)
		return 1
	}
	return m.Run()
}

// call is one request of an operator and its answer.
type call struct {
	method, path string
	// resource is the plural kind, with the subresource behind a slash.
	resource string
	// status is 0 if there was no answer.
	status int
	at     time.Time
}

func (c call) writes() bool { return c.method != http.MethodGet && c.method != http.MethodHead }

func (c call) event() bool { return strings.HasPrefix(c.resource, "events") }

func (c call) String() string { return fmt.Sprintf("%s %s: %d", c.method, c.path, c.status) }

// wire is the connection of one operator to the API server: it writes down each
// request, and fails those that the test wants to fail.
type wire struct {
	next http.RoundTripper
	// before may answer in the API server's place; after sees what was carried out,
	// and may lose the answer. Either may be nil.
	before func(call) (*http.Response, error)
	after  func(call) error

	mutex sync.Mutex
	cut   bool
	calls []call
}

var errCut = errors.New("the operator has died")

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	made := call{method: request.Method, path: request.URL.Path, resource: resourceOf(request.URL.Path), at: time.Now()}
	w.mutex.Lock()
	dead := w.cut
	w.mutex.Unlock()
	if dead {
		return nil, errCut
	}
	if w.before != nil {
		if response, err := w.before(made); response != nil || err != nil {
			if response != nil {
				made.status = response.StatusCode
				response.Request = request
			}
			w.record(made)
			return response, err
		}
	}
	response, err := w.next.RoundTrip(request)
	if err == nil {
		made.status = response.StatusCode
	}
	w.record(made)
	if err == nil && w.after != nil {
		if lost := w.after(made); lost != nil {
			_ = response.Body.Close()
			return nil, lost
		}
	}
	return response, err
}

func (w *wire) record(made call) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.calls = append(w.calls, made)
}

// Cut makes every later request fail, as if the process had ended.
func (w *wire) Cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.cut = true
}

// Writes are the requests since a moment that change something.
func (w *wire) Writes(since time.Time) []call {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var made []call
	for _, c := range w.calls {
		if c.writes() && c.at.After(since) {
			made = append(made, c)
		}
	}
	return made
}

// resourceOf finds the kind in a path of the API, such as "services" or
// "postgresclusters/status"; it is empty for what lies in no namespace.
func resourceOf(path string) string {
	_, inside, found := strings.Cut(path, "/namespaces/")
	parts := strings.Split(inside, "/")
	switch {
	case !found || len(parts) < 2:
		return ""
	case len(parts) > 3:
		return parts[1] + "/" + parts[3]
	}
	return parts[1]
}

// refusal is an answer of the API server with a code.
func refusal(code int, reason metav1.StatusReason) *http.Response {
	body, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "refused by the test",
	})
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// operator is one life of the operator, with its real cache, on one namespace.
type operator struct {
	*wire
	end context.CancelFunc
	// ended is closed when all of it has stopped.
	ended chan struct{}
}

// startOperator starts an operator; its instances are those of the world.
func startOperator(t *testing.T, w *world, prepare ...func(*wire)) *operator {
	t.Helper()
	o := &operator{wire: &wire{}, ended: make(chan struct{})}
	for _, p := range prepare {
		p(o.wire)
	}
	config := rest.CopyConfig(restConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		o.next = next
		return o.wire
	})
	options := DefaultRunOptions()
	options.Namespaces, options.ManagerImage = []string{w.namespace}, "registry.test/postgres-operator:1"
	options.MetricsAddress, options.ProbeAddress, options.LeaderElect = "0", "0", false
	dial := func(*tls.Config) reports.Source { return w }
	mgr, err := newManager(config, options, dial, ctrlconfig.Controller{SkipNameValidation: ptr.To(true)})
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	o.end = end
	go func() {
		defer close(o.ended)
		_ = mgr.Start(ctx) // an operator that was cut off ends with an error
	}()
	t.Cleanup(o.Stop)
	return o
}

// Stop ends the operator in good order.
func (o *operator) Stop() {
	o.end()
	<-o.ended
}

// Kill ends the operator as kill -9 would: nothing that it still does arrives.
func (o *operator) Kill() {
	o.Cut()
	o.Stop()
}

package controllers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/leases"
	"github.com/my-org/postgres-operator/controllers/internal/reports"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// RunOptions are the settings of the operator process.
type RunOptions struct {
	LeaderElect        bool
	MetricsAddress     string
	ProbeAddress       string
	Namespaces         []string
	Workers            int
	QPS                float32
	Burst              int
	PostgresRepository string
	ManagerImage       string
	LogLevel           string
}

// DefaultRunOptions are right in production; the environment gives what the
// installation knows.
func DefaultRunOptions() RunOptions {
	options := RunOptions{
		MetricsAddress:     ":8443",
		ProbeAddress:       ":8081",
		Workers:            8,
		QPS:                100,
		Burst:              200,
		PostgresRepository: "docker.io/library/postgres",
		ManagerImage:       os.Getenv("OPERATOR_IMAGE"),
		LogLevel:           "info",
	}
	for namespace := range strings.SplitSeq(os.Getenv("WATCH_NAMESPACE"), ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			options.Namespaces = append(options.Namespaces, namespace)
		}
	}
	return options
}

// Leader election and authentication of metrics.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Run runs the operator until the context ends.
func Run(ctx context.Context, options RunOptions) error {
	logger, err := newLogger(options.LogLevel)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	if options.ManagerImage == "" {
		return fmt.Errorf("the operator's own image is not known: set --operator-image or $OPERATOR_IMAGE")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	config.QPS, config.Burst = options.QPS, options.Burst
	mgr, err := NewManager(config, options)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// NewManager makes the manager with everything that runs in it.
func NewManager(config *rest.Config, options RunOptions) (manager.Manager, error) {
	dial := func(config *tls.Config) reports.Source { return protocol.NewClient(config) }
	return newManager(config, options, dial, ctrlconfig.Controller{})
}

// newManager takes what tests do otherwise: they answer for the instances, and run
// one operator after another in one process.
func newManager(config *rest.Config, options RunOptions, dial reports.Dial, controller ctrlconfig.Controller) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := dbv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(options.Namespaces),
		Controller:                    controller,
		LeaderElection:                options.LeaderElect,
		LeaderElectionID:              "postgres-operator.db.my-domain.com",
		LeaderElectionReleaseOnCancel: true, // a standby takes over at once
		HealthProbeBindAddress:        options.ProbeAddress,
		Metrics: metricsserver.Options{
			BindAddress: options.MetricsAddress, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts:        []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	collector := reports.New(dial, time.Now)
	if err := mgr.Add(collector); err != nil {
		return nil, err
	}
	tracker, err := trackLeases(mgr)
	if err != nil {
		return nil, err
	}
	assigns, err := platformAssignsIDs(mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	reconciler := &PostgresClusterReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Reports: collector, Leases: tracker, Now: time.Now,
		Recorder: mgr.GetEventRecorder("postgres-operator"),
		Options: Options{
			ManagerImage: options.ManagerImage, ManagerPullPolicy: corev1.PullIfNotPresent,
			OperatorNamespace: os.Getenv("POD_NAMESPACE"), PostgresRepository: options.PostgresRepository,
			LookupEnv: os.LookupEnv, PlatformAssignsIDs: assigns, Workers: options.Workers,
		},
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("cache", func(request *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(request.Context()) {
			return fmt.Errorf("the cache is not filled yet")
		}
		return nil
	})
}

// trackLeases makes the tracker see every event of the Leases in the cache.
func trackLeases(mgr manager.Manager) (*leases.Tracker, error) {
	tracker := leases.New(time.Now)
	informer, err := mgr.GetCache().GetInformer(context.Background(), &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch the Leases: %w", err)
	}
	if _, err := informer.AddEventHandler(tracker); err != nil {
		return nil, fmt.Errorf("watch the Leases: %w", err)
	}
	return tracker, mgr.Add(tracker)
}

// platformAssignsIDs recognises OpenShift, whose security context constraints
// choose user and group ids and refuse fixed ones.
func platformAssignsIDs(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"})
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

func newLogger(level string) (logr.Logger, error) {
	var parsed zapcore.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q: use debug, info or error", level)
	}
	return zap.New(zap.Level(parsed)), nil
}

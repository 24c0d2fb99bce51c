package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
)

// options are what a caller can choose.
type options struct {
	runs      int
	instances int
	version   string
	class     string
	namespace string
	patience  time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.runs, "runs", 5, "measured runs; one more warms the images up")
	flag.IntVar(&o.instances, "instances", 3, "instances of the cluster")
	flag.StringVar(&o.version, "version", "15.20", "PostgreSQL version")
	flag.StringVar(&o.class, "storage-class", "standard", "storage class of the volumes")
	flag.StringVar(&o.namespace, "namespace", "bench-create", "namespace that is made, used and removed")
	flag.DurationVar(&o.patience, "patience", 5*time.Minute, "how long one run may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench create:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.runs < 1 || o.instances < 1 {
		return fmt.Errorf("-runs is %d and -instances is %d; both must be at least 1", o.runs, o.instances)
	}
	b, err := connect(o)
	if err != nil {
		return err
	}
	if err := b.makeNamespace(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.removeNamespace(context.WithoutCancel(ctx))) }()
	operator, err := b.operatorMemory(ctx)
	if err != nil {
		return err
	}
	results := results{operator: operator}
	for i := range o.runs + 1 {
		measured, err := b.measure(ctx, fmt.Sprintf("bench%d", i))
		if err != nil {
			return err
		}
		if i == 0 {
			fmt.Printf("warm-up: all ready after %.1f s\n", measured.times[allReady].Seconds())
			continue
		}
		fmt.Printf("run %d of %d: first instance ready after %.1f s, all ready after %.1f s\n",
			i, o.runs, measured.times[firstReady].Seconds(), measured.times[allReady].Seconds())
		results.runs = append(results.runs, measured)
	}
	fmt.Print(results.String())
	return nil
}

// bench holds what every run needs.
type bench struct {
	options
	client client.WithWatch
}

func connect(o options) (*bench, error) {
	if err := preferBuiltTools(); err != nil {
		return nil, err
	}
	if os.Getenv("KUBECONFIG") == "" {
		path, err := output(context.Background(), "hack/cluster", "kubeconfig")
		if err != nil {
			return nil, fmt.Errorf("KUBECONFIG is not set, and there is no local cluster (make cluster-up): %w", err)
		}
		if err := os.Setenv("KUBECONFIG", path); err != nil {
			return nil, fmt.Errorf("set KUBECONFIG: %w", err)
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read KUBECONFIG %s: %w", os.Getenv("KUBECONFIG"), err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), dbv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &bench{options: o, client: c}, nil
}

// preferBuiltTools puts the kubectl that the project has built before any other.
func preferBuiltTools() error {
	cache := os.Getenv("POSTGRES_OPERATOR_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return fmt.Errorf("find the tools (or set POSTGRES_OPERATOR_CACHE): %w", err)
		}
		cache = filepath.Join(home, ".cache", "postgres-operator")
	}
	if err := os.Setenv("PATH", filepath.Join(cache, "bin")+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return fmt.Errorf("set PATH: %w", err)
	}
	return nil
}

// makeNamespace makes the namespace anew; one that a stopped run left is removed
// first, with what is in it.
func (b *bench) makeNamespace(ctx context.Context) error {
	if err := b.removeNamespace(ctx); err != nil {
		return err
	}
	err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: b.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
	if err != nil {
		return fmt.Errorf("make namespace %s: %w", b.namespace, err)
	}
	return nil
}

func (b *bench) removeNamespace(ctx context.Context) error {
	var clusters dbv1alpha1.PostgresClusterList
	if err := b.client.List(ctx, &clusters, client.InNamespace(b.namespace)); err != nil {
		return fmt.Errorf("list clusters of namespace %s: %w", b.namespace, err)
	}
	for i := range clusters.Items {
		if err := b.remove(ctx, &clusters.Items[i]); err != nil {
			return err
		}
	}
	return b.remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}})
}

// remove deletes an object and waits until it is gone.
func (b *bench) remove(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	if err := b.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", object.GetName(), err)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait until %s is gone: %w", object.GetName(), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s is gone: %w", object.GetName(), ctx.Err())
		case <-tick.C:
		}
	}
}

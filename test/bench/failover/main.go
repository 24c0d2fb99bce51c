package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/my-org/postgres-operator/test/live"
)

// options are what a caller can choose.
type options struct {
	runs                      int
	events                    string
	version, class, namespace string
	patience                  time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.runs, "runs", 7, "measured runs of each event")
	flag.StringVar(&o.events, "events", "", "events to measure, with commas between; all if empty: "+strings.Join(eventNames(), ", "))
	flag.StringVar(&o.version, "version", "15.20", "PostgreSQL version")
	flag.StringVar(&o.class, "storage-class", "standard", "storage class of the volumes")
	flag.StringVar(&o.namespace, "namespace", "bench-failover", "namespace that is made, used and removed")
	flag.DurationVar(&o.patience, "patience", 5*time.Minute, "how long one step may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench failover:", err)
		os.Exit(1)
	}
}

func eventNames() []string {
	var names []string
	for _, e := range events {
		names = append(names, e.name)
	}
	return names
}

// chosen are the events that the caller wants.
func chosen(text string) ([]event, error) {
	if text == "" {
		return events, nil
	}
	var found []event
	for name := range strings.SplitSeq(text, ",") {
		at := slices.IndexFunc(events, func(e event) bool { return e.name == name })
		if at < 0 {
			return nil, fmt.Errorf("-events names %q, which is unknown; choose from %s", name, strings.Join(eventNames(), ", "))
		}
		found = append(found, events[at])
	}
	return found, nil
}

func run(ctx context.Context, o options) (err error) {
	if o.runs < 1 {
		return fmt.Errorf("-runs is %d; it must be at least 1", o.runs)
	}
	wanted, err := chosen(o.events)
	if err != nil {
		return err
	}
	if err := live.PrepareTools(ctx); err != nil {
		return err
	}
	b := &bench{options: o}
	if err := b.makeNamespace(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.removeNamespace(context.WithoutCancel(ctx))) }()
	var all []result
	for _, e := range wanted {
		measured := b.measureEvent(ctx, e)
		all = append(all, measured)
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Print(table(all))
	return ctx.Err()
}

// bench holds what every event needs.
type bench struct {
	options
}

func (b *bench) cluster(name string) live.Cluster {
	return live.Cluster{Namespace: b.namespace, Name: name}
}

// makeNamespace makes the namespace anew; one that a stopped run left is removed
// first, with what is in it.
func (b *bench) makeNamespace(ctx context.Context) error {
	if err := b.removeNamespace(ctx); err != nil {
		return err
	}
	c := b.cluster("")
	if _, err := c.Kubectl(ctx, "create", "namespace", b.namespace); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "label", "namespace", b.namespace, "pod-security.kubernetes.io/enforce=restricted")
	return err
}

func (b *bench) removeNamespace(ctx context.Context) error {
	c, limit := b.cluster(""), "--timeout="+b.patience.String()
	if _, err := c.Kubectl(ctx, "delete", "postgresclusters", "--all", limit); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "delete", "namespace", b.namespace, "--ignore-not-found", limit)
	return err
}

// manifest of the cluster of an event.
func (b *bench) manifest(e event, nodes []string) string {
	text := fmt.Sprintf(`apiVersion: db.my-domain.com/v1alpha1
kind: PostgresCluster
metadata:
  name: %s
spec:
  replicas: 3
  postgresVersion: %q
  storage: {size: 512Mi, storageClassName: %s}
`, e.name, b.version, b.class)
	if e.twoNodes {
		text += fmt.Sprintf(`  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {cluster: %s}}}
`, strings.Join(nodes, ", "), e.name)
	}
	return text
}

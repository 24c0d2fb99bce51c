package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Cluster is one PostgresCluster of a live Kubernetes cluster.
type Cluster struct {
	Namespace, Name string
}

// OperatorNamespace is where hack/deploy.sh installs the operator.
const OperatorNamespace = "postgres-operator-system"

// Kubectl runs kubectl in the cluster's namespace.
func (c Cluster) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	return c.kubectl(ctx, "", arguments...)
}

// Apply applies a manifest.
func (c Cluster) Apply(ctx context.Context, manifest string) error {
	_, err := c.kubectl(ctx, manifest, "apply", "--filename", "-")
	return err
}

func (c Cluster) kubectl(ctx context.Context, input string, arguments ...string) (string, error) {
	return command(ctx, input, "kubectl", append([]string{"--namespace", c.Namespace}, arguments...)...)
}

func command(ctx context.Context, input, name string, arguments ...string) (string, error) {
	run := exec.CommandContext(ctx, name, arguments...)
	run.Stdin = strings.NewReader(input)
	var output, faults bytes.Buffer
	run.Stdout, run.Stderr = &output, &faults
	if err := run.Run(); err != nil {
		return output.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(faults.String()))
	}
	return strings.TrimSpace(output.String()), nil
}

// Await asks until the answer is yes, an error ends it, or the context is over.
func Await(ctx context.Context, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err := holds()
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waited in vain until %s: %w", what, ctx.Err()), err)
		case <-tick.C:
		}
	}
}

// Primary is the primary of a cluster: its instance, its pod and where that runs.
type Primary struct {
	Instance, Pod, UID, Node string
}

// FindPrimary waits until exactly one pod has the primary's role and is the
// instance that the status names.
func (c Cluster) FindPrimary(ctx context.Context) (Primary, error) {
	var found Primary
	err := Await(ctx, "cluster "+c.Name+" has a primary", func() (bool, error) {
		text, err := c.Kubectl(ctx, "get", "pods", "--selector", "cluster="+c.Name+",db.my-domain.com/role=primary", "--output",
			`jsonpath={range .items[*]}{.metadata.labels.db\.my-domain\.com/instance} {.metadata.name} {.metadata.uid} {.spec.nodeName} {end}`)
		if err != nil {
			return false, err
		}
		current, err := c.Status(ctx, "currentPrimary")
		if err != nil {
			return false, err
		}
		fields := strings.Fields(text)
		if len(fields) != 4 || fields[0] != current {
			return false, fmt.Errorf("status.currentPrimary is %q, pods with the primary's role: %q", current, text)
		}
		found = Primary{Instance: fields[0], Pod: fields[1], UID: fields[2], Node: fields[3]}
		return true, nil
	})
	return found, err
}

// PodOf is the running pod of an instance: its name, UID and node, under the same
// names as a primary's.
func (c Cluster) PodOf(ctx context.Context, instance string) (Primary, error) {
	text, err := c.Kubectl(ctx, "get", "pods", "--selector", "db.my-domain.com/instance="+instance, "--field-selector", "status.phase=Running",
		"--output", "jsonpath={.items[0].metadata.name} {.items[0].metadata.uid} {.items[0].spec.nodeName}")
	if err != nil {
		return Primary{}, err
	}
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return Primary{}, fmt.Errorf("instance %s has no running pod: %q", instance, text)
	}
	return Primary{Instance: instance, Pod: fields[0], UID: fields[1], Node: fields[2]}, nil
}

// Status is a field of the cluster's status.
func (c Cluster) Status(ctx context.Context, path string) (string, error) {
	return c.Kubectl(ctx, "get", "postgrescluster", c.Name, "--output", "jsonpath={.status."+path+"}")
}

// Settled waits until every instance is there and well: the primary's change is
// over, and as many replicas stream as there should be.
func (c Cluster) Settled(ctx context.Context) error {
	return Await(ctx, "cluster "+c.Name+" is well", func() (bool, error) {
		text, err := c.Kubectl(ctx, "get", "postgrescluster", c.Name, "--output",
			`jsonpath={.spec.replicas}/{.status.readyInstances}/{.status.conditions[?(@.type=="Ready")].status}/{.status.primaryChange.number}`)
		if err != nil {
			return false, err
		}
		parts := strings.Split(text, "/")
		if len(parts) != 4 || parts[0] != parts[1] || parts[2] != "True" || parts[3] != "" {
			return false, fmt.Errorf("instances/ready/Ready/change: %s", text)
		}
		primary, err := c.FindPrimary(ctx)
		if err != nil {
			return false, err
		}
		streaming, err := c.SQL(ctx, primary.Pod, "postgres", "select 1 + count(*) from pg_stat_replication where state = 'streaming' and application_name like '"+c.Name+"-%'")
		if err != nil {
			return false, err
		}
		return streaming == parts[0], fmt.Errorf("%s of %s instances serve or stream", streaming, parts[0])
	})
}

// SQL runs SQL as the superuser in an instance's pod.
func (c Cluster) SQL(ctx context.Context, pod, database, query string) (string, error) {
	return c.Kubectl(ctx, "exec", pod, "--container", "postgres", "--", "psql", "--no-psqlrc", "--tuples-only", "--no-align",
		"--set", "ON_ERROR_STOP=1", "--command", query, database)
}

// PrepareTools puts the tools that the project builds before any others, and makes
// KUBECONFIG that of the local cluster if it is not set.
func PrepareTools(ctx context.Context) error {
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
	if os.Getenv("KUBECONFIG") != "" {
		return nil
	}
	path, err := localCluster(ctx, "kubeconfig")
	if err != nil {
		return fmt.Errorf("KUBECONFIG is not set, and there is no local cluster (make cluster-up): %w", err)
	}
	if err := os.Setenv("KUBECONFIG", path); err != nil {
		return fmt.Errorf("set KUBECONFIG: %w", err)
	}
	return nil
}

// localCluster runs hack/cluster of the tree that the working folder is in.
func localCluster(ctx context.Context, arguments ...string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the tree: %w", err)
	}
	for ; ; folder = filepath.Dir(folder) {
		program := filepath.Join(folder, "hack", "cluster")
		if _, err := os.Stat(program); err == nil {
			return command(ctx, "", program, arguments...)
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("hack/cluster is in none of the folders above; run this inside the project's tree")
		}
	}
}

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

// KillPostmaster ends the server of a pod with SIGKILL; process 1 goes on.
func (c Cluster) KillPostmaster(ctx context.Context, pod string) error {
	_, err := c.Kubectl(ctx, "exec", pod, "--container", "postgres", "--", "bash", "-c", "kill -9 $(head -1 $PGDATA/postmaster.pid)")
	return err
}

// KillContainer ends process 1 of a pod's containers with SIGKILL from outside:
// inside, the kernel protects it. It works on the local cluster, whose nodes are on
// this machine.
func KillContainer(podUID string) error {
	var killed int
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, folder := range processes {
		if !isManager(folder, podUID) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return fmt.Errorf("process %s: %w", folder, err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill process %d of pod %s: %w", pid, podUID, err)
		}
		killed++
	}
	if killed == 0 {
		return fmt.Errorf("pod %s has no process 1 on this machine; this fault needs the local cluster, and root", podUID)
	}
	return nil
}

// isManager tells whether a process is the instance manager of a pod: in one of its
// control groups, and process 1 in its own process namespace. The pause process of
// the sandbox is that too, and is told apart by its program.
func isManager(folder, podUID string) bool {
	groups, err := os.ReadFile(filepath.Join(folder, "cgroup"))
	if err != nil {
		return false // it has ended
	}
	if text := string(groups); !strings.Contains(text, "pod"+podUID) && !strings.Contains(text, "pod"+strings.ReplaceAll(podUID, "-", "_")) {
		return false
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return false
	}
	inner, name := "", ""
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if fields := strings.Fields(value); len(fields) > 0 {
				inner = fields[len(fields)-1]
			}
		}
		if value, ok := strings.CutPrefix(line, "Name:"); ok {
			name = strings.TrimSpace(value)
		}
	}
	return inner == "1" && name != "pause"
}

// DeletePod deletes a pod as a person does, without waiting.
func (c Cluster) DeletePod(ctx context.Context, pod string) error {
	_, err := c.Kubectl(ctx, "delete", "pod", pod, "--wait=false")
	return err
}

// ForceDeletePod deletes a pod without grace: the API server forgets it at once.
func (c Cluster) ForceDeletePod(ctx context.Context, pod string) error {
	_, err := c.Kubectl(ctx, "delete", "pod", pod, "--wait=false", "--grace-period=0", "--force")
	return err
}

// Switchover asks for a planned change of the primary; to nobody in particular if
// the target is empty.
func (c Cluster) Switchover(ctx context.Context, target string) error {
	_, err := c.Kubectl(ctx, "annotate", "postgrescluster", c.Name, "--overwrite", "db.my-domain.com/switchover="+target)
	return err
}

// Node does to a node of the local cluster: freeze, kill, cut or heal.
func Node(ctx context.Context, fault, node string) error {
	_, err := localCluster(ctx, "node", fault, node)
	return err
}

// APIServer stops or starts the API server of the local cluster.
func APIServer(ctx context.Context, verb string) error {
	_, err := localCluster(ctx, "apiserver", verb)
	return err
}

// Healthy waits until the local cluster has no fault and all its nodes are ready.
func Healthy(ctx context.Context) error {
	return Await(ctx, "the local cluster is well", func() (bool, error) {
		_, err := localCluster(ctx, "status")
		return err == nil, err
	})
}

// operatorLease is where the operator's replicas agree which of them acts.
type operatorLease struct {
	Items []struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	} `json:"items"`
}

// OperatorLeader is the pod of the operator that acts now, and its node.
func OperatorLeader(ctx context.Context) (pod, node string, err error) {
	operator := Cluster{Namespace: OperatorNamespace}
	text, err := operator.Kubectl(ctx, "get", "leases", "--output", "yaml")
	if err != nil {
		return "", "", err
	}
	var leases operatorLease
	if err := yaml.Unmarshal([]byte(text), &leases); err != nil {
		return "", "", fmt.Errorf("read the operator's Lease: %w", err)
	}
	for _, lease := range leases.Items {
		holder, _, _ := strings.Cut(lease.Spec.HolderIdentity, "_")
		if holder == "" {
			continue
		}
		node, err := operator.Kubectl(ctx, "get", "pod", holder, "--output", "jsonpath={.spec.nodeName}")
		return holder, node, err
	}
	return "", "", fmt.Errorf("no operator leads in namespace %s", OperatorNamespace)
}

// KillOperator force-deletes all pods of the operator: nobody decides anything
// until new ones have started.
func KillOperator(ctx context.Context) error {
	_, err := Cluster{Namespace: OperatorNamespace}.Kubectl(ctx, "delete", "pods", "--selector", "control-plane=controller-manager",
		"--grace-period=0", "--force", "--wait=false")
	return err
}

// MoveOperatorFrom sees to it that the operator that acts is not on a node: its
// pod there is deleted, and another one takes over.
func MoveOperatorFrom(ctx context.Context, node string) error {
	return Await(ctx, "the operator acts elsewhere than on "+node, func() (bool, error) {
		pod, at, err := OperatorLeader(ctx)
		if err != nil || at != node {
			return err == nil && at != "", err
		}
		return false, Cluster{Namespace: OperatorNamespace}.DeletePod(ctx, pod)
	})
}

// FillDisk writes a file into an instance's volume until nothing more fits.
func (c Cluster) FillDisk(ctx context.Context, pod string) error {
	_, err := c.Kubectl(ctx, "exec", pod, "--container", "postgres", "--", "bash", "-c",
		"dd if=/dev/zero of=$PGDATA/../filler bs=1M 2>/dev/null; dd if=/dev/zero bs=4k >>$PGDATA/../filler 2>/dev/null; sync $PGDATA/../filler; true")
	return err
}

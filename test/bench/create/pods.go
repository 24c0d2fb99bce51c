package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/my-org/postgres-operator/internal/naming"
)

// readPods adds what only the instances know: the steps in their logs, on the
// clock of their node, and the memory of process 1.
func (b *bench) readPods(ctx context.Context, m *measurement, pods map[string]*corev1.Pod) error {
	for _, pod := range pods {
		log, err := b.kubectl(ctx, "logs", pod.Name, "--container", naming.ContainerPostgres)
		if err != nil {
			return err
		}
		m.readLog(log)
		status, err := b.kubectl(ctx, "exec", pod.Name, "--container", naming.ContainerPostgres, "--", "cat", "/proc/1/status")
		if err != nil {
			return err
		}
		resident, err := processMemory(status, "VmRSS:")
		if err != nil {
			return fmt.Errorf("memory of the instance manager in pod %s: %w", pod.Name, err)
		}
		private, err := processMemory(status, "RssAnon:")
		if err != nil {
			return fmt.Errorf("memory of the instance manager in pod %s: %w", pod.Name, err)
		}
		m.managers = append(m.managers, resident)
		m.managersPrivate = append(m.managersPrivate, private)
	}
	return nil
}

// readLog finds the milestones in the log of an instance. Of several replicas the
// last counts.
func (m *measurement) readLog(log string) {
	last := func(step milestone, at time.Time) {
		m.times[step] = max(m.times[step], at.Sub(m.began))
	}
	served, cloning := false, false
	for line := range strings.Lines(log) {
		var entry struct {
			Time         time.Time
			Msg, Program string
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue // not one of the manager's lines
		}
		switch {
		case entry.Program == "postgres" && !served && strings.HasPrefix(entry.Msg, "starting PostgreSQL"):
			served = true
			if !cloning {
				last(initdbDone, entry.Time)
			}
		case entry.Program == "pg_basebackup" && !cloning:
			cloning = true
			last(cloneStarted, entry.Time)
		case entry.Program == "pg_basebackup" && strings.Contains(entry.Msg, "base backup completed"):
			last(cloneFinished, entry.Time)
		}
	}
}

// operatorMemory is the largest memory of the operator's pods, as their kubelets
// report it: private, and with the pages of the program in use. It is asked for before the first cluster exists.
func (b *bench) operatorMemory(ctx context.Context) (memory, error) {
	pods, err := b.kubectl(ctx, "get", "pods", "--all-namespaces", "--selector", "control-plane=controller-manager",
		"--output", `jsonpath={range .items[*]}{.spec.nodeName} {.metadata.name}{"\n"}{end}`)
	if err != nil {
		return memory{}, err
	}
	var largest memory
	for line := range strings.Lines(pods) {
		node, pod, _ := strings.Cut(strings.TrimSpace(line), " ")
		summary, err := b.kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+node+"/proxy/stats/summary")
		if err != nil {
			return memory{}, err
		}
		used, err := podMemory([]byte(summary), pod)
		if err != nil {
			return memory{}, fmt.Errorf("memory of the operator on node %s: %w", node, err)
		}
		largest = memory{private: max(largest.private, used.private), working: max(largest.working, used.working)}
	}
	if largest.private == 0 {
		return memory{}, errors.New("no memory of an operator's pod found (label control-plane=controller-manager); run make deploy")
	}
	return largest, nil
}

// memory of a pod, in bytes: what only it has, and with the file pages in use.
type memory struct{ private, working int64 }

// podMemory finds the memory of a pod's containers in a kubelet's summary.
func podMemory(summary []byte, pod string) (memory, error) {
	var content struct {
		Pods []struct {
			PodRef     struct{ Name string }
			Containers []struct {
				Memory struct{ RSSBytes, WorkingSetBytes int64 }
			}
		}
	}
	if err := json.Unmarshal(summary, &content); err != nil {
		return memory{}, fmt.Errorf("read the kubelet's summary: %w", err)
	}
	var total memory
	for _, candidate := range content.Pods {
		for _, container := range candidate.Containers {
			if candidate.PodRef.Name == pod {
				total.private += container.Memory.RSSBytes
				total.working += container.Memory.WorkingSetBytes
			}
		}
	}
	return total, nil
}

// processMemory reads a field of a /proc/PID/status, in bytes.
func processMemory(status, field string) (int64, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read %s %w", field, err)
			}
			return kilobytes << 10, nil
		}
	}
	return 0, fmt.Errorf("no %s in the process's status", field)
}

func (b *bench) kubectl(ctx context.Context, arguments ...string) (string, error) {
	return output(ctx, "kubectl", append([]string{"--namespace", b.namespace}, arguments...)...)
}

func output(ctx context.Context, name string, arguments ...string) (string, error) {
	text, err := exec.CommandContext(ctx, name, arguments...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// marker is in the environment of every process that Start starts, and so of its children too. It is how processes are
// found again: a list in a file would be wrong after a crash.
const marker = "POSTGRES_OPERATOR_CLUSTER_PROCESS"

// Running is a process that was started here.
type Running struct {
	Name string
	PID  int
	// Memory is what it holds in RAM, in bytes.
	Memory int64
	Since  time.Time
}

// Command is a program to start.
type Command struct {
	Name    string
	Program string
	Args    []string
	// Netns is the network namespace, or empty for the machine's own.
	Netns string
	// Cgroup is entered before the program starts, so that no child of it is ever outside.
	Cgroup  string
	LogFile string
	// Env is added to the environment.
	Env []string
}

// Start starts a program that outlives its starter. It goes through EnterAndExec in a second copy of this program.
func Start(c Command) error {
	if err := os.MkdirAll(filepath.Dir(c.LogFile), 0o755); err != nil {
		return fmt.Errorf("start %s: make folder for its log: %w", c.Name, err)
	}
	log, err := os.OpenFile(c.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: open its log: %w", c.Name, err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start %s: find the starter: %w", c.Name, err)
	}
	cmd := exec.Command(self, append([]string{"enter-and-exec", c.Netns, c.Cgroup, c.Program}, c.Args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.Env = append(cleanEnvironment(os.Environ()), c.Env...)
	cmd.Env = append(cmd.Env, marker+"="+c.Name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	return cmd.Process.Release()
}

// cleanEnvironment keeps what programs need anywhere. The rest of a developer's environment (a KUBECONFIG, a proxy, Go's
// settings) must not decide how a cluster behaves.
func cleanEnvironment(environment []string) []string {
	kept := []string{"HOME=/root"}
	for _, entry := range environment {
		if name, _, _ := strings.Cut(entry, "="); name == "LANG" || name == "TZ" {
			kept = append(kept, entry)
		}
	}
	return kept
}

// EnterAndExec puts the calling process into a control group and a network namespace and then becomes the program.
// Nothing but the program's own end returns from it.
func EnterAndExec(netns, cgroup, program string, args []string) error {
	cgroups, err := FindCgroups()
	if err != nil {
		return err
	}
	if err := cgroups.Enter(cgroup); err != nil {
		return err
	}
	if netns != "" {
		runtime.LockOSThread() // a namespace belongs to a thread, and this thread is the one that becomes the program
		file, err := os.Open(NetnsPath(netns))
		if err != nil {
			return fmt.Errorf("open network namespace %s: %w", netns, err)
		}
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", netns, err)
		}
		_ = file.Close()
	}
	if err := unix.Exec(program, append([]string{program}, args...), os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// FindProcesses lists the processes that Start has started, with their children.
func FindProcesses() ([]Running, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []Running
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue // it has ended since
		}
		if name, found := markerOf(string(environment)); found {
			out = append(out, describe(name, pid))
		}
	}
	return out, nil
}

func markerOf(environment string) (string, bool) {
	for entry := range strings.SplitSeq(environment, "\x00") {
		if name, found := strings.CutPrefix(entry, marker+"="); found {
			return name, true
		}
	}
	return "", false
}

func describe(name string, pid int) Running {
	r := Running{Name: name, PID: pid}
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if info, err := os.Stat(dir); err == nil {
		r.Since = info.ModTime()
	}
	if statm, err := os.ReadFile(filepath.Join(dir, "statm")); err == nil {
		if fields := strings.Fields(string(statm)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			r.Memory = pages * int64(os.Getpagesize())
		}
	}
	return r
}

// IsProgram tells whether a process runs a program, as opposed to being a child that runs another one.
func IsProgram(pid int, program string) bool {
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	first, _, _ := strings.Cut(string(cmdline), "\x00")
	return err == nil && first == program
}

// Kill ends processes and waits until they are gone.
func Kill(pids []int) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var left []int
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); errors.Is(err, unix.ESRCH) || isZombie(pid) {
				continue
			}
			left = append(left, pid)
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v are still there 20 s after SIGKILL", left)
		}
	}
}

// isZombie tells whether a process has ended and only waits for its parent to ask how.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

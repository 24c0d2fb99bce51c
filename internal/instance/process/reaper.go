package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Supervisor starts programs and reaps orphans.
//
// Process 1 inherits every orphan of the pod, and must wait for it or it stays a
// zombie. Whoever waits for "any child" would also take the exit status of the
// programs that this process started itself and waits for by name. So the
// supervisor looks at who has ended without taking it, leaves its own children
// to their waiters, and takes the others.
type Supervisor struct {
	mutex    sync.Mutex
	children map[int]bool
}

// NewSupervisor makes this process the parent of its descendants' orphans, as
// process 1 is by nature.
func NewSupervisor() *Supervisor {
	// Fails only on kernels that lack it; as process 1 it is not needed.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return &Supervisor{children: map[int]bool{}}
}

// Start starts a program as a child that somebody waits for by calling the
// returned function.
func (s *Supervisor) Start(command *exec.Cmd) (wait func() error, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock() // so that the reaper cannot see the child before it is known
	if err := command.Start(); err != nil {
		return nil, err
	}
	pid := command.Process.Pid
	s.children[pid] = true
	return func() error {
		err := command.Wait()
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.children, pid)
		return err
	}, nil
}

// Run starts a program and waits for its end.
func (s *Supervisor) Run(command *exec.Cmd) error {
	wait, err := s.Start(command)
	if err != nil {
		return err
	}
	return wait()
}

// Reap reaps orphans until the context ends.
func (s *Supervisor) Reap(ctx context.Context) {
	ended := make(chan os.Signal, 16)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	// Signals of the same kind are merged, and one that stands behind a child of
	// ours in the kernel's list is found only later.
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, pid := range s.orphans() {
			var status unix.WaitStatus
			_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-tick.C:
		}
	}
}

// EndOrphans ends what a dead postmaster has left, and returns when nothing of
// it runs. Until then its shared memory is in use, and no new postmaster can
// start.
func (s *Supervisor) EndOrphans() {
	for signalNow := unix.SIGQUIT; ; {
		orphans := s.orphans()
		if len(orphans) == 0 {
			return
		}
		for _, pid := range orphans {
			if err := unix.Kill(pid, signalNow); errors.Is(err, unix.ESRCH) {
				continue
			}
			var status unix.WaitStatus
			_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the kernel tells nobody when the last of them is gone
		signalNow = unix.SIGKILL
	}
}

// orphans are the children of this process that it did not start itself.
func (s *Supervisor) orphans() []int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var orphans []int
	for _, pid := range descendants() {
		if !s.children[pid] {
			orphans = append(orphans, pid)
		}
	}
	return orphans
}

// descendants are the direct children of this process, ended ones included.
func descendants() []int {
	var pids []int
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, word := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if len(lists) > 0 {
		return pids
	}
	// Kernels that keep no such lists (CONFIG_PROC_CHILDREN; gVisor): ask everybody.
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range processes {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// "pid (name) state parent …"; the name may hold anything.
		rest := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if len(rest) > 1 && rest[1] == strconv.Itoa(os.Getpid()) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

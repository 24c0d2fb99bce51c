package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Postmaster is a running PostgreSQL server.
type Postmaster struct {
	process *os.Process
	data    string
	done    chan struct{}
	err     error
}

// StartPostmaster starts the server. What it says goes to log. The files are
// inherited: the volume's lock is among them. The log is closed before Done is, so
// that the server's last words are known by then.
//
// The caller holds the lock of the volume, so no other server can be alive on it:
// a postmaster.pid that is there is left over, and its number may be some other
// process's by now, which PostgreSQL would take for a server. It is removed.
func (s *Supervisor) StartPostmaster(binaries Binaries, data string, arguments []string, log io.WriteCloser, inherit ...*os.File) (*Postmaster, error) {
	if err := s.Clear(data); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	command := exec.Command(binaries.Path("postgres"), append([]string{"-D", data}, arguments...)...)
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = inherit
	// A group of its own: a signal to the manager's group is the manager's business.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Backends inherit the pipe of the log; the end of the server is the end of
	// the postmaster, not of the last of them.
	command.WaitDelay = 100 * time.Millisecond
	wait, err := s.Start(command)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), log.Close())
	}
	postmaster := &Postmaster{process: command.Process, data: data, done: make(chan struct{})}
	go func() {
		postmaster.err = wait()
		_ = log.Close() // it tells of no errors
		close(postmaster.done)
	}()
	return postmaster, nil
}

// Clear ends what an earlier server left: processes, and its pid file. The caller
// holds the lock of the volume.
func (s *Supervisor) Clear(data string) error {
	s.EndOrphans()
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the pid file of an earlier server: %w", err)
	}
	return nil
}

// Done is closed when the server has ended.
func (p *Postmaster) Done() <-chan struct{} { return p.done }

// Ended tells whether the server has ended.
func (p *Postmaster) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Err is how it ended; valid after Done.
func (p *Postmaster) Err() error { return p.err }

// Pid of the postmaster.
func (p *Postmaster) Pid() int { return p.process.Pid }

// Accepting tells whether the server accepts connections, by its own word in the
// pid file: trying would fill its log with refusals.
func (p *Postmaster) Accepting() bool {
	raw, err := os.ReadFile(filepath.Join(p.data, "postmaster.pid"))
	if err != nil {
		return false
	}
	// Line 8 (src/include/utils/pidfile.h).
	lines := strings.Split(string(raw), "\n")
	return len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
}

// Reload makes the server read its configuration again.
func (p *Postmaster) Reload() error { return p.process.Signal(unix.SIGHUP) }

// Kill ends every process of the server at once, as a crash of the machine would;
// what was committed is on disk. It does not wait: Done tells.
func (p *Postmaster) Kill() {
	// The postmaster first, which would start them again.
	backends, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.Pid(), p.Pid()))
	_ = p.process.Kill()
	for _, word := range strings.Fields(string(backends)) {
		if pid, err := strconv.Atoi(word); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// Stop ends the server: fast shutdown first, which writes a checkpoint, and
// immediate shutdown when the context ends. It returns when the postmaster is
// gone.
func (p *Postmaster) Stop(ctx context.Context) error {
	if err := p.process.Signal(unix.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ask postgres to stop: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	if err := p.process.Signal(unix.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop postgres at once: %w", err)
	}
	<-p.done
	return fmt.Errorf("postgres did not stop in time and was stopped without a checkpoint: %w", ctx.Err())
}

package trial

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// patience bounds each wait for a server.
const patience = time.Minute

// Server is a data directory and, once it is started, a server on it.
type Server struct {
	// Data is its PGDATA; Socket, Configuration and TLS are empty directories.
	Data, Socket, Configuration, TLS string
	// Address is its own on the loopback device.
	Address string
	// Major of the programs.
	Major int
	// Programs is the directory of PostgreSQL's programs.
	Programs string

	credential *syscall.Credential
}

// New makes the directories and the data, or skips the test if the machine has no
// PostgreSQL. POSTGRES_PROGRAMS names the directory of another installation than
// the newest of Debian's.
func New(t testing.TB) *Server {
	t.Helper()
	programs := os.Getenv("POSTGRES_PROGRAMS")
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); programs == "" && len(found) > 0 {
		programs = found[len(found)-1]
	}
	output, err := exec.Command(filepath.Join(programs, "postgres"), "--version").Output()
	if err != nil {
		t.Skip("no PostgreSQL on this machine: apt-get install postgresql")
	}
	version, err := postgres.ParseServerVersion(string(output))
	require.NoError(t, err)
	root, err := os.MkdirTemp("", "trial")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	s := &Server{
		Data: filepath.Join(root, "data"), Socket: filepath.Join(root, "socket"),
		Configuration: filepath.Join(root, "configuration"), TLS: filepath.Join(root, "tls"),
		Address: fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250)),
		Major:   version.Major, Programs: programs,
	}
	// PostgreSQL refuses to run as root, as which tests of the local cluster run.
	if os.Getuid() == 0 {
		s.credential = credential(t, naming.UserSuperuser)
	}
	for _, directory := range []string{s.Socket, s.Configuration, s.TLS} {
		require.NoError(t, os.Mkdir(directory, 0o700))
	}
	s.Own(t, root)
	s.Run(t, "initdb", "--pgdata="+s.Data, "--username="+naming.UserSuperuser, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
	return s
}

func credential(t testing.TB, name string) *syscall.Credential {
	account, err := user.Lookup(name)
	require.NoError(t, err)
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	require.NoError(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// Own gives a directory and all in it to the server's user.
func (s *Server) Own(t testing.TB, directory string) {
	t.Helper()
	if s.credential == nil {
		return
	}
	require.NoError(t, filepath.WalkDir(directory, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(s.credential.Uid), int(s.credential.Gid))
	}))
}

// Command is one of PostgreSQL's programs, as the server's user.
func (s *Server) Command(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(s.Programs, program), arguments...)
	command.Dir = "/"
	command.Env = append(os.Environ(), "LC_ALL=C", "PGPASSFILE=/dev/null")
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential}
	return command
}

// Try runs a program and returns what it says.
func (s *Server) Try(program string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	output, err := s.Command(ctx, program, arguments...).CombinedOutput()
	return string(output), err
}

// Run runs a program that must succeed.
func (s *Server) Run(t testing.TB, program string, arguments ...string) string {
	t.Helper()
	output, err := s.Try(program, arguments...)
	require.NoError(t, err, output)
	return output
}

// Start starts the server and waits until it answers on its socket, or is fatal.
// It is stopped when the test ends.
func (s *Server) Start(t testing.TB, arguments ...string) {
	t.Helper()
	arguments = append([]string{"-D", s.Data, "-c", "listen_addresses=" + s.Address, "-c", "unix_socket_directories=" + s.Socket}, arguments...)
	command := s.Command(context.Background(), "postgres", arguments...)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	require.NoError(t, command.Start())
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGINT)
		<-ended
		if t.Failed() {
			t.Log(strings.ToValidUTF8(log.String(), "?"))
		}
	})
	deadline := time.Now().Add(patience)
	for {
		if _, err := s.Try("pg_isready", "--host="+s.Socket); err == nil {
			return
		}
		select {
		case <-ended:
			require.Fail(t, "the server ended", log.String())
		case <-time.After(20 * time.Millisecond):
			require.True(t, time.Now().Before(deadline), "the server does not answer")
		}
	}
}

package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/assignment"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// shortLease is how long the Lease of these tests lasts: as short as the API allows.
const shortLease = 6 * time.Second

// distantLease is the Lease as an instance sees it over the network.
type distantLease struct{ url string }

func (l *distantLease) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.do(ctx, http.MethodGet, nil)
}

func (l *distantLease) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.do(ctx, http.MethodPut, lease)
}

func (l *distantLease) do(ctx context.Context, method string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	raw, err := json.Marshal(lease)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, l.url, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // opened for reading
	switch response.StatusCode {
	case http.StatusOK:
		answer := &coordinationv1.Lease{}
		return answer, json.NewDecoder(response.Body).Decode(answer)
	case http.StatusConflict:
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "db-primary", errors.New("it was changed"))
	}
	return nil, apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded"))
}

// apiServer keeps the Lease. It can be away for some instances, as if packets were
// lost, and out of space.
type apiServer struct {
	mutex   sync.Mutex
	lease   coordinationv1.Lease
	renewed time.Time // when it was last written
	version int
	away    map[string]bool
	full    bool
}

func (w *world) serveLease() *apiServer {
	w.t.Helper()
	s := &apiServer{away: map[string]bool{}}
	listener, err := net.Listen("tcp", testNetwork+"1:0")
	require.NoError(w.t, err)
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(func() { _ = server.Close() })
	w.leaseServer = "http://" + listener.Addr().String()
	return s
}

func (s *apiServer) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	s.mutex.Lock()
	away := s.away[filepath.Base(request.URL.Path)]
	s.mutex.Unlock()
	if away {
		select { // nothing is heard of it
		case <-request.Context().Done():
		case <-time.After(5 * time.Second):
		}
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if request.Method == http.MethodPut {
		var lease coordinationv1.Lease
		switch err := json.NewDecoder(request.Body).Decode(&lease); {
		case err != nil || s.full:
			response.WriteHeader(http.StatusInternalServerError)
			return
		case lease.ResourceVersion != s.lease.ResourceVersion:
			response.WriteHeader(http.StatusConflict)
			return
		}
		s.write(lease)
	}
	_ = json.NewEncoder(response).Encode(s.lease)
}

func (s *apiServer) write(lease coordinationv1.Lease) {
	s.version++
	lease.ResourceVersion = strconv.Itoa(s.version)
	s.lease, s.renewed = lease, time.Now()
}

func (s *apiServer) set(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
}

func (s *apiServer) lastRenewal() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.renewed
}

// tryWrite tells whether a row is accepted.
func (p *testPod) tryWrite() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "setpriv", fmt.Sprintf("--reuid=%d", testUser), "--regid=0", "--clear-groups",
		"psql", "-X", "-h", p.path("socket"), "-U", "postgres", "-d", "app", "-c", "insert into rows values (1)").Run() == nil
}

// lastWrite writes until nothing was accepted for a second, and returns when the
// last row was.
func (p *testPod) lastWrite() time.Time {
	last := time.Now()
	for time.Since(last) < time.Second {
		if p.tryWrite() {
			last = time.Now()
		}
	}
	return last
}

// signalAll sends a signal to every process of the pod.
func (p *testPod) signalAll(signal syscall.Signal) {
	p.t.Helper()
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.process1()))
	require.NoError(p.t, err)
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(p.t, err)
	for _, process := range processes {
		if namespace, err := os.Readlink(process + "/ns/pid"); err == nil && namespace == own {
			pid, err := strconv.Atoi(filepath.Base(process))
			require.NoError(p.t, err)
			_ = syscall.Kill(pid, signal)
		}
	}
}

// leased is a primary with a replica that streams, and a short Lease on a server.
func leased(t *testing.T) (server *apiServer, primary, replica *testPod) {
	t.Helper()
	w := newWorld(t, primaryName, replicaName)
	w.cluster.Spec.Failover = dbv1alpha1.FailoverSpec{LeaseDurationSeconds: int32(shortLease / time.Second), RenewIntervalSeconds: 2}
	w.save()
	server = w.serveLease()
	primary, replica = w.pair()
	return server, primary, replica
}

// goesOn watches that a primary is not disturbed for longer than its Lease lasts, and
// renews it when all is well again.
func (s *apiServer) goesOn(primary *testPod) {
	primary.t.Helper()
	postmaster := primary.sql("app", "select pg_postmaster_start_time()")
	for began := time.Now(); time.Since(began) < shortLease+4*time.Second; time.Sleep(200 * time.Millisecond) {
		require.True(primary.t, primary.tryWrite(), primary.logText())
	}
	s.set(func() { s.away, s.full = map[string]bool{}, false })
	healed := time.Now()
	require.Eventually(primary.t, func() bool { return s.lastRenewal().After(healed) }, time.Minute, 50*time.Millisecond, "renewed again")
	assert.Equal(primary.t, postmaster, primary.sql("app", "select pg_postmaster_start_time()"))
}

func TestAnAPIServerThatIsAwayForAllStopsNobody(t *testing.T) {
	server, primary, _ := leased(t)
	server.set(func() { server.away = map[string]bool{primaryName: true, replicaName: true} })
	server.goesOn(primary)
	assert.Contains(t, primary.logText(), "away for every instance")
}

func TestAnAPIServerThatCannotSaveStopsNobody(t *testing.T) {
	server, primary, _ := leased(t)
	server.set(func() { server.full = true })
	server.goesOn(primary)
}

func TestAPrimaryThatAloneIsCutOffIsStoppedBeforeItsLeaseEnds(t *testing.T) {
	server, primary, _ := leased(t)
	server.set(func() { server.away = map[string]bool{primaryName: true} })
	end := primary.lastWrite()
	t.Logf("the last write was %v after the last renewal", end.Sub(server.lastRenewal()).Round(time.Millisecond))
	assert.Less(t, end.Sub(server.lastRenewal()), shortLease)
	report := primary.awaitReport("the reason", func(r protocol.Report) bool { return r.Problem != nil })
	assert.Equal(t, protocol.ProblemIsolated, report.Problem.Reason)
	assert.Never(t, primary.tryWrite, 3*time.Second, 100*time.Millisecond, "nothing opens by itself")
	server.set(func() { server.away = map[string]bool{} })
	primary.awaitReady(protocol.RolePrimary)
}

func TestAPeerThatIsSilentConfirmsNothing(t *testing.T) {
	server, primary, replica := leased(t)
	replica.kill()
	server.set(func() { server.away = map[string]bool{primaryName: true} })
	end := primary.lastWrite()
	assert.Less(t, end.Sub(server.lastRenewal()), shortLease)
}

func TestAPrimaryThatThawsWhenAnotherLeadsIsKilled(t *testing.T) {
	server, primary, _ := leased(t)
	primary.signalAll(syscall.SIGSTOP)
	time.Sleep(shortLease + time.Second)
	server.set(func() {
		lease := *server.lease.DeepCopy()
		lease.Spec.HolderIdentity = ptr.To("another/1")
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		server.write(lease)
	})
	began := time.Now()
	primary.signalAll(syscall.SIGCONT)
	end := primary.lastWrite()
	t.Logf("the last write was accepted %v after the thaw", end.Sub(began).Round(time.Millisecond))
	assert.Less(t, end.Sub(began), shortLease/2)
	assert.Contains(t, primary.logText(), "PostgreSQL is killed")
	assert.Never(t, primary.tryWrite, 2*time.Second, 100*time.Millisecond)
}

// unsaved is a Lease of which an API server says what it is told to.
type unsaved struct {
	onlyLease
	err error
}

func (u *unsaved) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return &coordinationv1.Lease{}, u.err
}

func TestAPeerHoldsStillForAsLongAsItsWordLasts(t *testing.T) {
	cluster := &dbv1alpha1.PostgresCluster{}
	cluster.Status.TargetPrimary, cluster.Status.InstanceNames = primaryName, []string{primaryName, replicaName}
	api := &unsaved{}
	options := Options{Cluster: "db", Instance: replicaName, Paths: Paths{Lock: filepath.Join(t.TempDir(), "lock")}}
	m := New(options, slog.New(slog.DiscardHandler), assignment.Fixed(cluster), api)
	next := func() *Manager { // a process that comes after this one
		process := New(options, slog.New(slog.DiscardHandler), assignment.Fixed(cluster), api)
		process.recallWord()
		return process
	}
	question := protocol.Question{Primary: primaryName + "/1"}

	answer := m.Confirm(t.Context(), question)
	assert.True(t, answer.APIServerReachable)
	assert.False(t, answer.Granted, "it reaches the API server")
	require.True(t, next().beginToLead(), "no word was given")
	require.True(t, m.beginToLead())
	api.err = errors.New("connection refused")
	assert.False(t, m.Confirm(t.Context(), question).Granted, "it is about to lead")
	m.endToLead()

	answer = m.Confirm(t.Context(), question)
	assert.False(t, answer.APIServerReachable)
	assert.True(t, answer.Granted)
	assert.False(t, m.beginToLead(), "it has given its word")
	assert.False(t, next().beginToLead(), "which another process of the instance keeps")
	m.forgetWord()
	assert.False(t, next().beginToLead(), "until it is over")
	m.stillUntil = time.Now()
	assert.True(t, m.beginToLead(), "which is over")
	m.forgetWord()
	assert.True(t, next().beginToLead())
	m.endToLead()

	target := cluster.DeepCopy()
	target.Status.TargetPrimary = replicaName
	m.watcher.Set(target)
	assert.False(t, m.Confirm(t.Context(), question).Granted, "it is to lead")
}

func TestAnAPIServerThatSavesNothingIsAwayForEverybody(t *testing.T) {
	cluster := &dbv1alpha1.PostgresCluster{}
	cluster.Status.TargetPrimary = primaryName
	options := Options{Cluster: "db", Instance: replicaName, Paths: Paths{Lock: filepath.Join(t.TempDir(), "lock")}}
	m := New(options, slog.New(slog.DiscardHandler), assignment.Fixed(cluster), &unsaved{})
	answer := m.Confirm(t.Context(), protocol.Question{Primary: primaryName + "/1", NotSaved: true})
	assert.True(t, answer.APIServerReachable)
	assert.True(t, answer.Granted)

	options.Paths.Lock = filepath.Join(t.TempDir(), "not there", "lock")
	m = New(options, slog.New(slog.DiscardHandler), assignment.Fixed(cluster), &unsaved{})
	assert.False(t, m.Confirm(t.Context(), protocol.Question{Primary: primaryName + "/1", NotSaved: true}).Granted, "a word that cannot be kept is not given")
}

package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/my-org/postgres-operator/test/writer/journal"
)

// WriterImage is what `make test-images` builds.
const WriterImage = "docker.io/test/writer:dev"

// WriterOptions choose where and how fast the writer writes.
type WriterOptions struct {
	// Interval from write to write in each mode; 0 is the writer's default, 20 ms.
	Interval time.Duration
	// Limit of a connection or a write; 0 is the writer's default, one second.
	Limit time.Duration
	// NotOn are nodes that it must not run on: those that are about to fail.
	NotOn []string
}

// Writer writes through the read-write Service, in a pod.
type Writer struct {
	cluster Cluster
	pod     string
}

const writerPod = `apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
%[2]s  containers:
    - name: writer
      image: %[3]s
      imagePullPolicy: Always
      args: [run%[4]s]
      securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts:
        - {name: db, mountPath: /db, readOnly: true}
        - {name: journal, mountPath: /journal}
  volumes:
    - name: db
      secret: {secretName: %[5]s-app}
    - name: journal
      emptyDir: {}
`

func writerManifest(name, cluster string, options WriterOptions) string {
	affinity, arguments := "", ""
	if len(options.NotOn) > 0 {
		affinity = fmt.Sprintf(`  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [%s]}]
`, strings.Join(options.NotOn, ", "))
	}
	if options.Interval > 0 {
		arguments += ", --interval=" + options.Interval.String()
	}
	if options.Limit > 0 {
		arguments += ", --limit=" + options.Limit.String()
	}
	return fmt.Sprintf(writerPod, name, affinity, WriterImage, arguments, cluster)
}

// StartWriter starts a writer and waits until it writes.
func (c Cluster) StartWriter(ctx context.Context, options WriterOptions) (*Writer, error) {
	w := &Writer{cluster: c, pod: "writer-" + c.Name}
	if err := c.Apply(ctx, writerManifest(w.pod, c.Name, options)); err != nil {
		return nil, err
	}
	return w, w.GoesOn(ctx)
}

// Counts is how many writes were acknowledged so far, by mode.
func (w *Writer) Counts(ctx context.Context) (map[journal.Mode]int, error) {
	text, err := w.command(ctx, "count")
	if err != nil {
		return nil, err
	}
	counts := map[journal.Mode]int{}
	if err := json.Unmarshal([]byte(text), &counts); err != nil {
		return nil, fmt.Errorf("counts of the writer %q: %w", text, err)
	}
	return counts, nil
}

// GoesOn waits until more writes are acknowledged in both modes.
func (w *Writer) GoesOn(ctx context.Context) error {
	var before map[journal.Mode]int
	return Await(ctx, "writes are acknowledged", func() (bool, error) {
		now, err := w.Counts(ctx)
		if err != nil {
			return false, err
		}
		if before == nil {
			before = now
		}
		return now[journal.New] > before[journal.New]+5 && now[journal.Kept] > before[journal.Kept]+5, nil
	})
}

// Journal is what the writer has seen so far.
func (w *Writer) Journal(ctx context.Context) (journal.Journal, error) {
	text, err := w.command(ctx, "journal")
	if err != nil {
		return nil, err
	}
	return journal.Read(strings.NewReader(text + "\n"))
}

// Report is a journal, and what the table holds.
type Report struct {
	journal.Journal
	Stored []journal.Row
}

// LostRows are the acknowledged rows that are not there.
func (r Report) LostRows() []journal.Row { return r.Lost(r.Stored) }

// Stop lets the writer end, reads the table through the Service, and removes the
// pod.
func (w *Writer) Stop(ctx context.Context) (Report, error) {
	if _, err := w.command(ctx, "stop"); err != nil {
		return Report{}, err
	}
	seen, err := w.Journal(ctx)
	if err != nil {
		return Report{}, err
	}
	stored, err := w.rows(ctx)
	if err != nil {
		return Report{}, err
	}
	return Report{Journal: seen, Stored: stored}, w.Remove(ctx)
}

// Remove deletes the pod, whatever state it is in.
func (w *Writer) Remove(ctx context.Context) error {
	_, err := w.cluster.Kubectl(ctx, "delete", "pod", w.pod, "--ignore-not-found", "--grace-period=0", "--force")
	return err
}

// rows reads the table, as often as it takes: there may be no primary just now.
func (w *Writer) rows(ctx context.Context) ([]journal.Row, error) {
	var text string
	err := Await(ctx, "the rows can be read", func() (bool, error) {
		var err error
		text, err = w.command(ctx, "rows")
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	var rows []journal.Row
	lines := bufio.NewScanner(bytes.NewBufferString(text))
	for lines.Scan() {
		var row journal.Row
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("row of the writer's table %q: %w", lines.Text(), err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (w *Writer) command(ctx context.Context, what string) (string, error) {
	return w.cluster.Kubectl(ctx, "exec", w.pod, "--", "/writer", what)
}

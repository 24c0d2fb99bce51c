package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// maxWait bounds how long an answer is held back, whatever the asker says.
const maxWait = time.Minute

// Hub keeps the present report of an instance and hands it out.
type Hub struct {
	life string // of the manager: makes revisions unique

	mutex   sync.Mutex
	report  Report
	changed chan struct{} // closed when the revision changes
}

// NewHub makes a hub; life names this life of the instance manager.
func NewHub(life string) *Hub {
	return &Hub{life: life, changed: make(chan struct{})}
}

// Set puts a new report in place. Its revision is worked out here: it changes
// with everything but what moves by itself.
func (h *Hub) Set(report Report) {
	report.Revision = h.revision(report)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if report.Revision != h.report.Revision {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	h.report = report
}

// Get returns the present report.
func (h *Hub) Get() Report {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.report
}

// wait returns the report as soon as its revision is not the given one.
func (h *Hub) wait(ctx context.Context, revision string, timeout time.Duration) Report {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		h.mutex.Lock()
		report, changed := h.report, h.changed
		h.mutex.Unlock()
		if revision == "" || report.Revision != revision {
			return report
		}
		select {
		case <-changed:
		case <-deadline.C:
			return report
		case <-ctx.Done():
			return report
		}
	}
}

// ServeHTTP answers PathStatus.
func (h *Hub) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	var timeout time.Duration
	if text := request.URL.Query().Get("wait"); text != "" {
		parsed, err := time.ParseDuration(text)
		if err != nil || parsed < 0 {
			http.Error(response, "wait: not a duration, such as 20s", http.StatusBadRequest)
			return
		}
		timeout = min(parsed, maxWait)
	}
	report := h.wait(request.Context(), request.URL.Query().Get("after"), timeout)
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(report) // the asker has gone: nobody to tell
}

// revision is a hash of the report without what moves by itself.
func (h *Hub) revision(report Report) string {
	report.Revision, report.Time = h.life, time.Time{}
	report.WrittenLSN, report.ReceivedLSN, report.ReplayedLSN = "", "", ""
	report.Disk = Disk{}
	replicas := report.Replicas
	report.Replicas = nil
	for _, replica := range replicas {
		replica.FlushLSN = ""
		report.Replicas = append(report.Replicas, replica)
	}
	raw, err := json.Marshal(report)
	if err != nil {
		return h.life // a report is plain data: this cannot happen, and would only make answers early
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

package plan

import (
	"slices"
	"time"

	"github.com/my-org/postgres-operator/controllers/internal/state"
	"github.com/my-org/postgres-operator/internal/protocol"
)

// rejoinSilence is how long an instance that rebuilds its data may be silent
// before another one gets its turn.
const rejoinSilence = time.Minute

// allowRejoin lets one instance at a time rebuild data that cannot follow the
// primary, while there is a primary: until it serves again, the others keep what
// they have.
func allowRejoin(s *state.Snapshot, a *Assignment) {
	if a.Change != nil || !leads(s.Instance(a.TargetPrimary)) {
		return // whoever has begun goes on; nobody else begins
	}
	if a.Rejoining != "" && slices.Contains(a.Members, a.Rejoining) && a.Rejoining != a.TargetPrimary && rejoins(s, a.Rejoining) {
		return
	}
	a.Rejoining = ""
	for _, name := range a.Members {
		if report, answers := lastReport(s.Instance(name)); answers && name != a.TargetPrimary && report.State == protocol.StateWaitingToRejoin && !paused(report) {
			a.Rejoining = name
			return
		}
	}
}

// rejoins tells whether an instance that was let is still at it.
func rejoins(s *state.Snapshot, name string) bool {
	instance := s.Instance(name)
	if instance == nil || instance.Pod == nil {
		return false
	}
	entry := instance.Report
	if entry.Error != "" {
		return s.Now.Sub(entry.FailedSince) < rejoinSilence
	}
	if !entry.Known {
		return true
	}
	switch entry.Report.State {
	case protocol.StateFenced, protocol.StateBlocked, protocol.StateStopping:
		return false
	case protocol.StateWaitingToRejoin:
		return !paused(entry.Report)
	case protocol.StateRunning:
		return !entry.Report.Streaming
	}
	return true
}

// paused tells whether an instance has failed, and lets others have their turn before
// it tries again.
func paused(report protocol.Report) bool { return report.Rejoin != nil && report.Rejoin.Paused }

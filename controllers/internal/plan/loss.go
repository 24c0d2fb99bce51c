package plan

import (
	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/controllers/internal/state"
)

// tellLoss puts on record what a failover has lost, once the former primary has come
// back and compared its WAL with its successor's. Before, nobody can know.
func tellLoss(s *state.Snapshot, p *Plan) {
	last := p.Assignment.LastChange
	if p.Assignment.Change != nil || last == nil || last.Type != dbv1alpha1.PrimaryChangeFailover ||
		last.Result != dbv1alpha1.PrimaryChangePromoted || last.LostBytesAtMost != nil {
		return
	}
	report, answers := lastReport(s.Instance(last.From))
	if !answers || report.Rejoin == nil || report.Rejoin.Lost == nil {
		return
	}
	lost := *report.Rejoin.Lost
	known := *last
	known.LostBytesAtMost = &lost.Bytes
	p.Assignment.LastChange = &known
	p.notify(lost.Commits > 0, "FailoverLoss", "instance %s had committed %d transactions before it was lost that instance %s had not received (%d bytes of WAL)",
		last.From, lost.Commits, last.To, lost.Bytes)
}

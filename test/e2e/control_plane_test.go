//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/my-org/postgres-operator/test/live"
	"github.com/my-org/postgres-operator/test/writer/journal"
)

// TestTheAPIServerIsAwayForTwoMinutes: no database stops, and nobody is promoted when
// every Lease looks expired.
func TestTheAPIServerIsAwayForTwoMinutes(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20"))
	e.apply(cluster("single", 1, "15.20"))
	e.settled("db")
	e.settled("single")
	former, alone := e.primary("db"), e.primary("single")
	w, v := e.writes("db"), e.writes("single")
	began := time.Now()
	start := func() {
		e.patiently(func(ctx context.Context) error {
			if err := live.APIServer(ctx, "start"); err != nil {
				return err
			}
			return live.Healthy(ctx)
		})
	}
	t.Cleanup(start)
	e.patiently(func(ctx context.Context) error { return live.APIServer(ctx, "stop") })
	time.Sleep(2 * time.Minute)
	start()
	time.Sleep(20 * time.Second) // time to do something rash
	e.settled("db")
	e.settled("single")
	assert.Equal(t, former, e.primary("db"))
	assert.Equal(t, alone, e.primary("single"))
	assert.Empty(t, e.status("db", "lastPrimaryChange"))
	for _, a := range []*account{w, v} {
		report := a.nothingLost()
		a.outage(report, began)
		assert.Less(t, report.Outage(journal.New, began).Length, time.Minute, "writes went on while the API server was away")
	}
}

// TestTheOperatorIsKilledInTheMiddleOfAFailover: at different moments of it. One
// incident is one change of the primary, whoever finishes it.
func TestTheOperatorIsKilledInTheMiddleOfAFailover(t *testing.T) {
	e := beginAlone(t)
	e.apply(cluster("db", 3, "15.20"))
	e.settled("db")
	w := e.writes("db")
	for i, moment := range []time.Duration{0, 200 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond} {
		former := e.primary("db")
		e.patiently(func(ctx context.Context) error { return e.live("db").DeletePod(ctx, former.Pod) })
		time.Sleep(moment)
		e.patiently(live.KillOperator)
		e.anotherLeads("db", former)
		w.goesOn()
		e.settled("db")
		require.Equal(t, i+1, e.number("db"), "one incident, one change")
	}
	w.nothingLost()
}

// number is that of the last change of the primary.
func (e *environment) number(name string) int {
	e.Helper()
	text, number := e.status(name, "lastPrimaryChange.number"), 0
	for _, digit := range text {
		number = 10*number + int(digit-'0')
	}
	return number
}

package journal

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// write is an entry at milliseconds.
func write(mode Mode, number, began, ended int64, outcome Outcome, timeline int64) Entry {
	return Entry{Mode: mode, Number: number, Began: began * 1000, Ended: ended * 1000, Outcome: outcome, Timeline: timeline}
}

func at(milliseconds int64) time.Time { return time.UnixMilli(milliseconds) }

func TestOutage(t *testing.T) {
	seen := Journal{
		write(New, 1, 0, 5, Acknowledged, 1),
		write(New, 2, 10, 500, Acknowledged, 1), // a slow one before the event is none of it
		write(New, 3, 510, 515, Acknowledged, 1),
		write(Kept, 1, 510, 512, Acknowledged, 1),
		write(New, 4, 520, 620, Failed, 0),
		write(New, 5, 630, 700, Unknown, 0),
		write(New, 6, 710, 815, Acknowledged, 2),
		write(New, 7, 820, 825, Acknowledged, 2),
		write(Kept, 2, 520, 1520, Unknown, 0),
	}
	t.Run("the gap around the event", func(t *testing.T) {
		assert.Equal(t, Outage{Mode: New, Length: 300 * time.Millisecond, Began: at(515), Over: true, Failures: 2}, seen.Outage(New, at(518)))
	})
	t.Run("the event in the middle of the gap", func(t *testing.T) {
		assert.Equal(t, 300*time.Millisecond, seen.Outage(New, at(700)).Length)
	})
	t.Run("not over", func(t *testing.T) {
		assert.Equal(t, Outage{Mode: Kept, Length: 1008 * time.Millisecond, Began: at(512), Failures: 1}, seen.Outage(Kept, at(518)))
	})
	t.Run("nothing acknowledged before", func(t *testing.T) {
		assert.Equal(t, 15*time.Millisecond, Journal{write(New, 1, 100, 115, Acknowledged, 1)}.Outage(New, at(100)).Length)
	})
	t.Run("nothing at all", func(t *testing.T) {
		assert.Equal(t, time.Duration(0), Journal(nil).Outage(New, at(1)).Length)
	})
}

func TestLostAndUnexpected(t *testing.T) {
	seen := Journal{
		write(New, 1, 0, 1, Acknowledged, 1), write(New, 2, 2, 3, Acknowledged, 1), write(Kept, 1, 0, 1, Acknowledged, 1),
		write(New, 3, 4, 5, Unknown, 0), write(New, 4, 6, 7, Failed, 0),
	}
	assert.Empty(t, seen.Lost([]Row{{New, 1}, {New, 2}, {Kept, 1}}))
	assert.Equal(t, []Row{{New, 2}}, seen.Lost([]Row{{New, 1}, {Kept, 1}, {Kept, 2}}))
	assert.Empty(t, seen.Unexpected([]Row{{New, 1}, {New, 3}}), "what is unknown may be there")
	assert.Equal(t, []Row{{New, 4}, {Kept, 9}}, seen.Unexpected([]Row{{New, 4}, {Kept, 9}}))
	assert.Equal(t, 3, seen.Count(Acknowledged))
}

func TestBehind(t *testing.T) {
	t.Run("a former primary takes a write", func(t *testing.T) {
		late := write(Kept, 7, 30, 35, Acknowledged, 1)
		assert.Equal(t, []Entry{late}, Journal{write(New, 1, 0, 5, Acknowledged, 1), write(New, 2, 20, 25, Acknowledged, 2), late}.Behind())
	})
	t.Run("one that was under way is not behind", func(t *testing.T) {
		assert.Empty(t, Journal{write(New, 2, 20, 25, Acknowledged, 2), write(Kept, 7, 18, 35, Acknowledged, 1)}.Behind())
	})
	t.Run("a server in recovery takes no writes", func(t *testing.T) {
		entry := write(New, 1, 0, 5, Acknowledged, 1)
		entry.Recovery = true
		assert.Len(t, Journal{entry}.Behind(), 1)
	})
	assert.Equal(t, []int64{1, 2}, Journal{write(New, 2, 20, 25, Acknowledged, 2), write(Kept, 7, 0, 5, Acknowledged, 1)}.Timelines())
}

func TestRead(t *testing.T) {
	seen, err := Read(strings.NewReader(`{"mode":"new","number":3,"began":1,"ended":2,"outcome":"acknowledged","timeline":1}
{"mode":"kept","nu`))
	require.NoError(t, err)
	assert.Equal(t, Journal{{Mode: New, Number: 3, Began: 1, Ended: 2, Outcome: Acknowledged, Timeline: 1}}, seen)
	_, err = Read(strings.NewReader("what\n"))
	assert.ErrorContains(t, err, `line 1 "what\n"`)
}

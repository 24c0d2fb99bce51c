package journal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Outcome is what the writer knows of a write.
type Outcome string

// Outcomes.
const (
	// Acknowledged: the server said that the commit is done.
	Acknowledged Outcome = "acknowledged"
	// Failed: the write is certainly not there.
	Failed Outcome = "failed"
	// Unknown: the connection ended before the answer came. The row may be there.
	Unknown Outcome = "unknown"
)

// Mode is how the writer connects.
type Mode string

// Modes.
const (
	// New makes a connection for each write.
	New Mode = "new"
	// Kept keeps one connection, and makes another after an error.
	Kept Mode = "kept"
)

// Entry is one write. Times are in microseconds since 1970.
type Entry struct {
	Mode    Mode    `json:"mode"`
	Number  int64   `json:"number"`
	Began   int64   `json:"began"`
	Ended   int64   `json:"ended"`
	Outcome Outcome `json:"outcome"`
	// Timeline and Server are of the server that acknowledged it; Recovery is what
	// that server said of itself.
	Timeline int64  `json:"timeline,omitempty"`
	Server   string `json:"server,omitempty"`
	Recovery bool   `json:"recovery,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Row names a row of the writer's table.
type Row struct {
	Mode   Mode  `json:"mode"`
	Number int64 `json:"number"`
}

// Journal is what one writer saw, in any order.
type Journal []Entry

// Read reads a journal, one JSON object a line. A last line without an end is
// left out: the writer was cut off in the middle of it.
func Read(from io.Reader) (Journal, error) {
	var entries Journal
	lines := bufio.NewReader(from)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the journal, line %d: %w", number, err)
		}
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, fmt.Errorf("read the journal, line %d %q: %w", number, line, err)
		}
		entries = append(entries, entry)
	}
}

// Micro is a time as entries have it.
func Micro(at time.Time) int64 { return at.UnixMicro() }

// acknowledged are the entries of a mode (or of all, for "") that were
// acknowledged, in the order of their acknowledgement.
func (j Journal) acknowledged(mode Mode) Journal {
	var found Journal
	for _, entry := range j {
		if entry.Outcome == Acknowledged && (mode == "" || entry.Mode == mode) {
			found = append(found, entry)
		}
	}
	slices.SortStableFunc(found, func(a, b Entry) int { return int(a.Ended - b.Ended) })
	return found
}

// Count is how many writes of all modes had an outcome.
func (j Journal) Count(outcome Outcome) int {
	count := 0
	for _, entry := range j {
		if entry.Outcome == outcome {
			count++
		}
	}
	return count
}

// Outage is the longest time between two acknowledged writes of a mode, of those
// gaps that end after an event. It is not over if no write was acknowledged after
// its begin: then it lasts until the last entry.
type Outage struct {
	Mode     Mode
	Length   time.Duration
	Began    time.Time
	Over     bool
	Failures int // writes that failed, or whose fate is unknown, during it
}

// Outage finds the outage of a mode around an event.
func (j Journal) Outage(mode Mode, event time.Time) Outage {
	from, last, previous := Micro(event), Micro(event), Micro(event)
	outage := Outage{Mode: mode, Over: true, Began: event}
	consider := func(begin, end int64, over bool) {
		if length := time.Duration(end-begin) * time.Microsecond; length > outage.Length {
			outage = Outage{Mode: mode, Length: length, Began: time.UnixMicro(begin), Over: over}
		}
	}
	first := true
	for _, entry := range j.acknowledged(mode) {
		if entry.Ended <= from {
			previous, first = entry.Ended, false
			continue
		}
		// Without a write before the event, the event itself is the begin.
		if first {
			previous, first = from, false
		}
		consider(previous, entry.Ended, true)
		previous = entry.Ended
	}
	for _, entry := range j {
		if entry.Mode == mode {
			last = max(last, entry.Ended)
		}
	}
	consider(previous, last, false)
	for _, entry := range j {
		begun := Micro(outage.Began)
		if entry.Mode == mode && entry.Outcome != Acknowledged && entry.Ended > begun && entry.Ended <= begun+outage.Length.Microseconds() {
			outage.Failures++
		}
	}
	return outage
}

// Lost are the acknowledged writes that the table does not hold.
func (j Journal) Lost(stored []Row) []Row {
	there := make(map[Row]bool, len(stored))
	for _, row := range stored {
		there[row] = true
	}
	var lost []Row
	for _, entry := range j.acknowledged("") {
		if row := (Row{Mode: entry.Mode, Number: entry.Number}); !there[row] {
			lost = append(lost, row)
		}
	}
	return lost
}

// Unexpected are the rows that the table holds although their writes had failed
// for certain, or were never tried: a sign that the writer misjudges.
func (j Journal) Unexpected(stored []Row) []Row {
	possible := make(map[Row]bool, len(j))
	for _, entry := range j {
		possible[Row{Mode: entry.Mode, Number: entry.Number}] = entry.Outcome != Failed
	}
	var found []Row
	for _, row := range stored {
		if !possible[row] {
			found = append(found, row)
		}
	}
	return found
}

// Behind are writes that were begun after another server had acknowledged a write
// on a later timeline, and yet were acknowledged on an earlier one: taken by a
// former primary. There must be none.
func (j Journal) Behind() []Entry {
	var behind []Entry
	done := j.acknowledged("")
	begun := slices.Clone(done)
	slices.SortStableFunc(begun, func(a, b Entry) int { return int(a.Began - b.Began) })
	var newest int64
	next := 0
	for _, entry := range begun {
		for ; next < len(done) && done[next].Ended < entry.Began; next++ {
			newest = max(newest, done[next].Timeline)
		}
		if entry.Timeline < newest || entry.Recovery {
			behind = append(behind, entry)
		}
	}
	return behind
}

// Timelines are those on which writes were acknowledged, in order.
func (j Journal) Timelines() []int64 {
	var found []int64
	for _, entry := range j.acknowledged("") {
		if !slices.Contains(found, entry.Timeline) {
			found = append(found, entry.Timeline)
		}
	}
	return found
}

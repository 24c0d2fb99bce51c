package postgres

import (
	"fmt"
	"strconv"
	"strings"
)

// History is how a server came to its timeline: the content of its history file
// (src/backend/access/transam/timeline.c).
type History struct {
	Timeline uint32
	// Ancestors end where the next timeline begins, oldest first.
	Ancestors []Ancestor
}

// Ancestor is a timeline that others branched off from, and where.
type Ancestor struct {
	Timeline uint32
	End      LSN
}

// ParseHistory reads the history file of a timeline; timeline 1 has none, which is
// an empty text.
func ParseHistory(timeline uint32, text string) (History, error) {
	history := History{Timeline: timeline}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 {
			return History{}, fmt.Errorf("history of timeline %d: %q is no timeline and position", timeline, strings.TrimSpace(line))
		}
		ancestor, err := strconv.ParseUint(words[0], 10, 32)
		if err != nil {
			return History{}, fmt.Errorf("history of timeline %d: %w", timeline, err)
		}
		end, err := ParseLSN(words[1])
		if err != nil {
			return History{}, fmt.Errorf("history of timeline %d: %w", timeline, err)
		}
		history.Ancestors = append(history.Ancestors, Ancestor{Timeline: uint32(ancestor), End: end})
	}
	return history, nil
}

// Contains tells whether the WAL of a timeline up to a position is part of this
// history: then a server that has it can follow. What lies on the present timeline
// is.
func (h History) Contains(timeline uint32, position LSN) bool {
	if timeline == h.Timeline {
		return true
	}
	end, known := h.Fork(timeline)
	return known && position <= end
}

// Fork is where this history left an older timeline that is part of it.
func (h History) Fork(timeline uint32) (LSN, bool) {
	for _, ancestor := range h.Ancestors {
		if ancestor.Timeline == timeline {
			return ancestor.End, true
		}
	}
	return 0, false
}

// SegmentStart is where a segment of WAL begins, by the name of its file, for
// segments of a size in bytes.
func SegmentStart(name string, size uint64) (LSN, error) {
	if len(name) != 24 || size == 0 || size > 1<<32 {
		return 0, fmt.Errorf("%q is no name of a WAL segment", name)
	}
	high, err := strconv.ParseUint(name[8:16], 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no name of a WAL segment", name)
	}
	low, err := strconv.ParseUint(name[16:], 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no name of a WAL segment", name)
	}
	return LSN(high<<32 + low*size), nil
}

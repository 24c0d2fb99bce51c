package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/my-org/postgres-operator/test/bench/spread"
)

// results are all measured runs.
type results struct {
	operator memory
	runs     []*measurement
}

// comparison is a line of the first table: what the project promises, and what
// CloudNativePG 1.30 was measured to need on the local cluster.
type comparison struct {
	what, target, other string
	value               string
}

// String renders the tables.
func (r results) String() string {
	var text strings.Builder
	var managers, private []int64
	for _, run := range r.runs {
		managers = append(managers, run.managers...)
		private = append(private, run.managersPrivate...)
	}
	fmt.Fprintf(&text, "\n%-38s %-28s %-10s %s\n", "median of "+fmt.Sprint(len(r.runs)), "ours (min to max)", "at most", "CloudNativePG 1.30")
	for _, line := range []comparison{
		{"create, first instance ready", "5 s", "21.5 s", r.spread(firstReady)},
		{"create, all instances ready", "12 s", "63 s", r.spread(allReady)},
		{"operator, no clusters: working set", "40 MB", "73 MB", megabytes(r.operator.working)},
		{"  of it private", "", "", megabytes(r.operator.private)},
		{"instance manager: resident", "25 MB", "63 MB", spread.Of(managers, megabytes)},
		{"  of it private, the rest is program", "", "", spread.Of(private, megabytes)},
	} {
		fmt.Fprintf(&text, "%-38s %-28s %-10s %s\n", line.what, line.value, line.target, line.other)
	}
	text.WriteString("\nWhere the time goes, from the creation of the cluster:\n")
	for _, step := range order {
		if value := r.spread(step); value != "" {
			fmt.Fprintf(&text, "  %-34s %s\n", step, value)
		}
	}
	return text.String()
}

// spread is the median, least and most of a milestone's times.
func (r results) spread(step milestone) string {
	var times []time.Duration
	for _, run := range r.runs {
		if at, ok := run.times[step]; ok {
			times = append(times, at)
		}
	}
	return spread.Of(times, spread.Tenths)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

package main

import (
	"fmt"
	"strings"

	"github.com/my-org/postgres-operator/test/bench/spread"
	"github.com/my-org/postgres-operator/test/writer/journal"
)

// table renders the results.
func table(results []result) string {
	var text strings.Builder
	const format = "%-38s %-26s %-26s %-18s %-8s %s\n"
	fmt.Fprintf(&text, "\n"+format, "write outage, median", "connection for each write", "kept connection", "rows lost", "at most", "CloudNativePG 1.30")
	behind, runs := 0, 0
	for _, r := range results {
		each, kept := spread.MedianAndWorst(r.outages[journal.New]), spread.MedianAndWorst(r.outages[journal.Kept])
		lost := fmt.Sprintf("%d of %d", r.lost, r.acknowledged)
		if each == "" {
			each, lost = "not possible", ""
		}
		fmt.Fprintf(&text, format, r.title, each, kept, lost, r.target, r.other)
		if r.fault != nil {
			first, _, _ := strings.Cut(r.fault.Error(), "\n")
			fmt.Fprintf(&text, "  not possible: %s\n", first)
		}
		behind += r.behind
		runs = max(runs, len(r.outages[journal.New]))
	}
	fmt.Fprintf(&text, "\n%d runs of each event at most. Writes that a former primary took after another one had taken some: %d.\n", runs, behind)
	text.WriteString("CloudNativePG was measured with a connection for each write. A crash without synchronous replication may lose rows.\n")
	return text.String()
}

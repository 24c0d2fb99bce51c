//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAFullDisk: the condition names the volume, nobody takes over, and a larger
// size cures it.
func TestAFullDisk(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.settled("db")
	former := e.primary("db")
	w := e.writes("db")
	e.patiently(func(ctx context.Context) error { return e.live("db").FillDisk(ctx, former.Pod) })
	e.eventually("the condition says so", func() bool {
		return e.condition("db", "Degraded", "status") == "True" && strings.Contains(e.condition("db", "Degraded", "message"), former.Instance+"-data")
	})
	assert.Contains(t, e.condition("db", "Degraded", "message"), "spec.storage.size")
	assert.Equal(t, former.Instance, e.status("db", "currentPrimary"), "another primary fills up too")
	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"storage":{"size":"1Gi"}}}`)
	w.goesOn()
	e.settled("db")
	assert.Equal(t, former.Instance, e.status("db", "currentPrimary"))
	w.nothingLost()
}

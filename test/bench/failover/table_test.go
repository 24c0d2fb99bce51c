package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/my-org/postgres-operator/test/writer/journal"
)

func TestTable(t *testing.T) {
	text := table([]result{
		{event: events[0], acknowledged: 90, lost: 1, outages: map[journal.Mode][]time.Duration{
			journal.New: {time.Second, 3 * time.Second, 2 * time.Second}, journal.Kept: {time.Second}}},
		{event: events[5], fault: errors.New("three nodes are needed\nand more")},
	})
	assert.Contains(t, text, "postmaster killed (-9)                 2.00 s, worst 3.00 s       1.00 s, worst 1.00 s       1 of 90            1.5 s    7.0 to 12.6 s\n")
	assert.Contains(t, text, "(of two)     not possible ")
	assert.Contains(t, text, "  not possible: three nodes are needed\n")
	assert.NotContains(t, text, "and more")
}

func TestChosen(t *testing.T) {
	all, err := chosen("")
	assert.NoError(t, err)
	assert.Len(t, all, len(events))
	some, err := chosen("switchover,delete")
	assert.NoError(t, err)
	assert.Equal(t, []string{"switchover", "delete"}, []string{some[0].name, some[1].name})
	_, err = chosen("earthquake")
	assert.ErrorContains(t, err, `"earthquake", which is unknown; choose from postmaster, `)
}

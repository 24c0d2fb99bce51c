package postgres

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHistory(t *testing.T) {
	history, err := ParseHistory(3, "1\t0/5000188\tno recovery target specified\n\n# a comment\n2\t0/70000A0\tno recovery target specified\n")
	require.NoError(t, err)
	for _, c := range []struct {
		timeline uint32
		position LSN
		follows  bool
	}{
		{1, 0x5000187, true}, {1, 0x5000188, true}, {1, 0x5000189, false},
		{2, 0x70000A0, true}, {2, 0x70000A1, false}, {3, 0xFFFFFFFF, true}, {4, 1, false},
	} {
		assert.Equal(t, c.follows, history.Contains(c.timeline, c.position), "%d %s", c.timeline, c.position)
	}
	first, err := ParseHistory(1, "")
	require.NoError(t, err)
	assert.True(t, first.Contains(1, 7))
	assert.False(t, first.Contains(2, 7))
	for _, bad := range []string{"1\n", "x 0/1\n", "1 somewhere\n", "4294967296 0/1\n"} {
		_, err := ParseHistory(2, bad)
		require.Error(t, err, bad)
	}
}

func FuzzParseHistory(f *testing.F) {
	f.Add("1\t0/5000188\tno recovery target specified\n")
	f.Fuzz(func(t *testing.T, text string) {
		history, err := ParseHistory(9, text)
		if err != nil {
			assert.Empty(t, history.Ancestors, "nothing half-read is used")
		}
	})
}

func TestSegmentStart(t *testing.T) {
	start, err := SegmentStart("000000020000000100000003", 16<<20)
	require.NoError(t, err)
	assert.Equal(t, "1/3000000", start.String())
	for _, bad := range []string{"", "00000002.history", "00000002000000010000000G", "0000000200000001G0000003"} {
		_, err := SegmentStart(bad, 16<<20)
		require.Error(t, err, bad)
	}
}

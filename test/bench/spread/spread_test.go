package spread

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSpread(t *testing.T) {
	values := []time.Duration{4 * time.Second, time.Second, 2 * time.Second}
	assert.Equal(t, "2.0 s (1.0 s to 4.0 s)", Of(values, Tenths))
	assert.Equal(t, "2.00 s, worst 4.00 s", MedianAndWorst(values))
	assert.Equal(t, int64(3), Median([]int64{4, 2}))
	assert.Empty(t, Of(nil, Tenths))
	assert.Empty(t, MedianAndWorst(nil))
}

package spread

import (
	"fmt"
	"slices"
	"time"
)

// Of is the median of the values with their range, as "2.0 s (1.0 s to 4.0 s)", or
// nothing if there are none.
func Of[T int64 | time.Duration](values []T, format func(T) string) string {
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%s to %s)", format(Median(values)), format(slices.Min(values)), format(slices.Max(values)))
}

// MedianAndWorst is "2.00 s, worst 4.00 s", or nothing if there are no values.
func MedianAndWorst(values []time.Duration) string {
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, worst %s", Hundredths(Median(values)), Hundredths(slices.Max(values)))
}

// Median is the middle value, or the mean of the two in the middle.
func Median[T int64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Tenths are seconds with one digit.
func Tenths(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Hundredths are seconds with two digits.
func Hundredths(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Package spread says in one cell of a table what several runs of a benchmark
// measured. It measures nothing.
package spread

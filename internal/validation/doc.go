// Package validation checks a stored PostgresCluster as admission checks a new
// one, for objects that were stored under older rules or past them, and finds
// the image of a version.
//
// It parses what users write, and panics on nothing.
package validation

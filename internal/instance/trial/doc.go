// Package trial runs a throw-away PostgreSQL server for tests: a real one, in a
// directory of its own, on an address of its own.
//
// Only tests import it. It knows nothing of the configuration that is tried.
package trial

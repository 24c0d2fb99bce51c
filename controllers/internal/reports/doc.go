// Package reports keeps the latest report of every instance.
//
// One goroutine per instance asks it over mutual TLS and is answered when
// something has changed, so a pass of the reconciler reads memory and never
// waits for an instance, and a hung instance costs one goroutine with a
// deadline. A changed report asks for a pass of its cluster.
//
// The package judges nothing: how old a report may be, and what it means, is
// for the plan to say.
package reports

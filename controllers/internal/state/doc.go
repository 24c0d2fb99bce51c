// Package state is the snapshot that one pass of the reconciler works on, and
// the questions one may ask of it.
//
// It holds values and no client; it changes nothing, logs nothing and decides
// nothing. A fact that can be unknown has a way to say so.
package state

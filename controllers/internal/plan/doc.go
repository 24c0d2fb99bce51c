// Package plan decides: who is a member, who shall be the primary, which
// instance is made, changed or removed next, and what is waited for.
//
// Decisions are pure functions from a snapshot to plain values. There is no
// I/O, no clock, no randomness and no map order in a result: the same snapshot
// gives the same plan, whoever asks and however often.
package plan

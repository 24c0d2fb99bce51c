// Package volume guards the instance's volume: the lock that lets one instance
// manager at a time use it, and what is known of the data directory on it.
//
// It reads and judges; it never deletes a directory that it does not recognise
// as a half-made one of ours.
package volume

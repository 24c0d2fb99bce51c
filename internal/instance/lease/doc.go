// Package lease holds the cluster's Lease: the right of one instance to be
// writable (promise 1).
//
// It takes, renews and releases. What a primary does that can no longer renew
// is decided elsewhere.
package lease

// Package isolation decides whether a primary that cannot renew its Lease may go
// on, and asks the peers what it needs to know for that.
//
// The decision is a pure function. The package stops nothing, and takes no Lease.
package isolation

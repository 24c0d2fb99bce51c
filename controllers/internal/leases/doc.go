// Package leases watches the Leases of the clusters: when each was last seen to
// change, by the operator's own clock.
//
// A renewal is an event that starts no pass; only one that is overdue does, since
// a primary that renews is alive. It writes nothing and decides nothing.
package leases

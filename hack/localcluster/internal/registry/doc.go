// Package registry is an image registry for one machine: no logins, no encryption, everything kept in a folder. It knows
// nothing of the cluster that pulls from it.
package registry

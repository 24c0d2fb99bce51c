// Package pki makes the certificates of a local cluster: two authorities and what they sign. It knows nothing of who
// the certificates are for.
package pki

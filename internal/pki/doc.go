// Package pki makes a cluster's certificate authority, certificates and
// passwords, as the data of Kubernetes Secrets.
//
// Functions are given the existing data and the time, and change only what is
// missing or near its end. Nothing here reads a Secret, a file or the clock.
package pki

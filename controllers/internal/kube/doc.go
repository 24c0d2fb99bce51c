// Package kube holds the verbs with which the operator touches the API server:
// Apply (the one way to write an object), Delete and Prune (the one way to
// remove objects), and the finalizer helpers.
//
// It knows no PostgreSQL. It decides nothing: whether an object shall exist is
// the caller's business, whether it may be touched is checked here.
package kube

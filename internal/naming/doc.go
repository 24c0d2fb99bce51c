// Package naming holds every name, label, annotation, port and path that two
// files must agree on: the operator, the instance manager, the tests.
//
// It computes strings and nothing else. It must not import a Kubernetes client,
// read the environment, or hold a decision.
package naming

// Package e2e tests the operator on a real cluster, the local one unless
// KUBECONFIG names another: one file for each behaviour, in the words of users.
// The tests see and do what people with kubectl and psql can, and count rows.
//
// Nothing is mocked. The tests have the build tag e2e; `make e2e` brings up what
// they need.
package e2e

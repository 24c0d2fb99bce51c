// Package live drives a live Kubernetes cluster for tests and benchmarks: kubectl,
// the writer's pod, and the faults that are done to pods, nodes and the control
// plane.
//
// It judges nothing: what must hold after a fault stands in the tests.
package live

// Command localcluster runs a Kubernetes cluster of several nodes on one Linux machine, from programs alone: no virtual
// machine, no container engine. hack/cluster builds and calls it; README.md describes it. Command lines are read here
// and nothing else is done here.
package main

// Package host does to the machine what a local cluster needs: processes, control groups, network namespaces, mounts and
// loop devices. Every cleaning function starts from what the machine shows, never from what was noted down, so that it
// also finds what a crash has left. It knows nothing of Kubernetes.
package host

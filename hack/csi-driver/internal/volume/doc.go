// Package volume keeps volumes on a disk: their files, their file systems and their mounts. It knows nothing of CSI or of
// Kubernetes. Every function may be called again after it was broken off at any point.
package volume

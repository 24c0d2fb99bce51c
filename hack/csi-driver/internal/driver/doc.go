// Package driver speaks the Container Storage Interface for the volumes of package volume: to the kubelet of one node, or
// to the side-cars that make and resize volumes. It turns requests into calls and errors into gRPC codes, and keeps
// nothing in memory.
package driver

// Package cluster brings a local cluster up and down, tells its state, and does to its nodes what fate does to real ones.
// What the cluster consists of is decided in package plan, what its files say in package render, and how the machine is
// changed in package host.
package cluster

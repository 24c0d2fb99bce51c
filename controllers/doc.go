// Package controllers reconciles PostgresCluster objects: the I/O of a pass
// (load, observe, assign, act, report), its watches and its permissions.
//
// What is decided stands in internal/plan, what an object looks like in
// internal/resources, what a condition says in internal/status. Nothing here
// assembles an object, computes a condition or sleeps.
package controllers

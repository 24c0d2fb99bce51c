// Package resources builds every object that a cluster owns: one file per kind,
// one function per object.
//
// Builders are pure. They use no client, logger, environment or clock, and spell
// no name by hand. Equal input gives equal bytes: a change of a pod template
// restarts databases.
package resources

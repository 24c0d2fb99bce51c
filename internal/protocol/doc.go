// Package protocol is what operator and instance manager say to each other:
// the types of the report, the client and the interface that the server
// implements.
//
// It carries facts. It must not decide anything, and must not import the
// operator's or the instance manager's packages.
package protocol

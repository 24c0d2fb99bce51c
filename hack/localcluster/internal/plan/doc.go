// Package plan says what a local cluster consists of: names, addresses, paths and processes. It is pure: it reads no
// file, starts nothing and asks the machine nothing, so that every choice in it can be tested.
package plan

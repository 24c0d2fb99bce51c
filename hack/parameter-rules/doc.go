// Command parameter-rules writes the CEL rules of spec.postgresql.parameters
// from the table in internal/postgres, so that admission and the program know
// the same parameters.
//
// It holds no list of its own and decides nothing about a parameter.
package main

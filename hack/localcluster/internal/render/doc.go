// Package render turns a plan into the configuration files of its programs. It is pure: it returns the files, and
// somebody else writes them.
package render

// Package docs holds the tests that keep the documents true. It has no code of its
// own.
package docs

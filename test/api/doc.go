// Package api tests the CustomResourceDefinition, the configuration in config/
// and the samples against a real API server, without any controller.
//
// Cases of what is accepted and refused are data, in
// internal/validation/testdata, and are shared with the tests of that package.
package api

// Package v1alpha1 holds the types of the API group db.my-domain.com, version
// v1alpha1, with the validation that the API server carries out, and the
// condition types and reasons that status can have.
//
// It imports Kubernetes API packages only, and none of our own code.
//
// +kubebuilder:object:generate=true
// +groupName=db.my-domain.com
package v1alpha1

package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/my-org/postgres-operator/internal/naming"
)

// NotOursError says that an object of a needed name exists and is controlled by
// someone else, or by nobody. Such an object is never changed.
type NotOursError struct {
	Kind, Name string
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("%s %q exists and does not belong to this cluster: rename or delete it, or give the cluster another name", e.Kind, e.Name)
}

// TerminatingError says that an object of a needed name is being deleted; it is
// made anew when it has gone.
type TerminatingError struct {
	Kind, Name string
}

func (e *TerminatingError) Error() string {
	return fmt.Sprintf("%s %q is being deleted: it is made anew when it has gone", e.Kind, e.Name)
}

// Applier applies objects for one owner at a time.
type Applier struct {
	// Client reads from the cache, which holds only objects with our label.
	Client client.Client
	// Live reads from the API server. It is asked only about objects that the
	// cache lacks, that is once in an object's life: someone else's object of the
	// same name has not got our label, so the cache cannot tell "absent" from
	// "foreign".
	Live client.Reader
}

// Apply makes the object be as desired, by server-side apply under our one field
// owner, and only if it is not so already. It changes nothing that the owner does
// not control.
//
// The returned error is a *NotOursError, a *TerminatingError, or the wrapped
// error of the API server.
func (a *Applier) Apply(ctx context.Context, owner metav1.Object, desired client.Object) error {
	content, err := applyContent(a.Client.Scheme(), desired)
	if err != nil {
		return err
	}
	kind := content.GetKind()
	live, err := a.find(ctx, desired)
	if err != nil {
		return fmt.Errorf("read %s %s: %w", kind, desired.GetName(), err)
	}
	if live != nil {
		if !metav1.IsControlledBy(live, owner) {
			return &NotOursError{Kind: kind, Name: desired.GetName()}
		}
		if live.GetDeletionTimestamp() != nil {
			return &TerminatingError{Kind: kind, Name: desired.GetName()}
		}
		same, err := upToDate(live, content)
		if err != nil {
			return err
		}
		if same {
			return nil
		}
		// A precondition: an object that was replaced since is not touched.
		content.SetUID(live.GetUID())
	}
	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(content),
		client.FieldOwner(naming.FieldOwner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", kind, desired.GetName(), err)
	}
	return nil
}

// find returns the object as it is, from the cache if the cache has it, or nil
// if it does not exist.
func (a *Applier) find(ctx context.Context, desired client.Object) (client.Object, error) {
	live := desired.DeepCopyObject().(client.Object)
	key := client.ObjectKeyFromObject(desired)
	err := a.Client.Get(ctx, key, live)
	if err == nil {
		return live, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	gvk, err := apiutil.GVKForObject(desired, a.Client.Scheme())
	if err != nil {
		return nil, err
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(gvk)
	err = a.Live.Get(ctx, key, metadata)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return metadata, err
}

// applyContent turns a typed object into what server-side apply shall claim: the
// fields that the builder set, without those that a typed struct writes as zero.
func applyContent(scheme *runtime.Scheme, desired client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(desired, scheme)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", desired, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", gvk.Kind, desired.GetName(), err)
	}
	stripZero(fields)
	delete(fields, "status")
	content := &unstructured.Unstructured{Object: fields}
	content.SetGroupVersionKind(gvk)
	hash, err := hashOf(fields)
	if err != nil {
		return nil, err
	}
	annotations := content.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[naming.AnnotationAppliedHash] = hash
	content.SetAnnotations(annotations)
	return content, nil
}

// upToDate tells whether an apply would change nothing: the hash covers what we
// want (a field given up included), the comparison covers what others did.
func upToDate(live client.Object, content *unstructured.Unstructured) (bool, error) {
	if live.GetAnnotations()[naming.AnnotationAppliedHash] != content.GetAnnotations()[naming.AnnotationAppliedHash] {
		return false, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("convert %s %s: %w", content.GetKind(), live.GetName(), err)
	}
	for key, wanted := range content.Object {
		if key == "apiVersion" || key == "kind" {
			continue // a cached typed object has not got them
		}
		if !holds(fields[key], wanted) {
			return false, nil
		}
	}
	return true, nil
}

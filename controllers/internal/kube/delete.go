package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete removes one object as it was seen: the identity (and, for what is not
// deleted yet, nothing else) is a precondition, so an object of the same name
// that was made since survives; that is a conflict, which the caller meets with
// another pass. An object that has gone, or is going, is fine.
func Delete(ctx context.Context, c client.Client, seen client.Object, options ...client.DeleteOption) error {
	if seen.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := seen.GetUID()
	options = append(options, client.Preconditions{UID: &uid})
	if err := c.Delete(ctx, seen, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", kindOf(c, seen), seen.GetName(), err)
	}
	return nil
}

// Prune deletes the objects of a list that the owner controls and that are not
// named in keep.
func Prune(ctx context.Context, c client.Client, owner metav1.Object, list client.ObjectList, keep map[string]bool) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok || keep[object.GetName()] || !metav1.IsControlledBy(object, owner) {
			return nil
		}
		return Delete(ctx, c, object)
	})
}

func kindOf(c client.Client, object client.Object) string {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return gvk.Kind
}

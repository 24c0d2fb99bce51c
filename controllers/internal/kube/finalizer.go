package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// EnsureFinalizer adds the finalizer if it is missing. The object's version is a
// precondition.
func EnsureFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	before := object.DeepCopyObject().(client.Object)
	if !controllerutil.AddFinalizer(object, finalizer) {
		return nil
	}
	return patchMetadata(ctx, c, before, object, "add the finalizer to")
}

// RemoveFinalizer lets the object go. The object's version is a precondition, so
// that a stale copy cannot drop what somebody else added.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	before := object.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(patchMetadata(ctx, c, before, object, "remove the finalizer from"))
}

func patchMetadata(ctx context.Context, c client.Client, before, after client.Object, what string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("%s %s %s: %w", what, kindOf(c, before), before.GetName(), err)
	}
	return nil
}

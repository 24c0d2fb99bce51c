package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SetLabel sets one label of an object as it was seen, if it differs; an empty
// value removes it. The identity is a precondition: a pod of a StatefulSet that
// was replaced since has the same name, and must not inherit the label: that is a
// conflict, as for Delete.
func SetLabel(ctx context.Context, c client.Client, seen client.Object, key, value string) error {
	if seen.GetLabels()[key] == value {
		return nil
	}
	var label any // null removes
	if value != "" {
		label = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":    seen.GetUID(),
		"labels": map[string]any{key: label},
	}})
	if err != nil {
		return fmt.Errorf("label %s: %w", seen.GetName(), err)
	}
	target := seen.DeepCopyObject().(client.Object)
	err = c.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("label %s %s: %w", kindOf(c, seen), seen.GetName(), err)
	}
	return nil
}

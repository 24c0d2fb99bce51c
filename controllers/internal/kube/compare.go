package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// stripZero removes what a typed struct writes although nobody set it: nulls,
// and the empty structs of fields without omitempty. An empty map that means
// something (emptyDir: {}) is the value of a pointer field and stays.
func stripZero(fields map[string]any) {
	for key, value := range fields {
		switch typed := value.(type) {
		case nil:
			delete(fields, key)
		case map[string]any:
			stripZero(typed)
			if len(typed) == 0 && isStructWithoutOmitempty(key) {
				delete(fields, key)
			}
		case []any:
			for _, item := range typed {
				if object, ok := item.(map[string]any); ok {
					stripZero(object)
				}
			}
		}
	}
}

// isStructWithoutOmitempty names the fields of the Kubernetes types we use that
// are written as {} when unset.
func isStructWithoutOmitempty(key string) bool {
	switch key {
	case "resources", "strategy", "updateStrategy", "status", "spec", "metadata":
		return true
	}
	return false
}

// hashOf is a short hash of a JSON document; equal documents have equal hashes.
func hashOf(document any) (string, error) {
	raw, err := json.Marshal(document) // maps are written in the order of their keys
	if err != nil {
		return "", fmt.Errorf("hash an object: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// holds tells whether a live value holds everything that is wanted. What the
// server or others added beside it does not matter.
func holds(live, wanted any) bool {
	switch want := wanted.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return len(want) == 0 && live == nil
		}
		for key, value := range want {
			if !holds(have[key], value) || (isSelector(key) && !holds(value, have[key])) {
				return false
			}
		}
		return true
	case []any:
		have, ok := live.([]any)
		return ok && holdsList(have, want)
	default:
		return equalScalars(live, wanted)
	}
}

// isSelector names the fields in which a label that somebody adds changes the
// meaning of the whole: a Service that asks for one label more selects no pod.
func isSelector(key string) bool {
	switch key {
	case "selector", "podSelector", "namespaceSelector":
		return true
	}
	return false
}

// holdsList compares lists whose items have a name (or, for owner references, a
// uid) item by item of that name, and all others in order.
func holdsList(have, want []any) bool {
	for _, key := range []string{"uid", "name"} {
		haveBy, okHave := byKey(have, key)
		wantBy, okWant := byKey(want, key)
		if !okHave || !okWant {
			continue
		}
		for name, item := range wantBy {
			if !holds(haveBy[name], item) {
				return false
			}
		}
		return true
	}
	if len(have) != len(want) {
		return false
	}
	for i := range want {
		if !holds(have[i], want[i]) {
			return false
		}
	}
	return true
}

// byKey indexes a list of objects by a key that each of them has.
func byKey(items []any, key string) (map[string]any, bool) {
	index := make(map[string]any, len(items))
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		name, ok := object[key].(string)
		if !ok {
			return nil, false
		}
		index[name] = item
	}
	return index, len(index) == len(items)
}

func equalScalars(a, b any) bool {
	if x, ok := asFloat(a); ok {
		y, ok := asFloat(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func asFloat(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	}
	return 0, false
}

// Holds tells whether a live value has everything that the wanted one of the
// same type sets.
func Holds(live, wanted any) (bool, error) {
	have, err := fieldsOf(live)
	if err != nil {
		return false, err
	}
	want, err := fieldsOf(wanted)
	if err != nil {
		return false, err
	}
	return holds(have, want), nil
}

// Hash is a short hash of what a typed value sets; a field given up changes it.
func Hash(value any) (string, error) {
	fields, err := fieldsOf(value)
	if err != nil {
		return "", err
	}
	return hashOf(fields)
}

func fieldsOf(value any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", value, err)
	}
	stripZero(fields)
	return fields, nil
}

//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestBadInputIsRefused with the field and the remedy, at once.
func TestBadInputIsRefused(t *testing.T) {
	e := begin(t)
	good := cluster("db", 2, "15.20")
	for name, c := range map[string]struct{ from, to, says string }{
		"a long name":         {"name: db", "name: " + strings.Repeat("a", 45), "at most 44 characters"},
		"a name with a dot":   {"name: db", "name: my.db", "begin with a letter"},
		"a name with a digit": {"name: db", "name: 1db", "begin with a letter"},
		"no replicas":         {"replicas: 2", "replicas: 0", "spec.replicas"},
		"too many replicas":   {"replicas: 2", "replicas: 2147483647", "spec.replicas"},
		"a version as number": {`"15.20"`, "15.2", "spec.postgresVersion"},
		"an old major":        {`"15.20"`, `"9.6"`, "spec.postgresVersion"},
		"a malformed size":    {"size: 512Mi", "size: 10GB", "spec.storage.size"},
		"a tiny size":         {"size: 512Mi", "size: 1Mi", "256Mi to 64Ti"},
		"a huge size":         {"size: 512Mi", "size: 9999999Ei", "256Mi to 64Ti"},
		"no storage class":    {"    storageClassName: " + storageClass() + "\n", "", "storageClassName"},
		"a reserved parameter": {"  replicas", "  postgresql: {parameters: {listen_addresses: '*'}}\n  replicas",
			"listen_addresses is set by the operator"},
		"an unknown parameter": {"  replicas", "  postgresql: {parameters: {work_men: 1MB}}\n  replicas", "check its spelling"},
	} {
		_, err := e.try(strings.Replace(good, c.from, c.to, 1), "apply", "--filename", "-")
		assert.ErrorContains(t, err, c.says, name)
	}
	e.apply(good)
	for name, c := range map[string]struct{ patch, says string }{
		"shrink": {`{"spec":{"storage":{"size":"400Mi"}}}`, "cannot shrink"},
		"class":  {`{"spec":{"storage":{"storageClassName":"other"}}}`, "is fixed"},
		"major":  {`{"spec":{"postgresVersion":"16.1"}}`, "major cannot be changed"},
		"shrink and scale in one": {`{"spec":{"replicas":3,"storage":{"size":"400Mi"}}}`,
			"cannot shrink"},
	} {
		_, err := e.try("", "patch", "postgrescluster", "db", "--type=merge", "--patch", c.patch)
		assert.ErrorContains(t, err, c.says, name)
	}
	assert.Equal(t, "2", e.kubectl("get", "postgrescluster", "db", "--output", "jsonpath={.spec.replicas}"))
	e.kubectl("patch", "postgrescluster", "db", "--type=merge", "--patch", `{"spec":{"storage":{"size":"524288Ki"}}}`)
}

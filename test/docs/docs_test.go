package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/instance/server"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(raw)
}

func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"README.md": read(t, "README.md")}
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	for _, file := range files {
		name := "docs/" + filepath.Base(file)
		found[name] = read(t, name)
	}
	return found
}

// constants are the string constants of a Go file whose names begin with one of
// the prefixes, by value.
func constants(t *testing.T, path string, prefixes ...string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
	require.NoError(t, err)
	values := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(spec.Names[0].Name, prefix) {
				value, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				values[value] = true
			}
		}
		return true
	})
	require.NotEmpty(t, values)
	return values
}

// TestEveryReasonIsExplained: what a condition can say stands in the document, and
// the document tells of nothing else.
func TestEveryReasonIsExplained(t *testing.T) {
	text := read(t, "docs/troubleshooting.md")
	reasons := constants(t, "api/v1alpha1/conditions.go", "Reason")
	for problem := range constants(t, "internal/protocol/report.go", "Problem") {
		reasons[problem] = true
	}
	for reason := range reasons {
		assert.Regexp(t, `(?m)(^\| |\b)`+reason+`( \||:)`, text, "docs/troubleshooting.md does not explain %s", reason)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z]+) \|`).FindAllStringSubmatch(text, -1) {
		assert.True(t, reasons[row[1]], "docs/troubleshooting.md explains %s, which no condition says", row[1])
	}
	for kind := range constants(t, "api/v1alpha1/conditions.go", "Condition") {
		assert.Regexp(t, `(?m)^## .*\b`+kind+`\b`, text)
	}
}

// TestEveryExampleIsAPostgresCluster: an example with a misspelt field helps nobody.
func TestEveryExampleIsAPostgresCluster(t *testing.T) {
	examples := 0
	for name, text := range documents(t) {
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
			examples++
			cluster := &dbv1alpha1.PostgresCluster{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(block[1]), cluster), name)
			assert.Equal(t, "PostgresCluster", cluster.Kind, name)
		}
	}
	assert.Positive(t, examples)
}

// TestEveryMakeTargetExists, and every file that is linked to.
func TestEveryMakeTargetExists(t *testing.T) {
	output, err := exec.Command("make", "-C", root, "--no-print-directory", "help").Output()
	require.NoError(t, err)
	targets := string(output)
	for name, text := range documents(t) {
		for _, line := range regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9 -]+)").FindAllStringSubmatch(text, -1) {
			for _, target := range strings.Fields(line[1]) {
				assert.Regexp(t, `(?m)^  `+target+` `, targets, "%s names make %s", name, target)
			}
		}
		prose := regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(prose, -1) {
			if !strings.Contains(link[1], "://") {
				assert.FileExists(t, filepath.Join(root, filepath.Dir(name), link[1]), name)
			}
		}
	}
}

// TestEveryMetricIsDescribed, with its labels and its type, and nothing else is.
func TestEveryMetricIsDescribed(t *testing.T) {
	text := read(t, "docs/metrics.md")
	described := regexp.MustCompile("(?m)^\\| `postgres_instance_[a-z_]+` \\|.*$").FindAllString(text, -1)
	var expected []string
	known := map[string]bool{}
	for _, metric := range server.Metrics() {
		kind, labels := "gauge", ""
		if metric.Counter {
			kind = "counter"
		}
		if len(metric.Labels) > 0 {
			labels = "`" + strings.Join(metric.Labels, "`, `") + "`"
		}
		expected = append(expected, fmt.Sprintf("| `%s` | %s | %s | %s |", metric.Name, labels, kind, metric.Help))
		known[metric.Name] = true
	}
	assert.ElementsMatch(t, expected, described)
	for name, text := range documents(t) {
		for _, metric := range regexp.MustCompile(`postgres_instance_[a-z_]+`).FindAllString(text, -1) {
			assert.True(t, known[metric], "%s names the metric %s", name, metric)
		}
	}
}

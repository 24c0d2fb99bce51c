package postgres

import (
	"fmt"
	"strings"
)

// SynchronousNames is the value of synchronous_standby_names for which a commit
// waits for a number of the named replicas: method "any" or "first". It is empty,
// a commit waits for nobody, if the number is 0 or there are no names. More than
// there are names are never met; PostgreSQL then waits, and so it shall.
func SynchronousNames(method string, number int, names []string) string {
	if number <= 0 || len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return fmt.Sprintf("%s %d (%s)", strings.ToUpper(method), number, strings.Join(quoted, ","))
}

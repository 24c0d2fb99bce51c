package postgres

import (
	"fmt"
	"strings"
)

// MaxIdentifierBytes is the longest name of a role, database or slot: NAMEDATALEN
// less one.
const MaxIdentifierBytes = 63

// QuoteIdentifier quotes a name for use in SQL. It fails on what no name can be.
func QuoteIdentifier(name string) (string, error) {
	if err := CheckIdentifier(name); err != nil {
		return "", err
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`, nil
}

// CheckIdentifier tells why a name can be no identifier.
func CheckIdentifier(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a name must not be empty")
	case len(name) > MaxIdentifierBytes:
		return fmt.Errorf("the name %q has %d bytes; PostgreSQL keeps %d", name, len(name), MaxIdentifierBytes)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("the name %q holds a zero byte", name)
	}
	return nil
}

// QuoteLiteral quotes a string constant for use in SQL, whatever
// standard_conforming_strings says.
func QuoteLiteral(value string) string {
	quoted := strings.ReplaceAll(value, `'`, `''`)
	if strings.Contains(quoted, `\`) {
		return ` E'` + strings.ReplaceAll(quoted, `\`, `\\`) + `'`
	}
	return `'` + quoted + `'`
}

// QuoteConfig quotes a value for postgresql.conf. A value cannot hold a line
// break or a zero byte there; CheckParameters refuses those.
func QuoteConfig(value string) string {
	value = strings.ReplaceAll(value, `\`, `\\`)
	return `'` + strings.ReplaceAll(value, `'`, `''`) + `'`
}

// QuoteConnInfo quotes a value for a connection string of keywords and values.
func QuoteConnInfo(value string) string {
	value = strings.ReplaceAll(value, `\`, `\\`)
	return `'` + strings.ReplaceAll(value, `'`, `\'`) + `'`
}

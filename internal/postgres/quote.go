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

// DeadPeer are the keywords of a connection string that make libpq notice a peer which
// is gone, in seconds. The WAL receiver heeds no connect_timeout: an address that leads
// nowhere any more, which a Service has for a moment, would hold it for two minutes.
var DeadPeer = [][2]string{
	{"tcp_user_timeout", "3000"}, {"keepalives_idle", "3"}, {"keepalives_interval", "1"}, {"keepalives_count", "3"},
}

// QuoteConnInfo quotes a value for a connection string of keywords and values.
func QuoteConnInfo(value string) string {
	value = strings.ReplaceAll(value, `\`, `\\`)
	return `'` + strings.ReplaceAll(value, `'`, `\'`) + `'`
}

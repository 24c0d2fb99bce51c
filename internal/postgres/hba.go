package postgres

import (
	"fmt"
	"slices"
	"strings"
)

var (
	hbaTypes   = []string{"local", "host", "hostssl", "hostnossl", "hostgssenc", "hostnogssenc"}
	hbaMethods = []string{"trust", "reject", "md5", "scram-sha-256", "password", "gss", "sspi", "ident", "peer",
		"ldap", "radius", "cert", "pam", "bsd", "oauth"}
)

// CheckHBARule tells why a line of spec.postgresql.hba cannot stand in
// pg_hba.conf. It checks the form; whether roles and databases exist is not
// asked, as PostgreSQL does not either.
func CheckHBARule(rule string) error {
	if strings.ContainsAny(rule, "\n\r\x00") {
		return fmt.Errorf("rule %q: one rule is one line", rule)
	}
	fields, err := hbaFields(rule)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		return fmt.Errorf("rule %q is empty: remove it", rule)
	}
	if !slices.Contains(hbaTypes, fields[0]) {
		return fmt.Errorf("rule %q: the first word must be one of %s", rule, strings.Join(hbaTypes, ", "))
	}
	method := 4
	if fields[0] == "local" {
		method = 3
	}
	// An address may be followed by a netmask in a word of its own.
	if method == 4 && len(fields) > 5 && !slices.Contains(hbaMethods, fields[4]) {
		method = 5
	}
	if len(fields) <= method {
		return fmt.Errorf("rule %q: type, database, user, address (not for local) and method are needed", rule)
	}
	if !slices.Contains(hbaMethods, fields[method]) {
		return fmt.Errorf("rule %q: %q is no authentication method; use one of %s", rule, fields[method], strings.Join(hbaMethods, ", "))
	}
	for _, option := range fields[method+1:] {
		if !strings.Contains(option, "=") {
			return fmt.Errorf("rule %q: option %q must be name=value", rule, option)
		}
	}
	return nil
}

// hbaFields splits a rule into words; a quoted part of a word may hold blanks.
func hbaFields(rule string) ([]string, error) {
	var fields []string
	var word strings.Builder
	quoted, inWord := false, false
	for _, r := range rule {
		switch {
		case r == '"':
			quoted, inWord = !quoted, true
			word.WriteRune(r)
		case !quoted && (r == ' ' || r == '\t'):
			if inWord {
				fields = append(fields, word.String())
				word.Reset()
			}
			inWord = false
		case !quoted && r == '#':
			return nil, fmt.Errorf("rule %q: a comment cannot stand here", rule)
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if quoted {
		return nil, fmt.Errorf("rule %q: a quote is not closed", rule)
	}
	if inWord {
		fields = append(fields, word.String())
	}
	return fields, nil
}

package postgres

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

const (
	hbaLocal   = "local"
	hbaHostSSL = "hostssl"
)

var hbaTypes = []string{hbaLocal, "host", hbaHostSSL, "hostnossl", "hostgssenc", "hostnogssenc"}

// hbaHost is a host name, or the end of one after a dot.
var hbaHost = regexp.MustCompile(`^\.?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// hbaRule is a line of pg_hba.conf in words; quotes are kept in them.
type hbaRule struct {
	kind, database, user, address, mask, method string
	options                                     []string
}

// CheckHBARule tells why a line of spec.postgresql.hba cannot stand in
// pg_hba.conf of a major. It is strict, because PostgreSQL does not start with a
// file that has one wrong line. Whether roles and databases exist is not asked,
// as PostgreSQL does not either.
func CheckHBARule(major int, rule string) error {
	if strings.ContainsAny(rule, "\n\r\x00") {
		return fmt.Errorf("rule %q: one rule is one line: make it two entries", rule)
	}
	if strings.HasSuffix(strings.TrimSpace(rule), `\`) {
		return fmt.Errorf("rule %q: a backslash at the end would join the next line to it: remove it", rule)
	}
	parsed, err := parseHBARule(rule)
	if err == nil {
		err = parsed.check(major)
	}
	if err != nil {
		return fmt.Errorf("rule %q: %w", rule, err)
	}
	return nil
}

// parseHBARule sorts the words of a rule.
func parseHBARule(rule string) (hbaRule, error) {
	words, err := hbaWords(rule)
	if err != nil {
		return hbaRule{}, err
	}
	if len(words) == 0 {
		return hbaRule{}, fmt.Errorf("is empty: remove it")
	}
	if !slices.Contains(hbaTypes, words[0]) {
		return hbaRule{}, fmt.Errorf("the first word must be one of %s", strings.Join(hbaTypes, ", "))
	}
	wanted := 5
	if words[0] == hbaLocal {
		wanted = 4
	}
	if len(words) < wanted {
		return hbaRule{}, fmt.Errorf("type, database, user, address (not for local) and method are needed")
	}
	parsed := hbaRule{kind: words[0], database: words[1], user: words[2]}
	rest := words[3:]
	if parsed.kind != hbaLocal {
		parsed.address, rest = rest[0], rest[1:]
		// PostgreSQL expects a netmask after an address without a prefix length.
		if _, err := netip.ParseAddr(parsed.address); err == nil {
			if len(rest) < 2 {
				return hbaRule{}, fmt.Errorf("address %s needs a prefix length, as in 10.0.0.0/8, or a netmask after it", parsed.address)
			}
			parsed.mask, rest = rest[0], rest[1:]
		}
	}
	parsed.method, parsed.options = rest[0], rest[1:]
	return parsed, nil
}

func (r hbaRule) check(major int) error {
	for _, list := range [][2]string{{"database", r.database}, {"user", r.user}} {
		if err := checkHBANames(major, list[0], list[1]); err != nil {
			return err
		}
	}
	if err := r.checkAddress(); err != nil {
		return err
	}
	if err := r.checkMethod(major); err != nil {
		return err
	}
	return r.checkOptions(major)
}

// checkHBANames checks a list of databases or users.
func checkHBANames(major int, what, list string) error {
	for _, name := range splitHBAList(list) {
		switch {
		case strings.HasPrefix(name, "@") || strings.HasPrefix(name, "+@"):
			return fmt.Errorf("%s %s: names cannot be read from a file: list them here", what, name)
		case major >= 16 && strings.HasPrefix(strings.TrimPrefix(name, `"`), "/"):
			if _, err := regexp.Compile(strings.Trim(name, `"`)[1:]); err != nil {
				return fmt.Errorf("%s %s: is no regular expression that can be checked: write a simpler one", what, name)
			}
		}
	}
	return nil
}

func (r hbaRule) checkAddress() error {
	switch {
	case r.kind == hbaLocal || r.address == "all" || r.address == "samehost" || r.address == "samenet":
		return nil
	case r.mask != "":
		address, _ := netip.ParseAddr(r.address)
		mask, err := netip.ParseAddr(r.mask)
		if err != nil || mask.Is4() != address.Is4() {
			return fmt.Errorf("address %s needs a prefix length, as in 10.0.0.0/8, or a netmask of its kind after it", r.address)
		}
		return nil
	case strings.Contains(r.address, "/"):
		if _, err := netip.ParsePrefix(r.address); err != nil {
			return fmt.Errorf("address %s: is no network such as 10.0.0.0/8 or fd00::/8", r.address)
		}
		return nil
	case !hbaHost.MatchString(r.address) || strings.Trim(r.address, "0123456789.") == "":
		return fmt.Errorf("address %s: must be all, samehost, samenet, a network such as 10.0.0.0/8, or a host name", r.address)
	}
	return nil
}

// splitHBAList splits a list at the commas that are not quoted.
func splitHBAList(list string) []string {
	quoted := false
	return strings.FieldsFunc(list, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
}

// hbaWords splits a rule into words; a quoted part of a word may hold blanks, and
// a comma joins what follows it.
func hbaWords(rule string) ([]string, error) {
	var words []string
	var word strings.Builder
	quoted := false
	end := func() {
		if text := word.String(); text != "" && !strings.HasSuffix(text, ",") {
			words = append(words, text)
			word.Reset()
		}
	}
	for _, r := range rule {
		switch {
		case r == '"':
			quoted = !quoted
			word.WriteRune(r)
		case !quoted && (r == ' ' || r == '\t'):
			end()
		case !quoted && r == '#':
			return nil, fmt.Errorf("a comment cannot stand here: remove it")
		default:
			word.WriteRune(r)
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is not closed")
	}
	if strings.HasSuffix(word.String(), ",") {
		return nil, fmt.Errorf("a list ends with a comma: remove it")
	}
	end()
	return words, nil
}

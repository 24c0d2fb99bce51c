package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// hbaMethod is what PostgreSQL asks of a rule with this method.
type hbaMethod struct {
	since int // the major that brought it; 0: all
	// only are the types of connection that it works with; none: all.
	only, except []string
	// options beside those of hostssl, and those of them that must be there, each
	// or one of several.
	options  []string
	required [][]string
}

// hbaMethods are the methods that a server on Linux knows.
var hbaMethods = map[string]hbaMethod{
	"trust":         {},
	"reject":        {},
	"md5":           {},
	"password":      {},
	"scram-sha-256": {},
	"peer":          {only: []string{hbaLocal}, options: []string{"map"}},
	"ident":         {options: []string{"map"}},
	"cert":          {only: []string{hbaHostSSL}, options: []string{"map"}},
	"gss":           {except: []string{hbaLocal}, options: []string{"map", "krb_realm", "include_realm"}},
	"pam":           {options: []string{"pamservice", "pam_use_hostname"}},
	"ldap": {
		options: []string{"ldapurl", "ldaptls", "ldapscheme", "ldapserver", "ldapport", "ldapbinddn", "ldapbindpasswd",
			"ldapsearchattribute", "ldapsearchfilter", "ldapbasedn", "ldapprefix", "ldapsuffix"},
		required: [][]string{{"ldapurl", "ldapserver"}, {"ldapurl", "ldapbasedn", "ldapprefix", "ldapsuffix"}},
	},
	"radius": {
		options:  []string{"radiusservers", "radiusports", "radiussecrets", "radiusidentifiers"},
		required: [][]string{{"radiusservers"}, {"radiussecrets"}},
	},
	"oauth": {
		since:    18,
		options:  []string{"issuer", "scope", "validator", "map", "delegate_ident_mapping"},
		required: [][]string{{"issuer"}, {"scope"}},
	},
}

func (r hbaRule) checkMethod(major int) error {
	method, found := hbaMethods[r.method]
	switch {
	case !found:
		return fmt.Errorf("%s is no authentication method; use one of %s", r.method,
			strings.Join(slices.Sorted(maps.Keys(hbaMethods)), ", "))
	case major < method.since:
		return fmt.Errorf("method %s needs PostgreSQL %d, and this is %d: use another", r.method, method.since, major)
	case method.only != nil && !slices.Contains(method.only, r.kind):
		return fmt.Errorf("method %s works with %s rules only: change the first word or the method", r.method, strings.Join(method.only, ", "))
	case slices.Contains(method.except, r.kind):
		return fmt.Errorf("method %s does not work with %s rules: use another", r.method, r.kind)
	}
	return nil
}

func (r hbaRule) checkOptions(major int) error {
	method := hbaMethods[r.method]
	given := map[string]string{}
	for _, option := range r.options {
		name, value, found := strings.Cut(strings.Trim(option, `"`), "=")
		value = strings.Trim(value, `"`)
		switch {
		case !found || name == "" || value == "":
			return fmt.Errorf("option %s must be name=value", option)
		case len(splitHBAList(option)) > 1:
			return fmt.Errorf("option %s: quote a value that holds a comma", option)
		case r.kind == hbaHostSSL && (name == "clientcert" || name == "clientname"):
			if err := r.checkClientOption(major, name, value); err != nil {
				return err
			}
		case !slices.Contains(method.options, name):
			return fmt.Errorf("method %s of a %s rule has no option %s: remove it", r.method, r.kind, name)
		}
		given[name] = value
	}
	for _, oneOf := range method.required {
		if !slices.ContainsFunc(oneOf, func(name string) bool { return given[name] != "" }) {
			return fmt.Errorf("method %s needs %s", r.method, strings.Join(oneOf, " or "))
		}
	}
	if given["clientname"] != "" && r.method != "cert" && given["clientcert"] != "verify-full" {
		return fmt.Errorf("option clientname needs clientcert=verify-full beside it")
	}
	return r.checkDirectory(given)
}

// checkClientOption checks the options about client certificates.
func (r hbaRule) checkClientOption(major int, name, value string) error {
	switch {
	case name == "clientname" && major < 14:
		return fmt.Errorf("option clientname needs PostgreSQL 14, and this is %d: remove it", major)
	case name == "clientname" && value != "CN" && value != "DN":
		return fmt.Errorf("option clientname must be CN or DN, not %s", value)
	case name == "clientcert" && r.method == "cert" && value != "verify-full":
		return fmt.Errorf("option clientcert must be verify-full with method cert, not %s", value)
	case name == "clientcert" && value != "verify-ca" && value != "verify-full":
		return fmt.Errorf("option clientcert must be verify-ca or verify-full, not %s", value)
	}
	return nil
}

// checkDirectory checks that the two ways to use LDAP are not mixed.
func (r hbaRule) checkDirectory(given map[string]string) error {
	if given["ldapprefix"] == "" && given["ldapsuffix"] == "" {
		return nil
	}
	for _, name := range []string{"ldapbasedn", "ldapbinddn", "ldapbindpasswd", "ldapsearchattribute", "ldapsearchfilter"} {
		if given[name] != "" {
			return fmt.Errorf("option %s cannot stand beside ldapprefix and ldapsuffix: remove one of them", name)
		}
	}
	return nil
}

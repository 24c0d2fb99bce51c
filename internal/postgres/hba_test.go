package postgres

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesThatCanStand(t *testing.T) {
	for _, rule := range []string{
		"hostssl all all 10.0.0.0/8 scram-sha-256",
		"host app app 10.0.0.0 255.0.0.0 scram-sha-256",
		"host app app fd00::/8 md5",
		"host app app fd00:: ffff:: reject",
		`hostssl all "a b" samehost cert map=users`,
		"hostssl app, reports  +readers,admin  .example.com scram-sha-256 clientcert=verify-ca",
		"hostssl all all all scram-sha-256 clientcert=verify-full clientname=DN",
		"local all all peer",
		"local\tall\tall\tscram-sha-256",
		`host "@odd" all all scram-sha-256`,
		"hostssl all all 0.0.0.0/0 ldap ldapserver=ldap.example.com ldapprefix=cn= ldapsuffix=\", dc=example\"",
		`hostssl all all 0.0.0.0/0 ldap ldapurl="ldaps://ldap.example.com/dc=example?uid?sub"`,
		`hostssl all all all radius radiusservers="10.0.0.1,10.0.0.2" radiussecrets="a,b"`,
		"host all all all gss include_realm=0 krb_realm=EXAMPLE.COM",
		`host all /^dba_ all scram-sha-256`,
	} {
		assert.NoError(t, CheckHBARule(17, rule), rule)
	}
	assert.NoError(t, CheckHBARule(18, `hostssl all all all oauth issuer="https://id.example.com" scope="openid"`))
	assert.NoError(t, CheckHBARule(15, "host all /( all md5"), "until 15 this is a plain name")
}

func TestRulesThatCannotStand(t *testing.T) {
	for rule, want := range map[string]string{
		"":                                              "is empty",
		" \t":                                           "is empty",
		"host all all":                                  "are needed",
		"local all all":                                 "are needed",
		"host all all 10.0.0.0/8":                       "are needed",
		"include other.conf":                            "first word",
		"HOST all all all md5":                          "first word",
		"hostssl all all 10.0.0.0/8 magic":              "no authentication method",
		"hostssl all all all sspi":                      "no authentication method",
		"host all all all trust\nhost all all":          "two entries",
		`hostssl all "a all scram-sha-256`:              "quote is not closed",
		"# nothing":                                     "comment",
		"host all all all md5 # why":                    "comment",
		`host all all all md5 \`:                        "backslash",
		"host all all, ":                                "comma",
		"host @names all all md5":                       "from a file",
		"host all all,@names all md5":                   "from a file",
		"host all /( all md5":                           "simpler",
		"host all all 10.0.0.0 md5":                     "prefix length",
		"host all all 10.0.0.0 ffff:: md5":              "prefix length",
		"host all all 10.0.0.0/33 md5":                  "no network",
		"host all all example.com/8 md5":                "no network",
		"host all all 10.0.0 md5":                       "must be all",
		"host all all a,b md5":                          "must be all",
		"host all all all peer":                         "local rules only",
		"host all all all cert":                         "hostssl rules only",
		"local all all gss":                             "does not work with local",
		"hostssl all all 0.0.0.0/0 cert map":            "name=value",
		"hostssl all all all md5 map=a":                 "no option map",
		"host all all all md5 clientcert=verify-full":   "no option clientcert",
		"hostssl all all all md5 clientcert=1":          "verify-ca or verify-full",
		"hostssl all all all cert clientcert=verify-ca": "verify-full with method cert",
		"hostssl all all all md5 clientname=CN":         "beside it",
		"hostssl all all all md5 clientname=X":          "CN or DN",
		"host all all all ldap":                         "needs ldapurl or ldapserver",
		"host all all all ldap ldapserver=a":            "needs ldapurl or ldapbasedn",
		"host all all all ldap ldapserver=a ldapprefix=b ldapbasedn=c": "cannot stand beside",
		"host all all all radius radiusservers=a,b radiussecrets=c":    "quote a value",
		"hostssl all all all oauth issuer=a scope=b":                   "needs PostgreSQL 18",
	} {
		err := CheckHBARule(17, rule)
		if assert.Error(t, err, rule) {
			assert.Contains(t, err.Error(), want, rule)
		}
	}
	assert.ErrorContains(t, CheckHBARule(13, "hostssl all all all cert clientname=DN"), "needs PostgreSQL 14")
}

func FuzzHBARule(f *testing.F) {
	for _, seed := range []string{"host all all all md5", `local "a,b", c all peer map="x y"`, "hostssl all all 1.2.3.4 255.0.0.0 ldap"} {
		f.Add(17, seed)
	}
	f.Fuzz(func(t *testing.T, major int, rule string) {
		if CheckHBARule(major, rule) != nil {
			return
		}
		// What passes is one rule: nothing in it reaches the lines around it.
		assert.NotContains(t, rule, "\n")
		assert.Zero(t, strings.Count(rule, `"`)%2)
		words, err := hbaWords(rule)
		assert.NoError(t, err)
		assert.Contains(t, hbaTypes, words[0])
	})
}

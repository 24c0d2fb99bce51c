package postgres

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionsCompareAsNumbers(t *testing.T) {
	older, err := ParseVersion("15.9")
	require.NoError(t, err)
	newer, err := ParseVersion("15.10")
	require.NoError(t, err)
	assert.Negative(t, older.Compare(newer))
	assert.Equal(t, "15.10", newer.String())
	for _, bad := range []string{"", "15", "15.2.1", "v15.2", "15.2 ", "latest", "15.2;id", "../../x", "15.2@sha256:00"} {
		_, err := ParseVersion(bad)
		assert.Error(t, err, bad)
	}
}

func TestServerVersion(t *testing.T) {
	for output, want := range map[string]Version{
		"postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)\n": {15, 20},
		"postgres (PostgreSQL) 18.6":                             {18, 6},
		"postgres (PostgreSQL) 19devel":                          {19, 0},
	} {
		got, err := ParseServerVersion(output)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := ParseServerVersion("sh: not found")
	assert.Error(t, err)
}

func TestLSN(t *testing.T) {
	lsn, err := ParseLSN("16/B374D848")
	require.NoError(t, err)
	assert.Equal(t, "16/B374D848", lsn.String())
	larger, err := ParseLSN("100/0")
	require.NoError(t, err)
	assert.Greater(t, larger, lsn, "judged numerically")
	for _, bad := range []string{"", "16", "/", "16/", "x/1", "1/100000000"} {
		_, err := ParseLSN(bad)
		assert.Error(t, err, bad)
	}
}

func TestCheckParameters(t *testing.T) {
	for _, c := range []struct {
		major             int
		name, value, want string
	}{
		{15, "work_mem", "8MB", ""},
		{15, "pg_stat_statements.max", "5000", ""},
		{15, "wal_level", "logical", ""},
		{15, "wal_level", "minimal", "replica or logical"},
		{15, "listen_addresses", "*", "cannot be set"},
		{15, "fsync", "off", "cannot be set"},
		{15, "Work_Mem", "8MB", "lower-case"},
		{15, "work_men", "8MB", "not known"},
		{13, "idle_session_timeout", "1min", "from PostgreSQL 14 on"},
		{17, "vacuum_defer_cleanup_age", "1", "up to PostgreSQL 15"},
		{15, "application_name", "a\nport = 1", "one line"},
		{15, "search_path", strings.Repeat("x", 1001), "1001 bytes"},
	} {
		faults := CheckParameters(c.major, map[string]string{c.name: c.value})
		if c.want == "" {
			assert.Empty(t, faults, c.name)
			continue
		}
		require.Len(t, faults, 1, c.name)
		assert.Contains(t, faults[0].Error(), c.want)
		assert.Contains(t, faults[0].Error(), c.name)
	}
}

func TestRestarts(t *testing.T) {
	assert.True(t, NeedsRestart(15, "shared_buffers"))
	assert.False(t, NeedsRestart(15, "work_mem"))
	assert.True(t, NeedsRestart(17, "autovacuum_max_workers"))
	assert.False(t, NeedsRestart(18, "autovacuum_max_workers"))
	assert.False(t, NeedsRestart(17, "io_method"), "17 does not know it")
}

func TestReservedAndDefaultsDoNotOverlap(t *testing.T) {
	for name := range Defaults(Sizing{Major: 17}) {
		assert.NotContains(t, Reserved, name, "a default can be overridden")
	}
	for _, name := range KnownNames() {
		assert.NotContains(t, Reserved, name)
	}
}

func TestDefaultsAreParametersOfEveryMajor(t *testing.T) {
	for major := OldestMajor; major <= NewestMajor; major++ {
		for _, memory := range []int64{0, 256 << 20, 64 << 30} {
			values := Defaults(Sizing{Major: major, MemoryBytes: memory, CPUMillis: 500, StorageBytes: 1 << 30})
			assert.Empty(t, CheckParameters(major, values))
		}
	}
}

func FuzzLSN(f *testing.F) {
	f.Add("16/B374D848")
	f.Add("0/0")
	f.Fuzz(func(t *testing.T, text string) {
		lsn, err := ParseLSN(text)
		if err != nil {
			return
		}
		again, err := ParseLSN(lsn.String())
		require.NoError(t, err)
		assert.Equal(t, lsn, again)
	})
}

func FuzzQuoting(f *testing.F) {
	for _, seed := range []string{"", "a", `a'b`, `\`, `"`, "'; drop table t; --"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		literal := strings.TrimPrefix(QuoteLiteral(value), " E")
		inner := literal[1 : len(literal)-1]
		if strings.HasPrefix(QuoteLiteral(value), " E") {
			inner = strings.ReplaceAll(inner, `\\`, `\`)
		}
		assert.Equal(t, value, strings.ReplaceAll(inner, `''`, `'`))
		if identifier, err := QuoteIdentifier(value); err == nil {
			assert.Equal(t, value, strings.ReplaceAll(identifier[1:len(identifier)-1], `""`, `"`))
		}
		config := QuoteConfig(value)
		assert.Equal(t, value, unquoteConfig(config[1:len(config)-1]))
	})
}

// unquoteConfig reads a value as PostgreSQL's configuration reader does.
func unquoteConfig(text string) string {
	var value strings.Builder
	for i := 0; i < len(text); i++ {
		if (text[i] == '\\' || text[i] == '\'') && i+1 < len(text) {
			i++
		}
		value.WriteByte(text[i])
	}
	return value.String()
}

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"os"
	"path/filepath"

	"github.com/my-org/postgres-operator/internal/pki"
	"github.com/my-org/postgres-operator/test/writer/journal"
)

func TestOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want journal.Outcome
	}{
		"done":                       {nil, journal.Acknowledged},
		"a read-only server":         {&pgconn.PgError{Code: "25006"}, journal.Failed},
		"the volume is full":         {&pgconn.PgError{Code: "53100"}, journal.Failed},
		"a server that goes away":    {&pgconn.PgError{Code: "57P01"}, journal.Unknown},
		"a connection that is cut":   {errors.New("unexpected EOF"), journal.Unknown},
		"a server that was not well": {&pgconn.PgError{Code: "08006"}, journal.Unknown},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, outcome(test.err)) })
	}
}

func TestConfigVerifiesTheServerInFull(t *testing.T) {
	folder := t.TempDir()
	authority, err := pki.EnsureCA(nil, "a/db", time.Now())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ca.crt"), authority["ca.crt"], 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "uri"), []byte("postgresql://app:secret@db-primary.a.svc:5432/app?sslmode=verify-full"), 0o600))
	c, err := config(options{secret: folder, limit: time.Second})
	require.NoError(t, err)
	assert.Equal(t, "db-primary.a.svc", c.TLSConfig.ServerName)
	assert.False(t, c.TLSConfig.InsecureSkipVerify)
	assert.NotNil(t, c.TLSConfig.RootCAs)
	assert.Empty(t, c.Fallbacks)
	assert.Equal(t, time.Second, c.ConnectTimeout)
}

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCertificatesAreRenewedWithoutARestart: new certificates are presented by
// PostgreSQL and by the instance managers, while the postmaster runs on.
func TestCertificatesAreRenewedWithoutARestart(t *testing.T) {
	e := begin(t)
	e.apply(cluster("db", 2, "15.20"))
	e.ready("db")
	presented := func(port, protocol string) string {
		output, err := e.try("", "exec", "db-primary-0", "--container", "postgres", "--", "bash", "-c",
			fmt.Sprintf("openssl s_client -connect localhost:%s %s </dev/null 2>/dev/null | openssl x509 -noout -serial", port, protocol))
		if err != nil {
			return ""
		}
		return output
	}
	replicaSerial := func() string {
		return e.sql("db-primary-0", "app", "select coalesce(min(client_serial::text), '') from pg_stat_replication join pg_stat_ssl using (pid)")
	}
	postgres, control := presented("5432", "-starttls postgres"), presented("8443", "")
	serial, started := replicaSerial(), e.sql("db-primary-0", "app", "select pg_postmaster_start_time()")
	assert.Contains(t, postgres, "serial=")
	assert.Equal(t, postgres, control)

	e.kubectl("delete", "secret", "db-server", "db-replication") // as if their time had come
	e.eventually("PostgreSQL presents the new one", func() bool {
		now := presented("5432", "-starttls postgres")
		return strings.HasPrefix(now, "serial=") && now != postgres
	})
	e.eventually("and so does the instance manager", func() bool {
		now := presented("8443", "")
		return strings.HasPrefix(now, "serial=") && now != control
	})
	e.eventually("the replica's next connection has the new one", func() bool {
		now := replicaSerial()
		if now == serial {
			e.sql("db-primary-0", "app", "select pg_terminate_backend(pid) from pg_stat_replication")
		}
		return now != "" && now != serial
	})
	e.ready("db")
	assert.Equal(t, started, e.sql("db-primary-0", "app", "select pg_postmaster_start_time()"))
}

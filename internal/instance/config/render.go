package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
	"github.com/my-org/postgres-operator/internal/postgres"
)

// LogPrefix begins each entry of PostgreSQL's log; what follows a line without
// it belongs to the entry before.
const LogPrefix = "%m|%p|%u|%d|"

// Input is all that the configuration of an instance depends on.
type Input struct {
	Cluster  *dbv1alpha1.PostgresCluster
	Instance string
	// Major of the server.
	Major                  int
	MemoryBytes, CPUMillis int64
	// Directory of the rendered files, of PGDATA, of the socket, of the
	// certificates.
	Directory, Data, Socket, TLS string
	// OSUser is the name of the user that runs PostgreSQL.
	OSUser string
	// AtLeast are values of a replica's that must not be below the primary's; see
	// Followed.
	AtLeast map[string]int64
	// Cut: a replica receives nothing, whoever the primary is.
	Cut bool
}

// Names of the files.
const (
	FileServer = "postgresql.conf"
	FileHBA    = "pg_hba.conf"
	FileIdent  = "pg_ident.conf"
)

// Names of the private copies of the certificates in Input.TLS.
const (
	FileServerCert = "server.crt"
	FileServerKey  = "server.key"
	FileClientCert = "replication.crt"
	FileClientKey  = "replication.key"
	FileCA         = "ca.crt"
)

// Render makes the files, by name.
func Render(in Input) map[string]string {
	return map[string]string{
		FileServer: server(in),
		FileHBA:    hba(in),
		FileIdent:  fmt.Sprintf("instance %s %s\n", hbaWord(in.OSUser), naming.UserSuperuser),
	}
}

// server writes the defaults, over them the user's parameters, over them what
// cannot be changed. PostgreSQL takes the last of several lines.
func server(in Input) string {
	values := asked(in)
	for _, name := range held(values, in.AtLeast) {
		values[name] = strconv.FormatInt(in.AtLeast[name], 10)
	}
	maps.Copy(values, fixed(in))
	var text strings.Builder
	text.WriteString("# Written by the instance manager; changes are overwritten.\n")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "%s = %s\n", name, postgres.QuoteConfig(values[name]))
	}
	return text.String()
}

// asked are the defaults, and over them the user's parameters.
func asked(in Input) map[string]string {
	values := postgres.Defaults(postgres.Sizing{
		Major: in.Major, MemoryBytes: in.MemoryBytes, CPUMillis: in.CPUMillis,
		StorageBytes: storageBytes(in.Cluster),
	})
	// A parameter that admission would refuse today may be stored from earlier
	// days; PostgreSQL would not start with it.
	parameters := in.Cluster.Spec.PostgreSQL.ParameterStrings()
	refused := map[string]bool{}
	for _, fault := range postgres.CheckParameters(in.Major, parameters) {
		refused[fault.Name] = true
	}
	for name, value := range parameters {
		if !refused[name] {
			values[name] = value
		}
	}
	return values
}

// fixed are the reserved parameters; see postgres.Reserved for the reasons.
func fixed(in Input) map[string]string {
	values := map[string]string{
		"listen_addresses":         "*",
		"port":                     fmt.Sprint(naming.PortPostgres),
		"unix_socket_directories":  in.Socket,
		"cluster_name":             in.Instance,
		"data_directory":           in.Data,
		"hba_file":                 filepath.Join(in.Directory, FileHBA),
		"ident_file":               filepath.Join(in.Directory, FileIdent),
		"ssl":                      "on",
		"ssl_cert_file":            filepath.Join(in.TLS, FileServerCert),
		"ssl_key_file":             filepath.Join(in.TLS, FileServerKey),
		"ssl_ca_file":              filepath.Join(in.TLS, FileCA),
		"hot_standby":              "on",
		"wal_log_hints":            "on",
		"full_page_writes":         "on",
		"fsync":                    "on",
		"logging_collector":        "off",
		"log_destination":          "stderr",
		"log_line_prefix":          LogPrefix,
		"primary_conninfo":         PrimaryConnInfo(in, naming.UserSuperuser),
		"primary_slot_name":        naming.Slot(in.Instance),
		"recovery_target_timeline": "latest",
		"restart_after_crash":      "on",
	}
	if in.Major >= 17 {
		values["allow_alter_system"] = "off"
		// Logical slots that ask for it (failover => true) survive a change of the
		// primary. PostgreSQL wants feedback of such a replica.
		if in.Cluster.Spec.PostgreSQL.Parameters["wal_level"] == "logical" {
			values["sync_replication_slots"] = "on"
			values["hot_standby_feedback"] = "on"
		}
	}
	if in.Cut {
		values["primary_conninfo"] = ""
	}
	values["synchronous_standby_names"] = SynchronousNames(in.Cluster, in.Instance)
	return values
}

// SynchronousNames is synchronous_standby_names as the operator wants it on an
// instance; empty if commits wait for nobody.
func SynchronousNames(cluster *dbv1alpha1.PostgresCluster, instance string) string {
	if cluster.Status.Synchronous == nil {
		return ""
	}
	rule := cluster.Status.Synchronous.Wanted
	return postgres.SynchronousNames(string(rule.Method), int(rule.Number), rule.Replicas(instance))
}

// PrimaryConnInfo is how a replica reaches the primary: through the Service, with
// the replication certificate, and the server's name verified in full.
func PrimaryConnInfo(in Input, database string) string {
	return connInfo(in, naming.ServiceHost(naming.PrimaryService(in.Cluster.Name), in.Cluster.Namespace), database)
}

// InstanceConnInfo is how a replica reaches one instance by its own name: a copy
// can begin before kube-proxy knows of the Service's new endpoint.
func InstanceConnInfo(in Input, instance, database string) string {
	return connInfo(in, naming.InstanceHost(in.Cluster.Name, in.Cluster.Namespace, instance), database)
}

func connInfo(in Input, host, database string) string {
	pairs := [][2]string{
		{"host", host},
		{"port", fmt.Sprint(naming.PortPostgres)},
		{"user", naming.UserReplication},
		{"dbname", database},
		{"application_name", in.Instance},
		{"sslmode", "verify-full"},
		{"sslrootcert", filepath.Join(in.TLS, FileCA)},
		{"sslcert", filepath.Join(in.TLS, FileClientCert)},
		{"sslkey", filepath.Join(in.TLS, FileClientKey)},
		{"connect_timeout", "5"},
	}
	var words []string
	for _, pair := range append(pairs, postgres.DeadPeer...) {
		words = append(words, pair[0]+"="+postgres.QuoteConnInfo(pair[1]))
	}
	return strings.Join(words, " ")
}

// hba puts the rules of replication first, so that no rule of the user's can cut
// a replica off; then the user's rules; then the rule for everybody.
func hba(in Input) string {
	replica := naming.UserReplication
	lines := []string{
		"# Written by the instance manager; changes are overwritten.",
		"local all " + naming.UserSuperuser + " peer map=instance",
		"hostssl replication " + replica + " all cert",
		"hostssl all " + replica + " all cert",
		"local all " + replica + " reject",
		"host all " + replica + " all reject",
		"host replication " + replica + " all reject",
	}
	for _, rule := range in.Cluster.Spec.PostgreSQL.HBA {
		if postgres.CheckHBARule(in.Major, rule) == nil {
			lines = append(lines, rule)
		}
	}
	lines = append(lines,
		"local all all scram-sha-256",
		"hostssl all all all scram-sha-256",
		"host all all all reject",
	)
	return strings.Join(lines, "\n") + "\n"
}

func hbaWord(word string) string { return `"` + strings.ReplaceAll(word, `"`, `""`) + `"` }

func storageBytes(cluster *dbv1alpha1.PostgresCluster) int64 {
	size, err := resource.ParseQuantity(cluster.Spec.Storage.Size)
	if err != nil {
		return 0
	}
	return size.Value()
}

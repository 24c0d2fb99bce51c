package postgres

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MaxParameterValueBytes bounds a value: PostgreSQL reads lines of that size.
const MaxParameterValueBytes = 1000

// Reserved are the parameters that the operator sets or keeps at their default,
// with the reason and what to do instead.
var Reserved = map[string]string{
	"listen_addresses":                       "the operator decides where PostgreSQL listens: use Services",
	"port":                                   "the port is 5432: give a Service of your own another one",
	"unix_socket_directories":                "the socket's place is fixed: psql finds it in the pod",
	"unix_socket_group":                      "the socket belongs to the pod's user",
	"unix_socket_permissions":                "the socket belongs to the pod's user",
	"bonjour":                                "clients find PostgreSQL through Services",
	"bonjour_name":                           "clients find PostgreSQL through Services",
	"data_directory":                         "the place of the data is fixed",
	"config_file":                            "the operator writes the configuration: use spec.postgresql.parameters",
	"hba_file":                               "the operator writes pg_hba.conf: use spec.postgresql.hba",
	"ident_file":                             "the operator writes pg_ident.conf",
	"external_pid_file":                      "the instance manager watches PostgreSQL itself",
	"cluster_name":                           "it names the instance",
	"ssl":                                    "TLS is always on",
	"ssl_cert_file":                          "the operator manages certificates",
	"ssl_key_file":                           "the operator manages certificates",
	"ssl_ca_file":                            "the operator manages certificates",
	"ssl_crl_file":                           "the operator manages certificates",
	"ssl_crl_dir":                            "the operator manages certificates",
	"ssl_passphrase_command":                 "the operator manages certificates",
	"ssl_passphrase_command_supports_reload": "the operator manages certificates",
	"hot_standby":                            "replicas always answer queries",
	"primary_conninfo":                       "the operator connects the replicas",
	"primary_slot_name":                      "the operator manages replication slots",
	"synchronous_standby_names":              "the operator decides who is a synchronous replica",
	"wal_log_hints":                          "it is on: a former primary could not be rewound without it",
	"full_page_writes":                       "it is on: a crash could lose data without it",
	"fsync":                                  "it is on: a crash could lose data without it",
	"restart_after_crash":                    "it is on: PostgreSQL recovers from the crash of one of its processes by itself",
	"archive_mode":                           "the operator manages archiving",
	"archive_command":                        "the operator manages archiving",
	"archive_library":                        "the operator manages archiving",
	"archive_cleanup_command":                "the operator manages archiving",
	"restore_command":                        "the operator manages recovery",
	"recovery_end_command":                   "the operator manages recovery",
	"recovery_target":                        "the operator manages recovery",
	"recovery_target_action":                 "the operator manages recovery",
	"recovery_target_inclusive":              "the operator manages recovery",
	"recovery_target_lsn":                    "the operator manages recovery",
	"recovery_target_name":                   "the operator manages recovery",
	"recovery_target_time":                   "the operator manages recovery",
	"recovery_target_timeline":               "the operator manages recovery",
	"recovery_target_xid":                    "the operator manages recovery",
	"promote_trigger_file":                   "the operator promotes",
	"sync_replication_slots":                 "the operator manages replication slots",
	"synchronized_standby_slots":             "the operator manages replication slots",
	"logging_collector":                      "logs go to the pod's standard output: see kubectl logs",
	"log_destination":                        "logs go to the pod's standard output: see kubectl logs",
	"log_directory":                          "logs go to the pod's standard output: see kubectl logs",
	"log_filename":                           "logs go to the pod's standard output: see kubectl logs",
	"log_file_mode":                          "logs go to the pod's standard output: see kubectl logs",
	"log_rotation_age":                       "logs go to the pod's standard output: see kubectl logs",
	"log_rotation_size":                      "logs go to the pod's standard output: see kubectl logs",
	"log_truncate_on_rotation":               "logs go to the pod's standard output: see kubectl logs",
	"log_line_prefix":                        "the instance manager reads the log in a form of its own",
	"syslog_facility":                        "logs go to the pod's standard output: see kubectl logs",
	"syslog_ident":                           "logs go to the pod's standard output: see kubectl logs",
	"syslog_sequence_numbers":                "logs go to the pod's standard output: see kubectl logs",
	"syslog_split_messages":                  "logs go to the pod's standard output: see kubectl logs",
	"event_source":                           "logs go to the pod's standard output: see kubectl logs",
	"allow_alter_system":                     "settings belong in spec.postgresql.parameters, where every instance gets them",
	"stats_temp_directory":                   "the root file system is read-only",
	"db_user_namespace":                      "it breaks the names of the operator's own roles",
}

// ParameterError says why one entry of spec.postgresql.parameters is refused.
type ParameterError struct {
	Name, Value string
	// Message is the reason and the remedy.
	Message string
}

func (e ParameterError) Error() string { return fmt.Sprintf("parameter %s: %s", e.Name, e.Message) }

var parameterName = regexp.MustCompile(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_$]*)?$`)

// CheckParameters checks parameters for a major, in the order of their names. A
// name with a dot belongs to an extension and is PostgreSQL's to judge.
func CheckParameters(major int, values map[string]string) []ParameterError {
	var faults []ParameterError
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if message := checkParameter(major, name, values[name]); message != "" {
			faults = append(faults, ParameterError{Name: name, Value: values[name], Message: message})
		}
	}
	return faults
}

func checkParameter(major int, name, value string) string {
	if !parameterName.MatchString(name) {
		return "is no name of a parameter: use lower-case letters, digits and underscores"
	}
	if reason, reserved := Reserved[name]; reserved {
		return "cannot be set: " + reason
	}
	switch {
	case len(value) > MaxParameterValueBytes:
		return fmt.Sprintf("has %d bytes; at most %d are possible", len(value), MaxParameterValueBytes)
	case strings.ContainsAny(value, "\n\r\x00"):
		return "must be one line"
	case name == "wal_level" && value != "replica" && value != "logical":
		return "must be replica or logical: replicas need it"
	}
	if strings.Contains(name, ".") {
		return ""
	}
	known, found := parameters[name]
	switch {
	case !found:
		return "is not known to PostgreSQL: check its spelling"
	case major < known.since:
		return fmt.Sprintf("is known from PostgreSQL %d on, and this is %d: remove it", known.since, major)
	case major > known.until:
		return fmt.Sprintf("is known up to PostgreSQL %d, and this is %d: remove it", known.until, major)
	}
	return ""
}

// NeedsRestart tells whether a change of a parameter waits for a restart of
// PostgreSQL of this major; false for what it does not know.
func NeedsRestart(major int, name string) bool {
	known, found := parameters[name]
	if !found || major < known.since || major > known.until {
		return false
	}
	return known.restart || slices.Contains(restartBefore[name], major)
}

// restartBefore are the majors in which a parameter needs a restart although the
// newest one reloads it.
var restartBefore = map[string][]int{
	"autovacuum_max_workers": {13, 14, 15, 16, 17},
}

// KnownNames are the names that may be set for some major, sorted. Admission
// checks against them; CheckParameters is exact.
func KnownNames() []string {
	var names []string
	for name := range parameters {
		if _, reserved := Reserved[name]; !reserved {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

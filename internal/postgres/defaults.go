package postgres

import (
	"fmt"
	"strconv"
)

// Sizing is what the defaults are derived from.
type Sizing struct {
	Major int
	// MemoryBytes and CPUMillis of the container; zero if unknown.
	MemoryBytes, CPUMillis int64
	// StorageBytes is the size of the volume; zero if unknown.
	StorageBytes int64
}

const (
	mebibyte = 1 << 20
	// walSenders and replicationSlots are room for 50 instances, the most that a
	// cluster can have: one slot each and, while all of them are cloned at once, two
	// connections. They do not follow the number of instances, since a change of
	// either waits for a restart: scaling would ask for one. They cost about three
	// megabytes.
	walSenders       = 110
	replicationSlots = 60
)

// Defaults are the parameters that the user may override, derived from the
// container's size. They are right, if modest, when nothing is known.
func Defaults(s Sizing) map[string]string {
	values := map[string]string{
		// Writes are spread over nearly all the time between checkpoints (PostgreSQL's
		// own default since 14); what a crash has to replay is bounded by the time here
		// and by max_wal_size below.
		"checkpoint_completion_target": "0.9",
		"checkpoint_timeout":           "5min",
		// Volumes of Kubernetes are solid state or network storage, where a random
		// read costs little more than a sequential one.
		"random_page_cost":         "1.1",
		"effective_io_concurrency": "200",
		"max_connections":          "100",
		"max_wal_senders":          strconv.Itoa(walSenders),
		"max_replication_slots":    strconv.Itoa(replicationSlots),
		"wal_level":                "replica",
		// A container without a limit for huge pages may not touch one: on a node that
		// has some, PostgreSQL would be killed by SIGBUS instead of doing without.
		"huge_pages": "off",
		// A long query on a replica is cancelled after a while rather than let it stop
		// the primary from vacuuming: bloat there hurts everybody.
		"hot_standby_feedback": "off",
		// A replica that only lost its connection catches up from here even if its
		// slot is gone.
		"wal_keep_size": "64MB",
		// A dead peer is noticed in seconds, not after the two hours of the kernel.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "5",
		"tcp_keepalives_count":    "3",
		"wal_sender_timeout":      "10s",
		"wal_receiver_timeout":    "10s",
		// A replica retries its connection at once, not after five seconds.
		"wal_retrieve_retry_interval": "500ms",
		// The rule for everybody in pg_hba.conf asks for SCRAM; 13 would store MD5.
		"password_encryption": "scram-sha-256",
		// What one needs to see after an incident, at next to no cost.
		"log_checkpoints": "on",
		"log_lock_waits":  "on",
		"track_io_timing": "on",
		// The same everywhere: initdb would take over the time zone of the node.
		"log_timezone": "UTC",
		"timezone":     "UTC",
	}
	memoryDefaults(s, values)
	workerDefaults(s, values)
	storageDefaults(s, values)
	return values
}

func memoryDefaults(s Sizing, values map[string]string) {
	megabytes := s.MemoryBytes / mebibyte
	if megabytes == 0 {
		// Nothing is reserved for the pod, so it takes little.
		values["shared_buffers"] = "128MB"
		values["effective_cache_size"] = "384MB"
		values["maintenance_work_mem"] = "64MB"
		values["work_mem"] = "4MB"
		return
	}
	values["shared_buffers"] = mb(max(megabytes/4, 16))
	values["effective_cache_size"] = mb(max(megabytes*3/4, 32))
	values["maintenance_work_mem"] = mb(min(max(megabytes/16, 16), 2048))
	// A quarter of the memory, were all connections to sort at once.
	values["work_mem"] = mb(min(max(megabytes/400, 2), 256))
}

func workerDefaults(s Sizing, values map[string]string) {
	cores := max((s.CPUMillis+999)/1000, 2)
	values["max_worker_processes"] = strconv.FormatInt(max(8, cores), 10)
	values["max_parallel_workers"] = strconv.FormatInt(max(2, min(cores, 64)), 10)
	values["max_parallel_workers_per_gather"] = strconv.FormatInt(min(max(cores/2, 1), 4), 10)
	values["max_parallel_maintenance_workers"] = strconv.FormatInt(min(max(cores/2, 1), 4), 10)
}

// storageDefaults bound what the WAL may take of the volume, which holds the
// tables too: a tenth between checkpoints, a quarter for replicas that are
// absent. A dead replica cannot fill the primary's disk.
func storageDefaults(s Sizing, values map[string]string) {
	megabytes := s.StorageBytes / mebibyte
	if megabytes == 0 {
		megabytes = 1024
	}
	values["max_wal_size"] = mb(min(max(megabytes/10, 80), 8192))
	values["min_wal_size"] = mb(min(max(megabytes/20, 32), 1024))
	values["max_slot_wal_keep_size"] = mb(max(megabytes/4, 96))
}

func mb(megabytes int64) string { return fmt.Sprintf("%dMB", megabytes) }

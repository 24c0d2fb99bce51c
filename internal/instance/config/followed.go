package config

import (
	"slices"
	"strconv"
)

// Followed are the parameters of which a replica needs at least as much as the primary
// has, by the name that pg_controldata gives to the primary's value
// (https://www.postgresql.org/docs/current/hot-standby.html#HOT-STANDBY-ADMIN). When one
// is lowered, replicas keep it until the primary has restarted with less.
var Followed = map[string]string{
	"max_connections":           "max_connections setting",
	"max_worker_processes":      "max_worker_processes setting",
	"max_wal_senders":           "max_wal_senders setting",
	"max_prepared_transactions": "max_prepared_xacts setting",
	"max_locks_per_transaction": "max_locks_per_xact setting",
}

// Held names the parameters that a replica keeps higher than it is asked for.
func Held(in Input) []string { return held(asked(in), in.AtLeast) }

// unset is what PostgreSQL takes if nothing is set.
var unset = map[string]int64{
	"max_connections": 100, "max_worker_processes": 8, "max_wal_senders": 10,
	"max_prepared_transactions": 0, "max_locks_per_transaction": 64,
}

func held(values map[string]string, atLeast map[string]int64) []string {
	var names []string
	for name, least := range atLeast {
		value, err := strconv.ParseInt(values[name], 10, 64)
		if _, set := values[name]; !set {
			value = unset[name]
		} else if err != nil {
			continue // PostgreSQL will say what is wrong with it
		}
		if value < least {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

package protocol

import "time"

// PathConfirm is where a primary that cannot renew its Lease asks its peers, with
// a Confirmation as an answer: POST, with the parameter "primary" naming the
// asking instance and pod.
const PathConfirm = "/v1/confirm"

// GrantTime is how long a peer that has confirmed holds still: it does not let
// itself be promoted before that time has passed on its own clock. The primary
// counts from before it asked.
const GrantTime = 5 * time.Second

// Confirmation is what a peer answers.
type Confirmation struct {
	Instance string `json:"instance"`
	PodUID   string `json:"podUID"`
	// APIServerReachable tells whether this peer reaches the API server right now,
	// by a request made for this answer.
	APIServerReachable bool `json:"apiServerReachable"`
	// Granted: the peer holds still for GrantTime. It does so only in an outage of the
	// API server, and for a moment after it.
	Granted bool `json:"granted"`
}

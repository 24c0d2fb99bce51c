package protocol

import (
	"net/url"
	"strconv"
	"time"
)

// PathConfirm is where a primary that cannot renew its Lease asks its peers, with
// a Confirmation as an answer: POST, with a Question as parameters.
const PathConfirm = "/v1/confirm"

// GrantTime is how long a peer that has confirmed holds still: it does not let
// itself be promoted before that time has passed on its own clock. The primary
// counts from before it asked.
const GrantTime = 8 * time.Second

// Question is what a primary asks.
type Question struct {
	// Primary is the asking instance and pod, with a slash between.
	Primary string
	// NotSaved: the primary reaches the API server, which says that it cannot save.
	// Then nobody can be made the primary in its place, and a peer that can still
	// read confirms as well.
	NotSaved bool
}

// Values are its parameters.
func (q Question) Values() url.Values {
	return url.Values{"primary": {q.Primary}, "notSaved": {strconv.FormatBool(q.NotSaved)}}
}

// ParseQuestion reads the parameters of a request.
func ParseQuestion(values url.Values) Question {
	return Question{Primary: values.Get("primary"), NotSaved: values.Get("notSaved") == "true"}
}

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

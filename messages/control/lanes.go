package control

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// SubjectLanes is the request about lanes of the dispatcher's micro service: LanesRequest -> LaneList.
const SubjectLanes = "longshore.lanes"

// LanesRequest asks for lanes.
type LanesRequest struct {
	Tenant string `json:"tenant,omitempty"` // only this one's; default: all, and that of the wake-ups
	All    bool   `json:"all,omitempty"`    // empty ones too
}

// Check says which field is wrong.
func (r *LanesRequest) Check() error {
	if r.Tenant == "" {
		return nil
	}
	return strict.CheckToken("tenant", r.Tenant)
}

// MaxLanes bounds a list of lanes.
const MaxLanes = 1000

// LaneStatus is what waits in a lane.
type LaneStatus struct {
	Tenant   string            `json:"tenant,omitempty"` // none: wake-ups, of all tenants
	Priority messages.Priority `json:"priority"`
	Queued   int               `json:"queued"`           // messages that no worker was given
	InFlight int               `json:"inFlight"`         // messages that a worker has, or had and has to get again
	Oldest   *time.Time        `json:"oldest,omitempty"` // when the first of the queued ones was stored
}

// LaneList is lanes: wake-ups first, then by priority, the fullest first.
type LaneList struct {
	Lanes []LaneStatus `json:"lanes"`
	More  bool         `json:"more,omitempty"` // there are others
}

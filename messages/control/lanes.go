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

// SubjectQueued is the request for the tasks of a tenant that no worker has begun: QueuedRequest -> QueuedList.
const SubjectQueued = "longshore.queued"

// MaxQueuedList is how many tasks one page holds at most.
const MaxQueuedList = 500

// QueuedRequest asks for queued tasks that fit, oldest first. Zero fields do not restrict.
type QueuedRequest struct {
	Tenant  string            `json:"tenant,omitempty"`  // default "default"
	Delayed bool              `json:"delayed,omitempty"` // those that wait for their time, instead of those in the queue
	Since   *time.Time        `json:"since,omitempty"`   // stored since then
	Until   *time.Time        `json:"until,omitempty"`   // stored before
	Agent   string            `json:"agent,omitempty"`
	Session string            `json:"sessionId,omitempty"`
	Parent  string            `json:"parent,omitempty"` // to which this run delegated
	Labels  map[string]string `json:"labels,omitempty"`
	After   uint64            `json:"after,omitempty"` // continue after this one: Next of the page before
	Limit   int               `json:"limit,omitempty"` // default and most 500
}

// QueuedList is a page of queued tasks. It may hold fewer than were asked for; Next is 0 at the end. A task that a
// worker has in hand is among them until its run has parked or ended: that it has begun, its events tell.
type QueuedList struct {
	Runs []RunSummary `json:"runs"`
	Next uint64       `json:"next,omitempty"`
}

// Check fills the defaults, and says which field is wrong.
func (r *QueuedRequest) Check() error {
	if r.Tenant == "" {
		r.Tenant = messages.DefaultTenant
	}
	if r.Limit == 0 {
		r.Limit = MaxQueuedList
	}
	if r.Limit < 0 || r.Limit > MaxQueuedList {
		return &messages.FieldError{Field: "limit", Reason: "must be 1 to 500"}
	}
	if err := CheckAfter(r.After); err != nil {
		return err
	}
	if err := CheckSince(r.Since); err != nil {
		return err
	}
	if r.Parent != "" {
		if err := strict.CheckToken("parent", r.Parent); err != nil {
			return err
		}
	}
	return strict.CheckToken("tenant", r.Tenant)
}

// Fits reports whether a task is meant, but for its tenant, time and parent. What cannot be read is an empty task.
func (r *QueuedRequest) Fits(t *messages.Task) bool {
	if r.Agent != "" && t.Agent != r.Agent || r.Session != "" && t.Session != r.Session {
		return false
	}
	for k, v := range r.Labels {
		if got, ok := t.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

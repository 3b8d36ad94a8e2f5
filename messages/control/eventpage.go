package control

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// SubjectEvents is the request for stored events of a tenant: EventsRequest -> EventPage. Who may read no stream follows
// with it and a plain subscription.
const SubjectEvents = "longshore.events"

// MaxEventPage is how many events one page holds at most.
const MaxEventPage = 256

// maxPosition is how long a position may be: 64 sequences, each with what follows it.
const maxPosition = 64 * 20

// EventsRequest asks for stored events, in the order they were stored.
type EventsRequest struct {
	Tenant string     `json:"tenant,omitempty"` // default "default"
	ID     string     `json:"id,omitempty"`     // of a run; absent: all of the tenant
	After  uint64     `json:"after,omitempty"`  // continue after this place: Next of the page before
	Since  *time.Time `json:"since,omitempty"`  // stored since then; does not count with After
	Limit  int        `json:"limit,omitempty"`  // default and most 256
	// In place of After where events of a tenant are in several streams: Position of the page before.
	Position string `json:"position,omitempty"`
}

// EventPage is a page of stored events. It may hold fewer than were asked for. Of those stored a moment ago the newest may
// be missing: they are on a later page.
type EventPage struct {
	Events  []StoredEvent `json:"events"`
	Next    uint64        `json:"next,omitempty"`    // the place to continue after; absent: that of the request
	More    bool          `json:"more,omitempty"`    // there was more when the page was read
	Expired bool          `json:"expired,omitempty"` // of a run that is read from its beginning: older events are kept no more
	// In place of Next in a page of a tenant whose events are in several streams. Their order is that within each run.
	Position string `json:"position,omitempty"`
}

// StoredEvent is an event with its place in the stream.
type StoredEvent struct {
	Seq   uint64          `json:"seq"`
	Time  time.Time       `json:"time"`  // when it was stored, by the server's clock
	Event json.RawMessage `json:"event"` // an Event
}

// Check fills the defaults, and says which field is wrong.
func (r *EventsRequest) Check() error {
	if r.Tenant == "" {
		r.Tenant = messages.DefaultTenant
	}
	if r.Limit == 0 {
		r.Limit = MaxEventPage
	}
	if r.Limit < 0 || r.Limit > MaxEventPage {
		return &messages.FieldError{Field: "limit", Reason: "must be 1 to 256"}
	}
	if err := CheckAfter(r.After); err != nil {
		return err
	}
	if err := CheckSince(r.Since); err != nil {
		return err
	}
	if len(r.Position) > maxPosition {
		reason := fmt.Sprintf("is longer than any, which is %d bytes: continue with that of the page before", maxPosition)
		return &messages.FieldError{Field: "position", Reason: reason}
	}
	if r.ID != "" {
		return messages.Ref{Tenant: r.Tenant, Run: r.ID}.Check()
	}
	return strict.CheckToken("tenant", r.Tenant)
}

// Follow has the request ask for what follows a page. It reports whether that is another place than before.
func (r *EventsRequest) Follow(p *EventPage) (advances bool) {
	advances = p.Next > r.After || p.Position != r.Position
	r.After, r.Position = max(r.After, p.Next), p.Position
	return advances
}

// CheckAfter refuses what is no sequence of a stream: the one after it might be the first.
func CheckAfter(after uint64) error {
	if after > math.MaxInt64 {
		return &messages.FieldError{Field: "after", Reason: fmt.Sprintf("must be 0 to %d", int64(math.MaxInt64))}
	}
	return nil
}

// CheckSince refuses a time that the message store cannot count in nanoseconds: it would take it for one long ago.
func CheckSince(t *time.Time) error {
	const last = 2261
	if t != nil && t.UTC().Year() > last {
		return &messages.FieldError{Field: "since", Reason: "must be before the year 2262"}
	}
	return nil
}

// Filter matches the subjects of the events that are meant. The request must have passed Check.
func (r *EventsRequest) Filter() string {
	if r.ID == "" {
		return "events." + r.Tenant + ".>"
	}
	return messages.Ref{Tenant: r.Tenant, Run: r.ID}.EventFilter()
}

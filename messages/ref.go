package messages

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Ref names a run everywhere: in subjects, keys, logs and folders. A valid Ref has two valid tokens.
type Ref struct {
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
}

// DefaultTenant is the tenant of a task that names none.
const DefaultTenant = "default"

// Check returns a *FieldError when tenant or run is not a valid token.
func (r Ref) Check() error {
	if err := strict.CheckToken("tenant", r.Tenant); err != nil {
		return err
	}
	return strict.CheckToken("id", r.Run)
}

// String is tenant/run.
func (r Ref) String() string { return r.Tenant + "/" + r.Run }

// Subjects of a run. They must only be called on a Ref that passed Check.

// TaskSubject is where a backend publishes the task; the stream itself assigns the lane.
func (r Ref) TaskSubject(p Priority) string {
	return "tasks." + string(p) + "." + r.Tenant + "." + r.Run
}

// QueuedFilter matches the run's queued task in every priority and lane, as the stream stores it.
func (r Ref) QueuedFilter() string { return "lanes.*.*." + r.Tenant + "." + r.Run }

// LogSubject is the one literal subject of the run's log.
func (r Ref) LogSubject() string { return "runs." + r.Tenant + "." + r.Run + ".log" }

// EventSubject is where an event of the run is published.
func (r Ref) EventSubject(name string) string {
	return "events." + r.Tenant + "." + r.Run + "." + name
}

// RunOfEvent is the run of the subject of an event.
func RunOfEvent(subject string) (run Ref, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 4 || parts[0] != "events" {
		return Ref{}, false
	}
	run = Ref{parts[1], parts[2]}
	return run, run.Check() == nil
}

// EventFilter matches all events of the run.
func (r Ref) EventFilter() string { return "events." + r.Tenant + "." + r.Run + ".>" }

// NudgeSubject carries hints that the run's log has grown.
func (r Ref) NudgeSubject() string { return "nudge." + r.Tenant + "." + r.Run }

// BlobSubject is one part of a payload of the run that was too large for a record.
func (r Ref) BlobSubject(hash, part string) string {
	return "blobs." + r.Tenant + "." + r.Run + "." + hash + "." + part
}

// DeadSubject is where a task goes that cannot be worked.
func (r Ref) DeadSubject(agent string) string {
	return "dead." + r.Tenant + "." + agent + "." + r.Run
}

// DeadTicket comes before the ticket in the subject of a letter that exists in addition to that of its run.
const DeadTicket = "ticket"

// DeadTicketSubject is where a task goes that cannot be worked because another one has its id.
func (r Ref) DeadTicketSubject(agent string, ticket uint64) string {
	return r.DeadSubject(agent) + "." + DeadTicket + "." + strconv.FormatUint(ticket, 10)
}

// MsgID deduplicates the submit of a run across tenants.
func (r Ref) MsgID() string { return r.Tenant + "." + r.Run }

// AsPublished is the subject that a message of the TASKS stream was published on.
func AsPublished(stored string) string {
	t := strings.SplitN(stored, ".", 4)
	if len(t) < 4 || t[0] != "lanes" {
		return stored
	}
	return "tasks." + t[1] + "." + t[3]
}

// ParseTaskSubject reads priority and run from a subject of the TASKS stream, as published
// (tasks.<priority>.<tenant>.<run>) or as stored (lanes.<priority>.<lane>.<tenant>.<run>).
// Ok is false for anything else; the parts are then whatever could be read and must not be used in a subject. NoRun is
// neither a run nor a tenant: its events are those about no run, which a worker may not publish. Errands about all runs
// alone have it as their tenant.
func ParseTaskSubject(subject string) (p Priority, r Ref, ok bool) {
	t := strings.Split(subject, ".")
	switch {
	case len(t) == 4 && t[0] == "tasks":
		p, r = Priority(t[1]), Ref{t[2], t[3]}
	case len(t) == 5 && t[0] == "lanes":
		p, r = Priority(t[1]), Ref{t[3], t[4]}
	default:
		return "", Ref{}, false
	}
	if r.Check() != nil || r.Run == NoRun {
		return p, r, false
	}
	return p, r, p == PriorityWake || p.Valid() && r.Tenant != NoRun
}

// Folder is the folder of a run's files below the one of all workspaces.
func (r Ref) Folder() string { return r.Tenant + "/" + r.Run }

// NoRun stands for the run in the subject of an event that is about none. No task may have it as its id.
const NoRun = "_"

// LogEntriesSubject is where entries about the run are stored.
func (r Ref) LogEntriesSubject() string { return "logs." + r.Tenant + "." + r.Run }

// crockford is the alphabet of a ULID (github.com/ulid/spec).
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns a ULID: 26 characters that sort by the time t (milliseconds) and hold 80 random bits.
func NewID(t time.Time) string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails
	return IDOf(t, random)
}

// IDOf is the ULID of a time with bits that the caller drew.
func IDOf(t time.Time, random [10]byte) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(t.UnixMilli())<<16)
	copy(b[6:], random[:])
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := range out {
		out[len(out)-1-i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}

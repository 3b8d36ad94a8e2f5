package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Version of the records that this code writes, and the newest that it understands. It is raised with the first new kind or field after a
// release, so that workers of that release leave such logs to others. Builds between two releases do not tell each other's logs
// apart: one that does not know a kind or a field fails on it. Nothing was released yet: all is version 1.
const Version = 1

// ErrNewerVersion means that a newer program wrote the log: leave the run to a worker that understands it.
var ErrNewerVersion = errors.New("the log was written by a newer version")

// ErrNoKey means that something is sealed with a key that this process does not have: leave the run to a worker that has it.
var ErrNoKey = errors.New("it is sealed with a key that this process does not have")

// ErrKeyMissing is an ErrNoKey of which the whole fleet lacks the key: it is not in the keyset of the tenant.
var ErrKeyMissing = errors.New("it is sealed with a key that is not in the keyset of the tenant")

// ErrUnreadable means that what is stored opens for no process: it was changed or moved here, it is in the clear where that is refused,
// or its key was destroyed.
var ErrUnreadable = errors.New("it cannot be read by any process")

// ErrClear is an ErrUnreadable that a change of the configuration would make readable.
var ErrClear = errors.New("it is not encrypted, and LONGSHORE_ENCRYPTION=required accepts only what is")

// Entry is one message of a run's log: records that became true together.
type Entry struct { //nolint:recvcheck // At changes its copy
	Seq     uint64 // given by the log
	Head    Head
	Records []Record
	Locked  bool // as it is stored, its records are sealed, and this process has no keys: they cannot be read here
}

// Head is the clear part of an entry. It travels in a message header, never sealed, so that a ticket can be judged
// and a run claimed without opening or folding anything: what crashes a worker must not do so before it is counted.
// It holds what is true after the entry. Follow makes it.
type Head struct {
	ID       string          `json:"id"` // of this entry: an append whose answer was lost is recognised by it
	Version  int             `json:"version"`
	Time     time.Time       `json:"time"`  // by the writer's clock
	Kinds    []Kind          `json:"kinds"` // of the records
	Phase    Phase           `json:"phase"`
	Claim    string          `json:"claim,omitempty"`    // of the last claim
	Ticket   uint64          `json:"ticket,omitempty"`   // of the last claim
	Delivery int             `json:"delivery,omitempty"` // of the last claim
	ClaimSeq uint64          `json:"claimSeq,omitempty"` // sequence of the last claim
	ParkSeq  uint64          `json:"parkSeq,omitempty"`  // sequence of the last park
	Attempt  int             `json:"attempt,omitempty"`  // claims since the last progress, less the released ones
	Alone    bool            `json:"alone,omitempty"`    // the last claim was made alone in quarantine, and there was no progress since; its writer says so
	Cancel   bool            `json:"cancel,omitempty"`   // it was asked to stop
	Waits    string          `json:"waits,omitempty"`    // what for, from a park until the next claim
	Needs    *messages.Needs `json:"needs,omitempty"`    // of its worker, when it waits for one, until the next claim
	// FirstEvent is the running number of the entry's first event, counted from 1 in each run; Events is how many
	// the entry has.
	FirstEvent uint64 `json:"firstEvent"`
	Events     int    `json:"events,omitempty"`
	// EventsThrough is the highest sequence up to which all events are known to be stored. A new owner publishes
	// everything after it again.
	EventsThrough uint64 `json:"eventsThrough,omitempty"`
	// Session is that of the task. Turn: the run has its turn in it, from Recalled on.
	Session string `json:"session,omitempty"`
	Turn    bool   `json:"turn,omitempty"`
	// Webhook: the task asks for a POST when the run has ended.
	Webhook bool `json:"webhook,omitempty"`
	// Trace is the traceparent of the task, in version 00. Events name the run's span in that trace.
	Trace string `json:"trace,omitempty"`
	// Semaphores are all of which the run ever asked for a permit.
	Semaphores []string `json:"lines,omitempty"`
	// Status is how the run ended, from its end on; logs of earlier versions have it in their result alone.
	Status messages.Status `json:"status,omitempty"`
	// Shown is that of the run: events of any entry are derived by it.
	Shown *Shown `json:"shown,omitempty"`
	// Children are those of the newest delegation, Earlier those of delegations before of which some have not ended, MaxEarlier at most.
	// Parent is whose child it is.
	Children *Awaited  `json:"children,omitempty"`
	Earlier  []Awaited `json:"earlier,omitempty"`
	Parent   *Kin      `json:"parent,omitempty"`
	// Workspace is the named one of which the run has, or had, the files.
	Workspace *InWorkspace `json:"workspace,omitempty"`
	// Snapshot is reserved: the sequence of an entry that holds a whole state.
	Snapshot uint64 `json:"snapshot,omitempty"`
}

// Phase is what a run is up to.
type Phase string

// Phases. Only a Ready run, and one without a log, may be claimed by a new ticket.
const (
	PhaseActive   Phase = "active"   // a worker has claimed it
	PhaseParked   Phase = "parked"   // it waits
	PhaseReady    Phase = "ready"    // what it waited for has come
	PhaseFinished Phase = "finished" // it has ended
)

// Has reports whether the entry holds a record of the kind.
func (h *Head) Has(k Kind) bool { return slices.Contains(h.Kinds, k) }

// Matches reports whether the head is one of these records: a writer of ours never makes another.
func (h *Head) Matches(records []Record) bool {
	events := 0
	for _, r := range records {
		events += kinds().count(r)
	}
	if h.Phase == PhaseFinished && !h.Has(KindFinished) {
		events = 0 // it stands behind the end
	}
	return h.Events == events &&
		slices.EqualFunc(records, h.Kinds, func(r Record, k Kind) bool { return r.Kind() == k })
}

// Follow is the head of an entry with these records right after an entry with the head prev (the zero Head: an
// empty log). It fills everything but ID, Time, EventsThrough and the Alone of a claim. Pure.
func Follow(prev Head, records ...Record) Head {
	return kinds().follow(prev, records)
}

func (t table) follow(prev Head, records []Record) Head {
	h := Head{
		Version: Version, Phase: prev.Phase, Claim: prev.Claim, Ticket: prev.Ticket, Delivery: prev.Delivery, ClaimSeq: prev.ClaimSeq,
		ParkSeq: prev.ParkSeq, Attempt: prev.Attempt, Alone: prev.Alone, Cancel: prev.Cancel, Waits: prev.Waits, Needs: prev.Needs,
		Session: prev.Session, Turn: prev.Turn, Webhook: prev.Webhook, Trace: prev.Trace, Semaphores: prev.Semaphores, Status: prev.Status, Shown: prev.Shown,
		Children: prev.Children, Earlier: prev.Earlier, Parent: prev.Parent, Workspace: prev.Workspace,
		FirstEvent: prev.FirstEvent + uint64(prev.Events),
	}
	if prev.FirstEvent == 0 {
		h.FirstEvent = 1
	}
	h.Kinds = slices.Grow(h.Kinds, len(records))
	for _, r := range records {
		h.Kinds = append(h.Kinds, r.Kind())
		if change := t[r.Kind()].head; change != nil && h.Phase != PhaseFinished {
			change(r, &h)
		}
		if prev.Phase != PhaseFinished { // run_finished is the last event
			h.Events += t.count(r)
		}
	}
	return h
}

// cancel asks the run to stop.
func (h *Head) cancel() {
	h.Cancel = true
	if h.Phase != PhaseActive {
		h.Phase = PhaseReady
	}
}

// progress is for records after which the run has not spent an attempt in vain.
func progress[R Record](_ R, h *Head) { h.Attempt, h.Alone = 0, false }

func (h *Head) satisfy(park uint64) {
	if h.Phase == PhaseParked && h.ParkSeq == park {
		h.Phase = PhaseReady
	}
}

// At returns the entry with the sequence that its log gave it. Every Log calls it, after an append and on reading:
// a claim or a park is named by its own sequence, which its writer could not know.
func (e Entry) At(seq uint64) Entry {
	e.Place(seq)
	return e
}

// Place is At in place.
func (e *Entry) Place(seq uint64) { kinds().place(e, seq) }

func (t table) place(e *Entry, seq uint64) {
	e.Seq = seq
	for _, k := range e.Head.Kinds {
		if of := t[k]; of.place != nil {
			of.place(&e.Head, seq)
		}
	}
}

// EncodeRecords writes [{"kind":…,"data":…}].
func EncodeRecords(records []Record) ([]byte, error) {
	return AppendRecords(make([]byte, 0, usual), records)
}

// AppendRecords appends what EncodeRecords writes. With an error it returns nil.
func AppendRecords(b []byte, records []Record) ([]byte, error) {
	b, err := appendRecords(b, records)
	if err != nil {
		return nil, fmt.Errorf("encode records: %w", err)
	}
	return b, nil
}

// DecodeRecords reads what EncodeRecords wrote, strictly. An unknown kind is an error.
func DecodeRecords(data []byte) ([]Record, error) { return kinds().decode(data) }

func (t table) decode(data []byte) ([]Record, error) {
	var wire []struct {
		Kind Kind            `json:"kind"`
		Data json.RawMessage `json:"data"`
	}
	if err := strict.DecodeDepth("records", strict.MaxDepth, data, &wire); err != nil {
		return nil, err
	}
	out := make([]Record, len(wire))
	for i, w := range wire {
		r := t.fresh(w.Kind)
		if r == nil {
			return nil, &messages.FieldError{Field: fmt.Sprintf("records[%d].kind", i), Reason: fmt.Sprintf("%q is unknown", strict.Shown(string(w.Kind)))}
		}
		if err := strict.Decode(w.Data, r); err != nil {
			return nil, strict.Under(fmt.Sprintf("records[%d].data", i), err)
		}
		out[i] = r
	}
	return out, nil
}

// EncodeHead writes the header form of a head.
func EncodeHead(h *Head) (string, error) {
	if y := h.Time.Year(); y < 0 || y > 9999 {
		return "", fmt.Errorf("encode head: the year %d is not one of RFC 3339", y)
	}
	var b strings.Builder
	if err := json.NewEncoder(&b).Encode(h); err != nil { // a Marshal would be copied once more
		return "", fmt.Errorf("encode head: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// DecodeHead reads a head. ErrNewerVersion: its entry may hold what this code does not understand; the fields that
// this code knows are still filled. Any other error is a *FieldError.
func DecodeHead(s string) (Head, error) {
	var h Head
	// Not strict: a newer writer may have added fields, and its version must still be read.
	err := json.Unmarshal([]byte(s), &h)
	switch {
	case h.Version > Version: // whatever err says: a field may have changed its type
		return h, ErrNewerVersion
	case err != nil:
		return Head{}, &messages.FieldError{Field: "head", Reason: strict.Shown(err.Error())}
	case h.ID == "" || h.Version < 1 || h.FirstEvent == 0 || len(h.Kinds) == 0:
		return Head{}, &messages.FieldError{Field: "head", Reason: "id, version, kinds or firstEvent is missing"}
	case h.Attempt < 0 || h.Events < 0:
		return Head{}, &messages.FieldError{Field: "head", Reason: "attempt or events is negative"}
	}
	return h, nil
}

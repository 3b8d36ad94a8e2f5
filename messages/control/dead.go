package control

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Subjects of the micro service's endpoints for dead letters.
const (
	SubjectDeadList       = "longshore.dead.list"        // DeadListRequest -> DeadList
	SubjectDeadShow       = "longshore.dead.show"        // DeadRequest -> DeadLetter, with its body
	SubjectDeadRedrive    = "longshore.dead.redrive"     // DeadRedrive -> DeadRedriven; conflict when the id is taken
	SubjectDeadPurge      = "longshore.dead.purge"       // DeadRequest -> DeadLetter, as it was
	SubjectDeadRedriveAll = "longshore.dead.redrive_all" // DeadListRequest -> DeadBulk
	SubjectDeadPurgeAll   = "longshore.dead.purge_all"   // DeadListRequest -> DeadBulk
)

// Limits of requests about dead letters.
const (
	MaxDeadList = 100 // letters of a page
	MaxDeadBulk = 50  // letters that one request removes or sends again
)

// DeadRequest names a dead letter.
type DeadRequest struct {
	Tenant      string `json:"tenant,omitempty"` // default "default"
	Unaddressed bool   `json:"unaddressed,omitempty"`
	Seq         uint64 `json:"seq"`
}

// DeadFilter says which dead letters are meant. Unaddressed: those that name no tenant, instead of a tenant's; they are
// the operator's.
type DeadFilter struct {
	Tenant      string        `json:"tenant,omitempty"` // default "default"
	Unaddressed bool          `json:"unaddressed,omitempty"`
	Kind        DeadKind      `json:"kind,omitempty"`
	Agent       string        `json:"agent,omitempty"`
	Code        messages.Code `json:"code,omitempty"`
	Since       *time.Time    `json:"since,omitempty"` // only those stored since then
}

// Check fills the tenant's default, and says which field is wrong.
func (f *DeadFilter) Check() error {
	if err := checkDeadTenant(&f.Tenant, f.Unaddressed); err != nil {
		return err
	}
	if err := CheckSince(f.Since); err != nil {
		return err
	}
	switch f.Kind {
	case "", DeadRun, DeadMessage, DeadWebhook:
	default:
		return &messages.FieldError{Field: "kind", Reason: "must be run, message or webhook"}
	}
	if f.Agent != "" && !strict.ValidToken(f.Agent) {
		return strict.CheckToken("agent", f.Agent)
	}
	return strict.CheckText("code", string(f.Code), strict.MaxToken)
}

// Check fills the tenant's default, and says which field is wrong.
func (r *DeadRequest) Check() error {
	if r.Seq == 0 {
		return &messages.FieldError{Field: "seq", Reason: "is missing"}
	}
	return checkDeadTenant(&r.Tenant, r.Unaddressed)
}

// checkDeadTenant leaves the tenant empty for letters that name none.
func checkDeadTenant(tenant *string, unaddressed bool) error {
	switch {
	case unaddressed && *tenant != "":
		return &messages.FieldError{Field: "unaddressed", Reason: "unaddressed letters have no tenant: leave tenant out"}
	case unaddressed:
		return nil
	case *tenant == "":
		*tenant = messages.DefaultTenant
	case *tenant == messages.NoRun:
		return &messages.FieldError{Field: "tenant", Reason: "_ is not a tenant: use unaddressed for letters without a tenant"}
	}
	return strict.CheckToken("tenant", *tenant)
}

// Fits reports whether a letter is meant, but for its tenant and time.
func (f *DeadFilter) Fits(of DeadOf, d *messages.Dead) bool {
	return (f.Kind == "" || f.Kind == of.Kind) && (f.Agent == "" || f.Agent == of.Agent) && (f.Code == "" || f.Code == d.Error.Code)
}

// DeadListRequest asks for the letters that fit, oldest first.
type DeadListRequest struct {
	DeadFilter
	After uint64 `json:"after,omitempty"` // continue after this one: Next of the page before
	Limit int    `json:"limit,omitempty"` // default and most 100; of a bulk request 50
}

// Check fills the default, and says which field is wrong.
func (r *DeadListRequest) Check() error {
	if err := CheckAfter(r.After); err != nil {
		return err
	}
	return r.DeadFilter.Check()
}

// DeadList is a page of dead letters. Next is 0 at the end.
type DeadList struct {
	Letters []DeadLetter `json:"letters"`
	Next    uint64       `json:"next,omitempty"`
}

// DeadRedrive asks for a dead letter to be sent again.
type DeadRedrive struct {
	DeadRequest
	// Task stands for the body of the letter. Its id does not count when it is the one that died.
	Task json.RawMessage `json:"task,omitempty"`
	// NewID is the id of the new run. Default: one that belongs to the letter, so that it cannot be sent twice.
	NewID string `json:"newId,omitempty"`
}

// DeadRedriven says what became of a letter that was sent again.
type DeadRedriven struct {
	Seq       uint64   `json:"seq"`
	Kind      DeadKind `json:"kind"`
	Tenant    string   `json:"tenant"`
	ID        string   `json:"id"`                  // of the new run; of a webhook its delivery
	Duplicate bool     `json:"duplicate,omitempty"` // it had been sent again before
}

// DeadBulk is what became of several letters. Next is 0 when none are left to look at.
type DeadBulk struct {
	Redriven []DeadRedriven `json:"redriven,omitempty"`
	Purged   []uint64       `json:"purged,omitempty"`
	Failed   []DeadFailure  `json:"failed,omitempty"`
	Next     uint64         `json:"next,omitempty"`
}

// DeadFailure says why a letter could not be sent again. It is still there.
type DeadFailure struct {
	Seq   uint64           `json:"seq"`
	Error messages.Problem `json:"error"`
}

// LabelRedriven is the label of a task that was sent again: the run that died, or the last part of the letter's subject.
const LabelRedriven = "redriven-from"

// DeadKind says what a dead letter is about.
type DeadKind string

// Kinds of dead letters.
const (
	DeadRun     DeadKind = "run"     // a task that cannot be worked; its run has ended
	DeadMessage DeadKind = "message" // a message that names no run
	DeadWebhook DeadKind = "webhook" // a webhook that could not be delivered
)

// DeadUnaddressed matches the letters that name no tenant.
const DeadUnaddressed = "dead._._.*"

// DeadOf is what the subject of a dead letter says.
type DeadOf struct {
	Kind   DeadKind
	Tenant string // empty: none
	Agent  string
	Name   string // of the run, or the last part of the subject
}

// ParseDeadSubject reads the subject of a dead letter.
func ParseDeadSubject(subject string) (of DeadOf, ok bool) {
	t := strings.Split(subject, ".")
	switch {
	case t[0] != "dead":
		return DeadOf{}, false
	case len(t) == 4 && t[1] == messages.NoRun && t[2] == messages.NoRun:
		return DeadOf{Kind: DeadMessage, Name: t[3]}, true
	case len(t) == 4:
		return DeadOf{DeadRun, t[1], t[2], t[3]}, true
	case len(t) == 6 && t[4] == messages.DeadTicket:
		return DeadOf{DeadRun, t[1], t[2], t[3]}, true
	case len(t) == 5 && t[2] == "webhook":
		return DeadOf{Kind: DeadWebhook, Tenant: t[1], Name: t[4]}, true
	default:
		return DeadOf{}, false
	}
}

// DeadLetter is a dead letter as people see it.
type DeadLetter struct {
	Seq      uint64            `json:"seq"` // its number
	Kind     DeadKind          `json:"kind"`
	Tenant   string            `json:"tenant,omitempty"` // absent: it names none
	Agent    string            `json:"agent,omitempty"`  // of a run
	Run      string            `json:"run,omitempty"`
	Batch    string            `json:"batch,omitempty"` // of a webhook
	Host     string            `json:"host,omitempty"`  // of a webhook
	Error    messages.RunError `json:"error"`
	Subject  string            `json:"subject"` // that the message came on
	Attempts int               `json:"attempts,omitempty"`
	Time     time.Time         `json:"time"`
	Size     int               `json:"size"` // of the body, in bytes
	// Task is the body, of a single letter alone: of a webhook its job, with the address. Raw is a body that is not JSON.
	Task json.RawMessage `json:"task,omitempty"`
	Raw  []byte          `json:"raw,omitempty"`
}

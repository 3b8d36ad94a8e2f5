package control

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about quotas.
const (
	SubjectQuotaList   = "longshore.quotas.list"   // {} -> QuotaList
	SubjectQuotaGet    = "longshore.quotas.get"    // QuotaRef -> QuotaState
	SubjectQuotaPut    = "longshore.quotas.put"    // QuotaPut -> QuotaChange; conflict: changed since ifRevision
	SubjectQuotaDelete = "longshore.quotas.delete" // QuotaDelete -> QuotaChange; conflict: changed since ifRevision
	SubjectAdmit       = "longshore.admit"         // AdmitRequest -> AdmitReply; rate_limited: not now
)

// QuotaState is a quota and how much of it is used.
type QuotaState struct {
	queue.QuotaRef
	Quota    queue.Quota `json:"quota"`
	Revision uint64      `json:"revision"`        // 0: nothing was granted
	Usage    *QuotaUsage `json:"usage,omitempty"` // of a tenant
}

// QuotaUsage is what a tenant uses now.
type QuotaUsage struct {
	Queued        int     `json:"queued"`        // tasks that wait for a worker
	Submitted     int     `json:"submitted"`     // admitted in this minute; counted for tenants with perMinute
	CostToday     float64 `json:"costToday"`     // in US dollars, by the calendar in UTC; unknown prices count nothing
	CostThisMonth float64 `json:"costThisMonth"` // the same
}

// QuotaList is all quotas, by kind and name. They come without their usage.
type QuotaList struct {
	Quotas []QuotaState `json:"quotas"`
}

// QuotaPut grants something in the place of what was granted before. A pause stays as it is: it is ended by a resume alone.
type QuotaPut struct {
	queue.QuotaRef
	Quota      queue.Quota `json:"quota"`
	IfRevision *uint64     `json:"ifRevision,omitempty"` // only if this is the newest; 0: only if there is none
	By         string      `json:"by,omitempty"`
}

// Check returns a *FieldError for the first field that is wrong.
func (r *QuotaPut) Check() error {
	if err := r.QuotaRef.Check(); err != nil {
		return err
	}
	if err := r.Quota.Validate(r.Kind); err != nil {
		return strict.Under("quota", err)
	}
	return strict.CheckText("by", r.By, messages.MaxAuthor)
}

// QuotaDelete takes all limits away. A pause stays.
type QuotaDelete struct {
	queue.QuotaRef
	IfRevision *uint64 `json:"ifRevision,omitempty"` // only if this is the newest
	By         string  `json:"by,omitempty"`
}

// Check returns a *FieldError for the first field that is wrong.
func (r *QuotaDelete) Check() error {
	if err := r.QuotaRef.Check(); err != nil {
		return err
	}
	return strict.CheckText("by", r.By, messages.MaxAuthor)
}

// QuotaChange answers QuotaPut and QuotaDelete.
type QuotaChange struct {
	queue.QuotaRef
	Before   queue.Quota `json:"before"`
	After    queue.Quota `json:"after"`
	Revision uint64      `json:"revision"` // 0: it was deleted
}

// AdmitRequest asks whether a tenant may submit a task now, and counts it as submitted. Tasks that are published without it meet the
// same limits when a worker begins them.
type AdmitRequest struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id,omitempty"` // of the task, when it may have been accepted before: then it passes and is not counted
}

// Check returns a *FieldError for the first field that is wrong.
func (r AdmitRequest) Check() error {
	if r.ID == "" {
		return strict.CheckToken("tenant", r.Tenant)
	}
	return messages.Ref{Tenant: r.Tenant, Run: r.ID}.Check()
}

// AdmitReply says that the task may be published.
type AdmitReply struct {
	Unlimited bool `json:"unlimited,omitempty"` // the tenant has no limit on submits: clients need not ask for the next 5 seconds
}

// AdmitFresh is how long an answer that a tenant is unlimited holds.
const AdmitFresh = 5 * time.Second

// RateLimited is the problem of a tenant that has used up a limit of its quota. A wait is rounded up to seconds, at least one.
func RateLimited(tenant, limit, text string, wait time.Duration) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: "Too Many Requests", Status: statusTooMany, Code: messages.CodeRateLimited, Retryable: true,
		Detail:     fmt.Sprintf("quota of tenant %s: %s: %s", tenant, limit, text),
		RetryAfter: int(max(time.Second, wait+time.Second-1) / time.Second),
	}
}

const statusTooMany = 429

// Requests about pauses, of the dispatcher's micro service.
const (
	SubjectPauses = "longshore.pauses" // {} -> PauseList
	SubjectPause  = "longshore.pause"  // PauseRequest -> PausedThing; what is paused already stays as it is
	SubjectResume = "longshore.resume" // PauseRequest -> PausedThing as it was; not_found when it is not paused
)

// PauseRequest names what is to be paused or resumed.
type PauseRequest struct {
	queue.QuotaRef
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Check says which field is wrong.
func (r *PauseRequest) Check() error {
	if err := r.QuotaRef.Check(); err != nil {
		return err
	}
	if len(r.By)+len(r.Reason) > queue.MaxPauseText {
		return &messages.FieldError{Field: "reason", Reason: "is too long"}
	}
	if err := strict.CheckText("by", r.By, queue.MaxPauseText); err != nil {
		return err
	}
	return strict.CheckText("reason", r.Reason, queue.MaxPauseText)
}

// PausedThing is a tenant, an agent or a provider that is paused.
type PausedThing struct {
	queue.QuotaRef
	queue.Pause
}

// PauseList is all that is paused, by kind and name.
type PauseList struct {
	Pauses []PausedThing `json:"pauses"`
}

package messages

import (
	"fmt"
	"time"

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

// Limits of a quota, as parks and problems name them.
const (
	QuotaMaxQueued    = "maxQueued"
	QuotaPerMinute    = "perMinute"
	QuotaCostPerDay   = "costPerDay"
	QuotaCostPerMonth = "costPerMonth"
)

// QuotaState is a quota and how much of it is used.
type QuotaState struct {
	QuotaRef
	Quota    Quota       `json:"quota"`
	Revision uint64      `json:"revision"`        // 0: nothing was granted
	Usage    *QuotaUsage `json:"usage,omitempty"` // of a tenant
}

// QuotaUsage is what a tenant uses now.
type QuotaUsage struct {
	Queued        int     `json:"queued"`        // tasks that wait for a worker
	Submitted     int     `json:"submitted"`     // in this minute, through the door; counted for tenants with perMinute
	CostToday     float64 `json:"costToday"`     // in US dollars, by the calendar in UTC; unknown prices count nothing
	CostThisMonth float64 `json:"costThisMonth"` // the same
}

// QuotaList is all quotas, by kind and name. They come without their usage.
type QuotaList struct {
	Quotas []QuotaState `json:"quotas"`
}

// QuotaPut grants something in the place of what was granted before. A pause stays as it is: it is ended by a resume alone.
type QuotaPut struct {
	QuotaRef
	Quota      Quota   `json:"quota"`
	IfRevision *uint64 `json:"ifRevision,omitempty"` // only if this is the newest; 0: only if there is none
	By         string  `json:"by,omitempty"`
}

// Check returns a *FieldError for the first field that is wrong.
func (r *QuotaPut) Check() error {
	if err := r.QuotaRef.Check(); err != nil {
		return err
	}
	if err := r.Quota.Validate(r.Kind); err != nil {
		return strict.Under("quota", err)
	}
	return strict.CheckText("by", r.By, maxAuthor)
}

// QuotaDelete takes all limits away. A pause stays.
type QuotaDelete struct {
	QuotaRef
	IfRevision *uint64 `json:"ifRevision,omitempty"` // only if this is the newest
	By         string  `json:"by,omitempty"`
}

// Check returns a *FieldError for the first field that is wrong.
func (r *QuotaDelete) Check() error {
	if err := r.QuotaRef.Check(); err != nil {
		return err
	}
	return strict.CheckText("by", r.By, maxAuthor)
}

// QuotaChange answers QuotaPut and QuotaDelete.
type QuotaChange struct {
	QuotaRef
	Before   Quota  `json:"before"`
	After    Quota  `json:"after"`
	Revision uint64 `json:"revision"` // 0: there is none any more
}

// AdmitRequest asks whether a tenant may submit a task now, and counts it as submitted. Whoever publishes tasks without
// asking meets the same limits when a worker begins them.
type AdmitRequest struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id,omitempty"` // of the task, when it may have been accepted before: then it passes and is not counted
}

// Check returns a *FieldError for the first field that is wrong.
func (r AdmitRequest) Check() error {
	if r.ID == "" {
		return strict.CheckToken("tenant", r.Tenant)
	}
	return Ref{Tenant: r.Tenant, Run: r.ID}.Check()
}

// AdmitReply says that the task may be published.
type AdmitReply struct {
	Unlimited bool `json:"unlimited,omitempty"` // the tenant has no limit to submits: nobody need ask in the next 5 seconds
}

// AdmitFresh is how long an answer that a tenant is unlimited holds.
const AdmitFresh = 5 * time.Second

// RateLimited is the problem of a tenant that has used up a limit of its quota. A wait is rounded up to seconds, at least one.
func RateLimited(tenant, limit, text string, wait time.Duration) *Problem {
	return &Problem{
		Type: "about:blank", Title: "Too Many Requests", Status: statusTooMany, Code: CodeRateLimited, Retryable: true,
		Detail:     fmt.Sprintf("quota of tenant %s: %s: %s", tenant, limit, text),
		RetryAfter: int(max(time.Second, wait+time.Second-1) / time.Second),
	}
}

const statusTooMany = 429

// NextDay is when the ceiling of a day begins anew.
func NextDay(now time.Time) time.Time {
	y, m, d := now.UTC().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// NextMonth is when the ceiling of a month begins anew.
func NextMonth(now time.Time) time.Time {
	y, m, _ := now.UTC().Date()
	return time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
}

// Ceiling is the first cost ceiling that is reached, in a sentence, and when it begins anew; empty: none.
func (q *Quota) Ceiling(today, month float64, now time.Time) (limit, text string, until time.Time) {
	switch {
	case q.CostPerMonth > 0 && month >= q.CostPerMonth:
		return QuotaCostPerMonth, spentOf(month, q.CostPerMonth, "this month"), NextMonth(now)
	case q.CostPerDay > 0 && today >= q.CostPerDay:
		return QuotaCostPerDay, spentOf(today, q.CostPerDay, "today"), NextDay(now)
	default:
		return "", "", until
	}
}

func spentOf(spent, ceiling float64, when string) string {
	return fmt.Sprintf("%s of %s are spent %s (UTC)", Money(RoundCost(spent)), Money(ceiling), when)
}

// Nano is a billionth of a dollar, in which spending is counted.
const Nano = 1e-9

package control

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about schedules, of the dispatcher's micro service.
const (
	SubjectSchedulePut    = "longshore.schedules.put"    // SchedulePut -> ScheduleApplied; conflict: changed since ifRevision
	SubjectScheduleGet    = "longshore.schedules.get"    // ScheduleRequest -> ScheduleStatus
	SubjectScheduleList   = "longshore.schedules.list"   // ScheduleRequest without a name -> ScheduleList
	SubjectScheduleDelete = "longshore.schedules.delete" // ScheduleRequest -> ScheduleStatus as it was
	SubjectSchedulePause  = "longshore.schedules.pause"  // ScheduleRequest -> ScheduleStatus
	SubjectScheduleResume = "longshore.schedules.resume" // ScheduleRequest -> ScheduleStatus
	SubjectScheduleRun    = "longshore.schedules.run"    // ScheduleRun -> SubmitReply; conflict: its last run is still running
)

// SchedulePut asks to store a schedule.
type SchedulePut struct {
	Tenant     string   `json:"tenant,omitempty"` // that of the schedule, which then need not name it
	Schedule   Schedule `json:"schedule"`
	IfRevision *uint64  `json:"ifRevision,omitempty"` // only if this is the newest; 0: only if there is none
	By         string   `json:"by,omitempty"`
}

// ScheduleApplied answers SchedulePut.
type ScheduleApplied struct {
	Name     string      `json:"name"`
	Revision uint64      `json:"revision"`
	Changed  bool        `json:"changed"` // false: it was so already
	Next     []time.Time `json:"next"`    // up to three occurrences, none when it is paused or over
}

// ScheduleRequest names a schedule, or all of a tenant.
type ScheduleRequest struct {
	ScheduleRef
	By string `json:"by,omitempty"` // who makes a change
}

// Check fills the tenant's default and checks the names; one checks that a schedule is named.
func (r *ScheduleRequest) Check(one bool) error {
	if r.Tenant == "" {
		r.Tenant = messages.DefaultTenant
	}
	if err := strict.CheckText("by", r.By, messages.MaxAuthor); err != nil {
		return err
	}
	if !one {
		return strict.CheckToken("tenant", r.Tenant)
	}
	return r.ScheduleRef.Check()
}

// ScheduleRun asks for a run of a schedule now, also while it is paused.
type ScheduleRun struct {
	ScheduleRef
	ID string `json:"id,omitempty"` // of the run; a new one by default
}

// ScheduleStatus is a schedule and what became of it.
type ScheduleStatus struct {
	Schedule Schedule       `json:"schedule"`
	Next     []time.Time    `json:"next"` // up to three occurrences
	Last     *ScheduleState `json:"last,omitempty"`
	Skipped  []Skipped      `json:"skipped,omitempty"` // the occurrences that did not run, newest last, MaxSkipped at most
}

// MaxSkipped bounds how many entries about occurrences that did not run are kept of a schedule.
const MaxSkipped = 20

// Skipped is one occurrence that did not run, or several in a row for one reason.
type Skipped struct {
	At     time.Time  `json:"at"`             // the occurrence, or the first of them
	Last   *time.Time `json:"last,omitempty"` // the last of several
	Count  int        `json:"count"`          // how many; above 100000 they are no longer counted
	Reason string     `json:"reason"`
}

// Outcome of an occurrence.
type Outcome string

// Outcomes.
const (
	OutcomeSubmitted Outcome = "submitted"
	OutcomeSkipped   Outcome = "skipped"
	OutcomeFailed    Outcome = "failed" // the task was refused
)

// ScheduleState is what became of the last occurrence.
type ScheduleState struct {
	Run     string    `json:"run,omitempty"` // the last one that was to be submitted
	At      time.Time `json:"at"`            // the occurrence
	Outcome Outcome   `json:"outcome"`
	Reason  string    `json:"reason,omitempty"` // why it was skipped or refused
}

// ScheduleList is the schedules of a tenant by name.
type ScheduleList struct {
	Schedules []ScheduleSummary `json:"schedules"`
}

// ScheduleSummary is a schedule in a list.
type ScheduleSummary struct {
	Name     string            `json:"name"`
	Cron     string            `json:"cron,omitempty"`
	TimeZone string            `json:"timeZone,omitempty"`
	Every    messages.Duration `json:"every,omitempty"`
	Agent    string            `json:"agent"`
	Paused   bool              `json:"paused,omitempty"`
	Next     *time.Time        `json:"next,omitempty"` // absent when it is paused or over
	Last     *ScheduleState    `json:"last,omitempty"`
}

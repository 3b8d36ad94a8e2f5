package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// CatchUp is what becomes of an occurrence that could not be begun in time.
type CatchUp string

// What may become of it. However many were missed, at most one is made up for.
const (
	CatchUpOne  CatchUp = "one"  // it is begun late
	CatchUpNone CatchUp = "none" // it is skipped when it is later than MaxLate
)

// MaxLate is how late an occurrence may be without counting as missed.
const MaxLate = time.Minute

// Overlap is what becomes of an occurrence while the last run of its schedule is still running.
type Overlap string

// What may become of it.
const (
	OverlapSkip    Overlap = "skip"    // it is skipped
	OverlapAllow   Overlap = "allow"   // both run
	OverlapReplace Overlap = "replace" // the last run is cancelled
)

// Limits of schedules.
const (
	MaxSchedules    = 1000 // of a tenant
	maxScheduleName = 48   // so that the id of a run has room for the time
	minEvery        = 10 * time.Second
	maxEvery        = 366 * 24 * time.Hour
	maxCron         = 128
	maxTemplate     = 256 << 10 // the task as JSON
	maxScheduleText = 4 << 10   // bytes of the description
)

// Labels of the runs of a schedule.
const (
	LabelSchedule     = "schedule"     // its name
	LabelScheduledFor = "scheduledFor" // the occurrence, in UTC
)

// Schedule submits a task again and again. Either Cron or Every says when.
type Schedule struct {
	Name        string `json:"name"`
	Tenant      string `json:"tenant,omitempty"` // default "default"
	Description string `json:"description,omitempty"`
	// Cron is five fields (minute, hour, day, month, day of week), six with seconds first, or a word such as @daily.
	Cron     string            `json:"cron,omitempty"`
	TimeZone string            `json:"timeZone,omitempty"` // of Cron, such as Europe/Berlin; default UTC
	Every    messages.Duration `json:"every,omitempty"`    // counted from midnight of 1 January 1970 UTC; 10s to a year, whole seconds
	Task     messages.Task     `json:"task"`               // what to submit: without id, tenant, deadline and notBefore
	CatchUp  CatchUp           `json:"catchUp,omitempty"`  // default one
	Overlap  Overlap           `json:"overlap,omitempty"`  // default skip
	Paused   bool              `json:"paused,omitempty"`   // nothing is submitted
	Until    *time.Time        `json:"until,omitempty"`    // the last moment of an occurrence
	Revision uint64            `json:"revision,omitempty"` // given when it is stored
}

// ScheduleRef names a schedule.
type ScheduleRef struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	Name   string `json:"name,omitempty"`
}

// Check returns a *FieldError when a part is not valid.
func (r ScheduleRef) Check() error {
	if err := strict.CheckToken("tenant", r.Tenant); err != nil {
		return err
	}
	if !strict.ValidToken(r.Name) || len(r.Name) > maxScheduleName {
		return &messages.FieldError{Field: "name", Reason: fmt.Sprintf("must be 1 to %d characters of A-Z a-z 0-9 _ -", maxScheduleName)}
	}
	return nil
}

func (r ScheduleRef) String() string { return r.Tenant + "/" + r.Name }

// NextSubject carries the schedule of the stream for the next occurrence. The reference must have passed Check, here
// and below.
func (r ScheduleRef) NextSubject() string { return "sched.next." + r.Tenant + "." + r.Name }

// DueSubject is where an occurrence is published when it is due.
func (r ScheduleRef) DueSubject() string { return "sched.due." + r.Tenant + "." + r.Name }

// Run is the run of an occurrence: the same one however often that is looked at.
func (r ScheduleRef) Run(at time.Time) messages.Ref {
	return messages.Ref{Tenant: r.Tenant, Run: r.Name + "-" + at.UTC().Format("20060102T150405")}
}

// Due is the body of a message on ScheduleRef.DueSubject: an occurrence.
type Due struct {
	ScheduleRef
	Timing string    `json:"timing"` // of the schedule when this occurrence was found
	At     time.Time `json:"at"`
}

// Ref of the schedule.
func (s *Schedule) Ref() ScheduleRef { return ScheduleRef{s.Tenant, s.Name} }

// Timing is equal for schedules that have the same occurrences, but for their end.
func (s *Schedule) Timing() string {
	if s.Cron != "" {
		return s.TimeZone + " " + s.Cron
	}
	return s.Every.String()
}

// SetDefaults fills tenant, time zone, policies and the defaults of the task.
func (s *Schedule) SetDefaults() {
	if s.Tenant == "" {
		s.Tenant = messages.DefaultTenant
	}
	if s.CatchUp == "" {
		s.CatchUp = CatchUpOne
	}
	if s.Overlap == "" {
		s.Overlap = OverlapSkip
	}
	if s.Cron != "" && s.TimeZone == "" {
		s.TimeZone = "UTC"
	}
	s.Task.SetDefaults()
	if s.Task.Tenant == s.Tenant || s.Task.Tenant == messages.DefaultTenant {
		s.Task.Tenant = "" // the schedule's
	}
}

// Validate returns a *FieldError for the first field that is wrong. Defaults must have been filled. Whether Cron and
// TimeZone mean anything, the dispatcher tells.
func (s *Schedule) Validate() error {
	if err := s.Ref().Check(); err != nil {
		return err
	}
	if err := strict.CheckText("description", s.Description, maxScheduleText); err != nil {
		return err
	}
	every := time.Duration(s.Every)
	switch {
	case (s.Cron == "") == (every == 0):
		return &messages.FieldError{Field: "cron", Reason: "give either cron or every"}
	case len(s.Cron) > maxCron:
		return &messages.FieldError{Field: "cron", Reason: fmt.Sprintf("longer than %d characters", maxCron)}
	case s.Cron == "" && s.TimeZone != "":
		return &messages.FieldError{Field: "timeZone", Reason: "is for cron only"}
	case len(s.TimeZone) > strict.MaxToken:
		return &messages.FieldError{Field: "timeZone", Reason: fmt.Sprintf("longer than %d characters", strict.MaxToken)}
	case every != 0 && (every < minEvery || every > maxEvery || every%time.Second != 0):
		return &messages.FieldError{Field: "every", Reason: "must be whole seconds, 10s to 8784h"}
	case s.CatchUp != CatchUpOne && s.CatchUp != CatchUpNone:
		return &messages.FieldError{Field: "catchUp", Reason: "must be one or none"}
	case s.Overlap != OverlapSkip && s.Overlap != OverlapAllow && s.Overlap != OverlapReplace:
		return &messages.FieldError{Field: "overlap", Reason: "must be skip, allow or replace"}
	case s.Until != nil && (s.Until.Year() < 1 || s.Until.Year() > 9999):
		return &messages.FieldError{Field: "until", Reason: "is out of range"}
	}
	return s.checkTask()
}

func (s *Schedule) checkTask() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"id", s.Task.ID != ""}, {"tenant", s.Task.Tenant != ""}, {"deadline", s.Task.Deadline != nil}, {"notBefore", s.Task.NotBefore != nil},
	} {
		if f.given {
			return &messages.FieldError{Field: "task." + f.name, Reason: "is given to each run"}
		}
	}
	t := s.TaskAt(time.Unix(0, 0))
	if err := t.Validate(); err != nil {
		return strict.Under("task", err)
	}
	if body, err := json.Marshal(s.Task); err != nil || len(body) > maxTemplate {
		return &messages.FieldError{Field: "task", Reason: fmt.Sprintf("larger than %d bytes as JSON", maxTemplate)}
	}
	return nil
}

// TaskAt is the task of an occurrence.
func (s *Schedule) TaskAt(at time.Time) *messages.Task {
	run := s.Ref().Run(at)
	t := s.Task
	t.ID, t.Tenant = run.Run, run.Tenant
	t.Labels = maps.Clone(t.Labels)
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[LabelSchedule], t.Labels[LabelScheduledFor] = s.Name, at.UTC().Format(time.RFC3339)
	return &t
}

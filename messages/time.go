package messages

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Duration is a time.Duration that is written as text such as "90s" or "1h30m".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the text.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := strict.Decode(data, &s); err != nil {
		return errors.New(`must be a text such as "90s" or "1h30m"`)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return errors.New(`must be a duration such as "90s" or "1h30m"`)
	}
	*d = Duration(v)
	return nil
}

// MaxDelay is how far ahead a task may be submitted.
const MaxDelay = 366 * 24 * time.Hour

// Delay is how long the task may not begin yet; 0 or less: it may.
func (t *Task) Delay(now time.Time) time.Duration {
	if t.NotBefore == nil {
		return 0
	}
	return t.NotBefore.Sub(now)
}

// CheckDelay returns a *FieldError when the task is to begin too far ahead.
func (t *Task) CheckDelay(now time.Time) error {
	if t.Delay(now) > MaxDelay {
		return &FieldError{Field: "notBefore", Reason: "is more than a year ahead"}
	}
	return nil
}

func (t *Task) checkNotBefore() error {
	switch at := t.NotBefore; {
	case at == nil:
		return nil
	case at.Year() < 1 || at.Year() > 9999:
		return &FieldError{Field: "notBefore", Reason: "is out of range"}
	case t.Deadline != nil && !at.Before(*t.Deadline):
		return &FieldError{Field: "notBefore", Reason: "is not before the deadline"}
	default:
		return nil
	}
}

// DelaySubject carries the schedule of a task that may not begin yet.
func (r Ref) DelaySubject() string { return "sched.task." + r.Tenant + "." + r.Run + ".start" }

// MaySchedule reports whether what was published by the schedule on a subject may be a message of the run: a delayed task
// comes from its own subject, and what wakes a run from one that only the fleet may publish on.
func MaySchedule(scheduler string, p Priority, r Ref) bool {
	if !p.Wakes() {
		return scheduler == r.DelaySubject()
	}
	return strings.HasPrefix(scheduler, "sched.") && !strings.HasPrefix(scheduler, "sched.task.")
}

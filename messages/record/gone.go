package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// IsGone reports whether an error says that something stored will never be read again. An ErrClear does not: a change of the
// configuration makes it readable.
func IsGone(err error) bool { return errors.Is(err, ErrUnreadable) && !errors.Is(err, ErrClear) }

// OpensForNone reports whether an error says that something stored opens for no process of the fleet as it is configured now.
func OpensForNone(err error) bool {
	return errors.Is(err, ErrUnreadable) || errors.Is(err, ErrKeyMissing)
}

// goneText is the same for all runs, so that it tells nothing of any.
const goneText = "what is stored of the run can no longer be read: the key of its tenant was destroyed, or its log was changed"

// Gone ends a run that no process can read. It holds nothing of what the run did, and so is the one record that may be stored in the
// clear after others that are sealed: a tenant whose key was destroyed has none to seal it with.
func Gone(run messages.Ref, now time.Time) *Finished {
	why := &messages.RunError{Code: messages.CodeInternal, Message: goneText}
	return &Finished{Result: messages.EndedResult(run, nil, messages.StatusFailed, why, now, now)}
}

// Unread is the first record of a run whose task is not in its log.
func Unread(run messages.Ref, p messages.Priority, queued time.Time) *Started {
	return &Started{
		Task: messages.Task{ID: run.Run, Tenant: run.Tenant, Agent: "_", Priority: p}, QueuedAt: queued, Shown: ShownByDefault(),
	}
}

// SaysNothing reports whether records are a Gone, perhaps after an Unread.
func SaysNothing(run messages.Ref, rs []Record) bool {
	if len(rs) == 2 {
		s, ok := rs[0].(*Started)
		if !ok || !s.Task.Priority.Valid() {
			return false
		}
		bare := Unread(run, s.Task.Priority, s.QueuedAt)
		if bare.Shown = s.Shown; !equal(s, bare) {
			return false
		}
		rs = rs[1:]
	}
	if len(rs) != 1 {
		return false
	}
	f, ok := rs[0].(*Finished)
	return ok && equal(f, Gone(run, f.Result.FinishedAt))
}

func equal(a, b Record) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

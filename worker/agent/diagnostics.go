package agent

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of what a run's result tells about how it went.
const (
	maxWarnings    = 32
	maxWarning     = 512      // bytes of each
	maxMetas       = 64 << 10 // bytes of what tools said about all their results
	maxOutputValue = 256 << 10
	maxAttached    = 64 << 10 // bytes of all attachments
	maxModelsUsed  = 16
	maxPlanInput   = 4 << 10 // bytes of a plan in an action
)

// Trouble is what did not go smoothly in a run.
type Trouble struct {
	Warnings []string `json:"warnings,omitempty"`
	More     int      `json:"more,omitempty"`   // warnings beyond those
	Last     string   `json:"last,omitempty"`   // the last error that the run outlived
	Worker   string   `json:"worker,omitempty"` // that holds the run

	Provider string `json:"provider,omitempty"` // of the model call that failed last
	Tool     string `json:"tool,omitempty"`     // of the call that ended the run
	Call     string `json:"call,omitempty"`     // that ended the run
}

func (s *State) warn(format string, args ...any) {
	if len(s.Trouble.Warnings) == maxWarnings {
		s.Trouble.More++
		return
	}
	s.Trouble.Warnings = append(s.Trouble.Warnings, strict.Clip(fmt.Sprintf(format, args...), maxWarning))
}

// outlived notes an error after which the run continues.
func (s *State) outlived(text string) {
	s.Trouble.Last = strict.Clip(text, maxWarning)
}

// lostWorker notes that the owner before is gone, if there is one that has not let go of the run.
func (s *State) lostWorker() {
	if s.Trouble.Worker == "" {
		return
	}
	s.outlived(fmt.Sprintf("worker %s was lost", s.Trouble.Worker))
	s.warn("%s in step %d; another attempt began", s.Trouble.Last, s.Step)
	s.Trouble.Worker = ""
}

// note takes up what a record says about how the run goes.
func (s *State) note(r record.Record) {
	switch r := r.(type) {
	case *record.Claimed:
		if r.Resumes == "" {
			s.lostWorker()
		}
		s.Trouble.Worker = r.Worker
	case *record.Lost:
		s.lostWorker()
	case *record.Released:
		s.Trouble.Worker = ""
		s.outlived("the worker handed the run back: " + r.Reason)
	case *record.Parked:
		s.Trouble.Worker = ""
		if r.Cause != nil && r.Reason == queue.ParkModel {
			s.outlived(r.Cause.Message)
			s.warn("step %d: it waited for its model %s: %s (%s)", s.Step, r.Cause.Provider, r.Cause.Message, r.Cause.Code)
		}
	case *record.ModelFailed:
		s.Trouble.Provider = r.Provider
		if r.Fallback != "" {
			s.outlived(r.Error.Message)
		}
		if r.Fallback != "" && r.Fallback != record.FallbackPark { // of a park the next record tells
			s.warn("step %d: a model call failed: %s (%s); fallback: %s", r.Step, r.Error.Message, r.Error.Code, r.Fallback)
		}
	case *record.ModelReplied:
		if r.Stop == messages.StopLength {
			s.warn("step %d: the reply was cut at the limit of %d tokens", r.Step, s.Agent.MaxTokens)
		}
	case *record.ToolReturned:
		if r.Code == messages.CodeToolUnknownOutcome {
			s.warn("step %d: the outcome of call %s of %s is unknown", r.Step, r.Result.CallID, r.Name)
		}
	case *record.BudgetWarned:
		s.warn("budget: %s of %s used of %s", amount(r.Limit, r.Spent), amount(r.Limit, r.Allowed), r.Limit)
	case *record.HookFailed:
		if !r.Fatal {
			s.warn("hook %s at %s failed: %s", r.Hook, r.On, r.Reason)
		}
	case *record.PolicyApplied:
		s.warn("%s %s: %s", r.Point, r.Action, r.Reason)
	case *record.Recalled:
		if r.Dropped > 0 {
			s.warn("the first %d messages of the session no longer fit and were left out", r.Dropped)
		}
	case *record.MemoryWritten:
		if r.Error != "" {
			s.warn("the run did not become an example: %s", r.Error)
		}
	case *record.MemoryRecalled:
		if r.Error != "" {
			s.warn("long-term memory could not be searched: %s", r.Error)
		}
		if r.Degraded != "" {
			s.warn("long-term memory was searched without %s", r.Degraded)
		}
	case *record.Summarised:
		if r.Error != nil {
			s.warn("the session could not be summed up: %s (%s)", r.Error.Message, r.Error.Code)
		}
	case *record.Unverified:
		s.warn("a record %s does not count: it has no valid signature", r.Of)
	default:
	}
}

// diagnostics are the warnings and the trace of a run; nil: there are none.
func (s *State) diagnostics(run messages.Ref) *messages.Diagnostics {
	var d messages.Diagnostics
	d.Warnings = append(d.Warnings, s.Trouble.Warnings...)
	if s.Trouble.More > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%d more warnings", s.Trouble.More))
	}
	if s.CostUnknown {
		d.Warnings = append(d.Warnings, "the price of a model is unknown, and so is the cost; see LONGSHORE_PRICES")
	}
	if _, err := messages.ParseTraceparent(s.Task.Traceparent); err == nil {
		d.Traces = []string{messages.RunTrace(run, s.Task.Traceparent).String()}
	}
	if d.Warnings == nil && d.Traces == nil {
		return nil
	}
	return &d
}

// retryInfo says how often the run was taken up, and why again; nil: once, and nothing failed on the way.
func (s *State) retryInfo() *messages.RetryInfo {
	if s.Attempts <= 1 && s.Trouble.Last == "" {
		return nil
	}
	return &messages.RetryInfo{Attempts: s.Attempts, LastError: s.Trouble.Last}
}

// informed is the error that ends the run, with what the log knows about it.
func (s *State) informed(e *messages.RunError) *messages.RunError {
	if e == nil {
		return nil
	}
	info := map[string]any{}
	put := func(key, value string) {
		if value != "" {
			info[key] = value
		}
	}
	if s.Step > 0 {
		info["step"] = s.Step
	}
	switch e.Code {
	case messages.CodeModelAuth, messages.CodeModelQuota, messages.CodeModelRateLimited, messages.CodeModelOverloaded, messages.CodeModelTimeout,
		messages.CodeModelUnreachable, messages.CodeModelTruncated, messages.CodeModelContextLength, messages.CodeModelContentFilter,
		messages.CodeModelInvalidOutput, messages.CodeNoProvider:
		put("provider", s.Trouble.Provider)
	case messages.CodeToolFailed, messages.CodeApprovalDenied, messages.CodeApprovalExpired, messages.CodePolicy:
		put("tool", s.Trouble.Tool)
		put("callId", s.Trouble.Call)
	case messages.CodeMaxSteps:
		info["maxSteps"] = s.Agent.Steps(s.Task.Limits)
	default:
	}
	return e.Informed(info)
}

// told keeps what a tool said about its result, as long as there is room.
func (s *State) told(r *record.ToolReturned) {
	switch {
	case len(r.Meta) == 0:
	case s.MetaBytes+len(r.Meta) > maxMetas:
		s.MetaLost++
	default:
		s.Meta.add(CallKey(r.Step, r.Result.CallID), r.Meta)
		s.MetaBytes += len(r.Meta)
	}
}

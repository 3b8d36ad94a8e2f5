package api

import (
	"context"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// wholes reads from the log of a run what an event has shortened. It is asked in the order of the events, and reads each
// entry once or twice. What cannot be read stays as it is in the event.
type wholes struct {
	ctx   context.Context //nolint:containedctx // of the request that is answered
	log   runlog.Log
	run   messages.Ref
	after *uint64 // the entry before the one that was found last
}

// reply is the reply of a step; nil: it is not there.
func (w wholes) reply(step int) (m *messages.Message) {
	w.find(func(r record.Record) bool {
		if r, ok := r.(*record.ModelReplied); ok && r.Step == step {
			m = &r.Message
		}
		return m != nil
	})
	return m
}

// arguments are those of a call, which may have been refused.
func (w wholes) arguments(d messages.ToolExecution) (args string) {
	w.find(func(r record.Record) bool {
		switch r := r.(type) {
		case *record.ToolStarted:
			if r.Call.ID == d.CallID && isStep(d.StepID, r.Step, r.StepID) {
				args = r.Call.Arguments
				return true
			}
		case *record.ModelReplied:
			for _, c := range r.Message.Calls() {
				if c.ID == d.CallID && isStep(d.StepID, r.Step, "") {
					args = c.Arguments
					return true
				}
			}
		}
		return false
	})
	return args
}

// result is that of a call; nil: it is not there.
func (w wholes) result(d messages.ToolExecution) (res *messages.ToolResult) {
	w.find(func(r record.Record) bool {
		returned, ok := r.(*record.ToolReturned)
		if ok && returned.Result.CallID == d.CallID && isStep(d.StepID, returned.Step, returned.StepID) {
			res = &returned.Result
		}
		return res != nil
	})
	return res
}

// isStep reports whether the id of a step in an event is that of a record.
func isStep(id string, step int, plan string) bool {
	if plan != "" {
		return id == plan
	}
	return stepNumber(id) == step
}

func (w wholes) find(is func(record.Record) bool) {
	for e, err := range w.log.Read(w.ctx, w.run, *w.after, runlog.Tail) {
		if err != nil {
			return
		}
		if slices.ContainsFunc(e.Records, is) {
			*w.after = e.Seq - 1
			return
		}
	}
}

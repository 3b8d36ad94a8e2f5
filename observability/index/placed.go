package index

import (
	"encoding/json"

	"github.com/longshore-run/longshore/messages"
)

// placed is an event at its place in the stream, with what several rows read of it.
type placed struct {
	messages.Event

	position uint64
	step     string                  // the id of the step that it is about; empty: of none
	said     *messages.MessageEnd    // its data; nil: it is none, or cannot be read
	called   *messages.ToolExecution // likewise, of a call that has ended
}

func newPlaced(e messages.Event, position uint64) placed {
	p := placed{Event: e, position: position}
	switch e.Name() {
	case messages.EventMessageEnd:
		if p.said = read[messages.MessageEnd](&e); p.said != nil {
			p.step = clean(p.said.StepID, maxName)
		}
	case messages.EventToolExecutionEnd:
		if p.called = read[messages.ToolExecution](&e); p.called != nil {
			p.step = clean(p.called.StepID, maxName)
		}
	case messages.EventStepStart, messages.EventStepEnd, messages.EventError:
		type about struct {
			StepID string `json:"stepId"`
		}
		if d := read[about](&e); d != nil {
			p.step = clean(d.StepID, maxName)
		}
	}
	return p
}

// read is the data of an event; nil: it cannot be read.
func read[T any](e *messages.Event) *T {
	d := new(T)
	if json.Unmarshal(e.Data, d) != nil {
		return nil
	}
	return d
}

package index

import (
	"encoding/json"

	"github.com/longshore-run/longshore/messages"
)

// placed is an event at its place in the stream, with what several rows read of it.
type placed struct {
	messages.Event

	position uint64
	step     string              // the id of the step that it is about; empty: of none
	about    *messages.Step      // its data if a step starts or ends; nil: it is none, or cannot be read
	said     *reply              // likewise, of a reply
	called   *call               // likewise, of a call that has ended
	broken   *messages.ErrorData // likewise, of an error
}

// reply is what is read of a messages.MessageEnd. Its texts are long.
type reply struct {
	StepID   string         `json:"stepId"`
	Usage    messages.Usage `json:"usage"`
	Provider string         `json:"provider"`
	Model    string         `json:"model"`
	Millis   int64          `json:"millis"`
	Cached   bool           `json:"cached"`
	Cost     *float64       `json:"cost"`
}

// call is what is read of a messages.ToolExecution. Its arguments and result are long.
type call struct {
	StepID   string `json:"stepId"`
	ToolName string `json:"toolName"`
	IsError  bool   `json:"isError"`
	Millis   int64  `json:"millis"`
}

func newPlaced(e messages.Event, position uint64) placed {
	p := placed{Event: e, position: position}
	switch e.Name() {
	case messages.EventMessageEnd:
		if p.said = read[reply](&e); p.said != nil {
			p.step = clean(p.said.StepID, maxName)
		}
	case messages.EventToolExecutionEnd:
		if p.called = read[call](&e); p.called != nil {
			p.step = clean(p.called.StepID, maxName)
		}
	case messages.EventStepStart, messages.EventStepEnd:
		if p.about = read[messages.Step](&e); p.about != nil {
			p.step = clean(p.about.StepID, maxName)
		}
	case messages.EventError:
		if p.broken = read[messages.ErrorData](&e); p.broken != nil {
			p.step = clean(p.broken.StepID, maxName)
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

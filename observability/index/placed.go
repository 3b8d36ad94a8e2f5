package index

import "github.com/longshore-run/longshore/messages"

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

func newPlaced(e messages.Event, position uint64) placed {
	p := placed{Event: e, position: position}
	switch e.Name() {
	case messages.EventMessageEnd:
		if p.said = readReply(e.Data); p.said != nil {
			p.step = clean(p.said.StepID, maxName)
		}
	case messages.EventToolExecutionEnd:
		if p.called = readCall(e.Data); p.called != nil {
			p.step = clean(p.called.StepID, maxName)
		}
	case messages.EventStepStart, messages.EventStepEnd:
		if p.about = readStep(e.Data); p.about != nil {
			p.step = clean(p.about.StepID, maxName)
		}
	case messages.EventError:
		if p.broken = read[messages.ErrorData](e.Data); p.broken != nil {
			p.step = clean(p.broken.StepID, maxName)
		}
	}
	return p
}

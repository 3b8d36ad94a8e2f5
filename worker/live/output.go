package live

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Output is what a program of a tool call writes while it runs. Add and Close are for one goroutine and do not wait for the
// network, but for Close, when a message is just being published.
type Output struct{ c *Call }

// OpenOutput begins what a program of a call writes. Nothing is published where events may not show the results of tools, or when
// the call has an id or a name of unusual length. Close the Output.
func (p *Publisher) OpenOutput(run messages.Ref, step, attempt int, call messages.ToolCall, shown *record.Shown) *Output {
	c := p.Open(run, step, attempt, shown)
	c.of = called{call.ID, call.Name}
	if c.shows.NoOutputs || max(len(call.ID), len(call.Name)) > maxName {
		return &Output{}
	}
	return &Output{c}
}

// Add takes what comes next. What exceeds the bound of a call is dropped and counted.
func (o *Output) Add(text []byte) {
	if o.c == nil || len(text) == 0 {
		return
	}
	if room := maxOutput - o.c.given; len(text) > room {
		o.c.p.dropped.Add(uint64(len(text) - room))
		text = text[:room]
	}
	if o.c.given += len(text); len(text) > 0 {
		o.c.add(messages.LiveToolOutput, o.c.of, string(text))
	}
}

// Close ends it. What is left is published if something was before, and if the program has ended; otherwise it is forgotten, and with
// it what may be the beginning of a secret. When Close returns it has no goroutine left.
func (o *Output) Close(ended bool) {
	if o.c != nil {
		o.c.Close(ended)
	}
}

package api

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// agui maps the events of one run, in order, to those of the AG-UI protocol (Agent-User Interaction). It gives
// RUN_STARTED first, ends what it has begun, and gives nothing after RUN_FINISHED or RUN_ERROR. What the protocol has no
// event for is CUSTOM, under the name longshore.<name>.
type agui struct {
	run    string
	thread string // of RUN_STARTED; empty: it was not given yet
	ended  bool
	steps  []string        // open, in the order of their beginnings
	calls  map[string]bool // that were given
	at     time.Time

	reply  messages.LiveReply // that is being written
	open   string             // id of the message whose text is being given
	sent   string             // of it
	broken bool               // a piece lacks: message_end brings the whole
	tries  int                // messages of this step that were given up
	whole  int                // the last step whose reply is known whole, or will not come

	out []aguiEvent
}

// aguiEvent is an event of the protocol.
type aguiEvent map[string]any

func newAGUI(run string) *agui { return &agui{run: run, calls: map[string]bool{}} }

func (a *agui) emit(kind string, fields aguiEvent) {
	e := aguiEvent{"type": kind}
	maps.Copy(e, fields)
	if !a.at.IsZero() {
		e["timestamp"] = a.at.UnixMilli()
	}
	a.out = append(a.out, e)
}

func (a *agui) custom(name string, value any) {
	a.emit("CUSTOM", aguiEvent{"name": "longshore." + name, "value": value})
}

// begin gives RUN_STARTED, unless it was given.
func (a *agui) begin(session string) {
	if a.thread != "" {
		return
	}
	if a.thread = session; session == "" {
		a.thread = a.run
	}
	a.emit("RUN_STARTED", aguiEvent{"threadId": a.thread, "runId": a.run})
}

// event is what follows from an event.
func (a *agui) event(e *messages.Event) []aguiEvent {
	if a.ended {
		return nil
	}
	a.out, a.at = nil, e.Time
	if e.Name() == messages.EventRunQueued {
		a.begin(dataOf[messages.RunQueued](e).Session)
	}
	a.begin("")
	switch e.Name() {
	case messages.EventStepStart:
		id := dataOf[messages.Step](e).StepID
		a.steps = append(a.steps, id)
		a.emit("STEP_STARTED", aguiEvent{"stepName": id})
	case messages.EventStepEnd:
		a.stepEnded(e)
	case messages.EventMessageEnd:
		a.message(dataOf[messages.MessageEnd](e))
	case messages.EventError:
		d := dataOf[messages.ErrorData](e)
		a.known(d.StepID)
		a.giveUp()
		a.custom(e.Name(), e.Data)
	case messages.EventToolExecutionStart:
		d := dataOf[messages.ToolExecution](e)
		a.call(d.StepID, "", messages.ToolCall{ID: d.CallID, Name: d.ToolName, Arguments: d.Arguments})
	case messages.EventToolExecutionEnd:
		d := dataOf[messages.ToolExecution](e)
		a.call(d.StepID, "", messages.ToolCall{ID: d.CallID, Name: d.ToolName})
		id := d.StepID + "." + d.CallID
		a.emit("TOOL_CALL_RESULT", aguiEvent{"messageId": a.run + "." + id, "toolCallId": id, "content": d.Result, "role": "tool"})
		delete(a.calls, id) // ids may come again in a plan
	case messages.EventRunFinished:
		a.finish(dataOf[messages.RunFinished](e).Result)
	default:
		a.custom(e.Name(), e.Data)
	}
	return a.out
}

// dataOf reads the data of an event. A newer version may have added fields.
func dataOf[T any](e *messages.Event) (d T) {
	_ = json.Unmarshal(e.Data, &d) // an event that cannot be read shows without its data
	return d
}

func (a *agui) stepEnded(e *messages.Event) {
	id := dataOf[messages.Step](e).StepID
	for i, open := range a.steps {
		if open == id {
			a.steps = append(a.steps[:i:i], a.steps[i+1:]...)
			a.giveUp()
			a.known(id)
			a.emit("STEP_FINISHED", aguiEvent{"stepName": id})
			return
		}
	}
	a.custom(e.Name(), e.Data) // a step of a plan that was skipped
}

// known notes that the reply of a step is not being written any more.
func (a *agui) known(stepID string) {
	number, ok := strings.CutPrefix(stepID, "step-")
	if n, err := strconv.Atoi(number); ok && err == nil {
		a.whole = max(a.whole, n)
	}
}

func (a *agui) messageID(stepID string) string {
	id := a.run + "." + stepID
	if a.tries > 0 {
		id += "." + strconv.Itoa(a.tries)
	}
	return id
}

// message gives a whole reply, or what lacks of one that was given while it was written.
func (a *agui) message(d messages.MessageEnd) {
	a.known(d.StepID)
	if d.Reasoning != "" {
		id := aguiEvent{"messageId": a.run + "." + d.StepID + ".reasoning"}
		a.emit("REASONING_START", id)
		a.emit("REASONING_MESSAGE_START", aguiEvent{"messageId": id["messageId"], "role": "reasoning"})
		a.emit("REASONING_MESSAGE_CONTENT", aguiEvent{"messageId": id["messageId"], "delta": d.Reasoning})
		a.emit("REASONING_MESSAGE_END", id)
		a.emit("REASONING_END", id)
	}
	rest, fits := strings.CutPrefix(d.Text, a.sent)
	switch {
	case a.open != "" && !a.broken && (fits || d.Truncated):
		if fits && rest != "" {
			a.emit("TEXT_MESSAGE_CONTENT", aguiEvent{"messageId": a.open, "delta": rest})
		}
		a.emit("TEXT_MESSAGE_END", aguiEvent{"messageId": a.open})
	default:
		a.giveUp()
		if d.Text != "" {
			id := a.messageID(d.StepID)
			a.emit("TEXT_MESSAGE_START", aguiEvent{"messageId": id, "role": "assistant"})
			a.emit("TEXT_MESSAGE_CONTENT", aguiEvent{"messageId": id, "delta": d.Text})
			a.emit("TEXT_MESSAGE_END", aguiEvent{"messageId": id})
		}
	}
	parent := a.messageID(d.StepID)
	if d.Text == "" {
		parent = ""
	}
	a.open, a.sent, a.broken, a.tries = "", "", false, 0
	for _, c := range d.ToolCalls {
		a.call(d.StepID, parent, c)
	}
}

// call gives a tool call, unless it was given.
func (a *agui) call(stepID, parent string, c messages.ToolCall) {
	id := stepID + "." + c.ID
	if a.calls[id] {
		return
	}
	a.calls[id] = true
	start := aguiEvent{"toolCallId": id, "toolCallName": c.Name}
	if parent != "" {
		start["parentMessageId"] = parent
	}
	a.emit("TOOL_CALL_START", start)
	if c.Arguments != "" {
		a.emit("TOOL_CALL_ARGS", aguiEvent{"toolCallId": id, "delta": c.Arguments})
	}
	a.emit("TOOL_CALL_END", aguiEvent{"toolCallId": id})
}

// giveUp ends the message that is open and says that it does not count.
func (a *agui) giveUp() {
	if a.open == "" {
		return
	}
	a.emit("TEXT_MESSAGE_END", aguiEvent{"messageId": a.open})
	a.custom("reset", aguiEvent{"messageId": a.open})
	a.open, a.sent, a.broken = "", "", false
	a.tries++
}

func (a *agui) finish(r messages.AgentResult) {
	a.giveUp()
	for _, id := range a.steps {
		a.emit("STEP_FINISHED", aguiEvent{"stepName": id})
	}
	a.ended = true
	if r.Success {
		a.emit("RUN_FINISHED", aguiEvent{"threadId": a.thread, "runId": a.run, "result": r})
		return
	}
	end := aguiEvent{"message": string(r.Status)}
	if r.Error != nil {
		end = aguiEvent{"message": r.Error.Message, "code": string(r.Error.Code)}
	}
	a.emit("RUN_ERROR", end)
}

// delta is what follows from live text.
func (a *agui) delta(l *messages.Live) []aguiEvent {
	was := a.reply
	if a.ended || a.thread == "" || l.Step <= a.whole || l.Kind == messages.LiveReasoning || !a.reply.Add(l) {
		return nil
	}
	a.out, a.at = nil, time.Time{}
	anew := l.Kind == messages.LiveReset || was.Step != l.Step || was.Attempt != l.Attempt || was.Try != l.Try
	if anew {
		a.giveUp()
	}
	if was.Step != l.Step {
		a.tries = 0
	}
	a.broken = a.broken || a.reply.Incomplete
	if l.Kind != messages.LiveText || a.broken || l.Text == "" {
		return a.out
	}
	if a.open == "" {
		a.open = a.messageID("step-" + strconv.Itoa(l.Step))
		a.emit("TEXT_MESSAGE_START", aguiEvent{"messageId": a.open, "role": "assistant"})
	}
	a.sent += l.Text
	a.emit("TEXT_MESSAGE_CONTENT", aguiEvent{"messageId": a.open, "delta": l.Text})
	return a.out
}

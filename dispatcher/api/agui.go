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
//
// Every frame has an id, from which another agui continues right after it.
type agui struct {
	run    string
	thread string // of RUN_STARTED; empty: it was not given yet
	ended  bool
	steps  []string        // open, in the order of their beginnings
	calls  map[string]bool // that were given
	at     time.Time

	writing        // the message that is being written
	whole   int    // the last step whose reply is complete, or will not come
	last    uint64 // the number of the last event
	from    place  // what the client has read; zero once that is behind

	out   []aguiEvent
	marks []writing // after each of out
}

// aguiEvent is an event of the protocol.
type aguiEvent map[string]any

func newAGUI(run string, from place) *agui {
	return &agui{run: run, calls: map[string]bool{}, from: from}
}

func (a *agui) emit(kind string, fields aguiEvent) {
	e := aguiEvent{"type": kind}
	maps.Copy(e, fields)
	if !a.at.IsZero() {
		e["timestamp"] = a.at.UnixMilli()
	}
	a.out, a.marks = append(a.out, e), append(a.marks, a.mark())
}

// mark is the state of the message that is being written, as far as a client needs it to continue.
func (a *agui) mark() writing {
	if a.open || a.owed || a.tries > 0 || a.Step > a.whole {
		return a.writing
	}
	return writing{}
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

// event is what follows from an event, of what the client has not read.
func (a *agui) event(e *messages.Event) []frame {
	if a.ended {
		return nil
	}
	n := e.Number()
	read := n < a.from.event || n == a.from.event && a.from.frames == 0 // all of it
	a.out, a.marks, a.at = nil, nil, e.Time
	if !read {
		a.resume()
	}
	before, first := a.mark(), len(a.out) // what comes before first ends what was owed
	a.apply(e)
	var frames []frame
	for i, out := range a.out {
		at := place{event: n, frames: i + 1 - first, writing: before}
		switch {
		case read || n == a.from.event && i >= first && i < first+a.from.frames:
			continue
		case i < first:
			at = place{event: a.last, writing: a.marks[i]}
		case i == len(a.out)-1:
			at = place{event: n, writing: a.mark()}
		}
		frames = append(frames, frame{id: at.String(), data: out})
	}
	if a.last = n; !read && n >= a.from.event {
		a.from = place{}
	}
	return frames
}

// resume takes up the message that was being written where the client left it.
func (a *agui) resume() {
	if a.from.writing == (writing{}) {
		return
	}
	a.writing, a.from.writing = a.from.writing, writing{}
	if a.owed {
		a.takeAway()
	}
}

func (a *agui) apply(e *messages.Event) {
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
		a.over(dataOf[messages.ErrorData](e).StepID)
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
			a.over(id)
			a.emit("STEP_FINISHED", aguiEvent{"stepName": id})
			return
		}
	}
	a.custom(e.Name(), e.Data) // a step of a plan that was skipped
}

// stepNumber is the number in the id of a step; 0: it is a step of a plan.
func stepNumber(id string) int {
	number, ok := strings.CutPrefix(id, "step-")
	if n, err := strconv.Atoi(number); ok && err == nil {
		return n
	}
	return 0
}

// over notes that the reply of a step is no longer being written.
func (a *agui) over(stepID string) {
	n := stepNumber(stepID)
	a.whole = max(a.whole, n)
	if a.Step <= a.whole { // else live text is ahead of the events
		a.giveUp()
	}
}

func (a *agui) messageID(step int) string {
	id := a.run + ".step-" + strconv.Itoa(step)
	if step == a.Step && a.tries > 0 {
		id += "." + strconv.Itoa(a.tries)
	}
	return id
}

// message gives a whole reply, or the rest of one that was given while it was written.
func (a *agui) message(d messages.MessageEnd) {
	step := stepNumber(d.StepID)
	a.whole = max(a.whole, step)
	if d.Reasoning != "" {
		id := aguiEvent{"messageId": a.run + "." + d.StepID + ".reasoning"}
		a.emit("REASONING_START", id)
		a.emit("REASONING_MESSAGE_START", aguiEvent{"messageId": id["messageId"], "role": "reasoning"})
		a.emit("REASONING_MESSAGE_CONTENT", aguiEvent{"messageId": id["messageId"], "delta": d.Reasoning})
		a.emit("REASONING_MESSAGE_END", id)
		a.emit("REASONING_END", id)
	}
	rest, fits := a.rest(d.Text)
	switch mine := a.open && step == a.Step; {
	case mine && (fits || d.Truncated && !a.broken):
		if rest != "" {
			a.emit("TEXT_MESSAGE_CONTENT", aguiEvent{"messageId": a.messageID(step), "delta": rest})
		}
		a.emit("TEXT_MESSAGE_END", aguiEvent{"messageId": a.messageID(step)})
	default:
		if mine {
			a.giveUp()
		}
		if d.Text != "" {
			id := a.messageID(step)
			a.emit("TEXT_MESSAGE_START", aguiEvent{"messageId": id, "role": "assistant"})
			a.emit("TEXT_MESSAGE_CONTENT", aguiEvent{"messageId": id, "delta": d.Text})
			a.emit("TEXT_MESSAGE_END", aguiEvent{"messageId": id})
		}
	}
	parent := a.messageID(step)
	if d.Text == "" {
		parent = ""
	}
	if a.Step <= step {
		a.writing = writing{}
	}
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
	if !a.open {
		return
	}
	a.open, a.owed = false, true
	a.emit("TEXT_MESSAGE_END", aguiEvent{"messageId": a.messageID(a.Step)})
	a.takeAway()
}

// takeAway says that the message that has just ended does not count.
func (a *agui) takeAway() {
	id := a.messageID(a.Step)
	a.writing = writing{LivePlace: a.LivePlace, tries: a.tries + 1}
	a.custom("reset", aguiEvent{"messageId": id})
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

// delta is what follows from live text. While a client is brought back to where it was, there is nothing to add to.
func (a *agui) delta(l *messages.Live) []frame {
	if a.ended || a.thread == "" || l.Step <= a.whole || a.last < a.from.event || a.from.frames > 0 {
		return nil
	}
	a.out, a.marks, a.at = nil, nil, time.Time{}
	a.resume()
	next := a.LivePlace
	fresh, anew, gap := next.Follow(l)
	if anew {
		a.giveUp()
		a.broken = false
		if next.Step != a.Step {
			a.writing = writing{}
		}
	}
	a.broken = a.broken || gap
	if a.LivePlace = next; fresh && !a.broken && l.Kind == messages.LiveText && l.Text != "" {
		id := a.messageID(a.Step)
		if !a.open {
			a.open = true
			a.N = l.N - 1 // a client that reads this frame and not the next one lacks the text
			a.emit("TEXT_MESSAGE_START", aguiEvent{"messageId": id, "role": "assistant"})
			a.N = l.N
		}
		a.add(l.Text)
		a.emit("TEXT_MESSAGE_CONTENT", aguiEvent{"messageId": id, "delta": l.Text})
	}
	var frames []frame
	for i, e := range a.out {
		frames = append(frames, frame{id: place{event: a.last, writing: a.marks[i]}.String(), data: e})
	}
	return frames
}

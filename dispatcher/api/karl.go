package api

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// formatKarl is the stream of an agent loop in ten kinds of events, as Karl's runner yields them.
const formatKarl = "karl"

// karl maps the events of one run, in order, to those of Karl's agent loop: stream_start, text_delta, text_end,
// tool_call_start, tool_call_end, tool_execution_start, tool_execution_end, message_end, turn_end and error. The last one
// is turn_end or error. A stream_start after another one without a message_end between them begins the reply anew.
//
// What came of an event ends with its number as id. A client that comes back is given a reply from its beginning.
type karl struct {
	whole wholes
	after uint64 // what the client has
	args  bool   // arguments of calls are given while they are written
	json  bool   // replies are of the JSON protocol

	last    uint64
	step    int               // whose reply was begun with stream_start and has not ended; 0: none
	ended   int               // the last step whose reply has ended
	writing                   // the reply that is being written
	begun   []*karlCall       // calls that were given while they are written
	given   int               // bytes of the arguments of the last of them
	calls   map[string]string // arguments of the calls of the last reply, by id
	running map[string]bool   // calls whose execution has begun
	usage   *karlUsage        // of the run

	out []frame
}

// karlEvent is one of the ten; the fields of the others are absent.
type karlEvent struct {
	Type       string          `json:"type"`
	Delta      string          `json:"delta,omitempty"`
	Text       string          `json:"text,omitempty"`
	ToolCall   *karlCall       `json:"toolCall,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"` // calls may be made at the same time
	ToolName   string          `json:"toolName,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Result     *karlResult     `json:"result,omitempty"`
	IsError    *bool           `json:"isError,omitempty"`
	Message    *karlMessage    `json:"message,omitempty"`
	Usage      *karlUsage      `json:"usage,omitempty"`
	Error      *karlError      `json:"error,omitempty"`
}

type (
	karlCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"` // "function"
		Function karlFunction `json:"function"`
	}
	karlFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	karlMessage struct {
		Role      messages.Role `json:"role"`
		Content   string        `json:"content"`
		ToolCalls []*karlCall   `json:"tool_calls,omitempty"` //nolint:tagliatelle // the format's
	}
	karlResult struct {
		Content []karlContent `json:"content"`
		IsError bool          `json:"isError"`
	}
	karlContent struct {
		Type     string `json:"type"` // text or image
		Text     string `json:"text,omitempty"`
		Data     []byte `json:"data,omitempty"` // base64
		MimeType string `json:"mimeType,omitempty"`
	}
	karlUsage struct {
		Input  int64    `json:"input"`
		Output int64    `json:"output"`
		Total  int64    `json:"total"`
		Cost   *float64 `json:"cost,omitempty"` // in US dollars; absent: unknown
	}
	karlError struct {
		Name    string        `json:"name"` // "Error"
		Message string        `json:"message"`
		Code    messages.Code `json:"code,omitempty"`
	}
)

func newKarl(whole wholes, after uint64) *karl {
	return &karl{whole: whole, after: after, running: map[string]bool{}}
}

func (k *karl) emit(e karlEvent) { k.out = append(k.out, frame{data: e}) }

// event is what follows from an event, unless the client has it.
func (k *karl) event(e *messages.Event) []frame {
	k.out = nil
	k.last = e.Number()
	if e.Name() == messages.EventRunStarted {
		k.json = dataOf[messages.RunStarted](e).Planner == messages.PlannerJSON
	}
	switch e.Name() {
	case messages.EventStepStart:
		if n := stepNumber(dataOf[messages.Step](e).StepID); n > k.step {
			k.begin(n)
		}
	case messages.EventMessageEnd:
		k.message(dataOf[messages.MessageEnd](e))
	case messages.EventToolExecutionStart:
		k.executing(dataOf[messages.ToolExecution](e))
	case messages.EventToolExecutionEnd:
		k.executed(dataOf[messages.ToolExecution](e))
	case messages.EventTurnEnd:
		d := dataOf[messages.TurnEnd](e)
		k.usage = usageOf(d.Usage, d.Cost)
	case messages.EventRunFinished:
		k.finish(dataOf[messages.RunFinished](e).Result)
	}
	if k.last <= k.after || len(k.out) == 0 {
		return nil
	}
	k.out[len(k.out)-1].id = e.Sequence
	return k.out
}

// begin gives stream_start: a model is asked for the reply of a step.
func (k *karl) begin(step int) {
	k.step, k.begun = step, nil
	k.length, k.sum = 0, 0
	k.emit(karlEvent{Type: "stream_start"})
}

func (k *karl) message(d messages.MessageEnd) {
	step := stepNumber(d.StepID)
	text, list := d.Text, d.ToolCalls
	if d.Truncated && k.last > k.after {
		if m := k.whole.reply(step); m != nil {
			text, list = m.Text(), m.Calls()
		}
	}
	if k.json && len(list) == 0 {
		text, list = ofProtocol(d.StepID, text)
	}
	var calls []*karlCall
	k.calls = map[string]string{}
	for _, c := range list {
		calls = append(calls, callOf(c.ID, c.Name, c.Arguments))
		k.calls[c.ID] = c.Arguments
	}
	rest, fits := k.rest(text)
	if k.step != step || !fits || !k.began(calls) {
		k.begin(step)
		rest = text
	}
	if rest != "" {
		k.emit(karlEvent{Type: "text_delta", Delta: rest})
	}
	if text != "" {
		k.emit(karlEvent{Type: "text_end", Text: text})
	}
	for i, c := range calls {
		if i >= len(k.begun) {
			k.emit(karlEvent{Type: "tool_call_start", ToolCall: c})
		}
		k.emit(karlEvent{Type: "tool_call_end", ToolCall: c})
	}
	k.emit(karlEvent{Type: "message_end", Message: &karlMessage{d.Role, text, calls}, Usage: usageOf(d.Usage, d.Cost)})
	k.step, k.begun, k.ended = 0, nil, max(k.ended, step)
	k.length, k.sum = 0, 0
}

// began reports whether the calls that were given while they were written are the first of these.
func (k *karl) began(calls []*karlCall) bool {
	if len(k.begun) > len(calls) {
		return false
	}
	for i, c := range k.begun {
		if c.ID != calls[i].ID || c.Function.Name != calls[i].Function.Name {
			return false
		}
	}
	return true
}

func callOf(id, name, args string) *karlCall {
	return &karlCall{id, "function", karlFunction{name, args}}
}

// ofProtocol is what a reply of the JSON protocol says. What is not of the protocol is a text.
func ofProtocol(stepID, text string) (string, []messages.ToolCall) {
	var r struct {
		Type    string          `json:"type"`
		Name    string          `json:"name"`
		Args    json.RawMessage `json:"args"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal([]byte(text), &r) != nil {
		return text, nil
	}
	switch r.Type {
	case "tool":
		return "", []messages.ToolCall{{ID: "json-" + strings.TrimPrefix(stepID, "step-"), Name: r.Name, Arguments: string(objectOr(string(r.Args)))}}
	case "final":
		var answer string
		if json.Unmarshal(r.Content, &answer) != nil {
			answer = string(r.Content)
		}
		return answer, nil
	}
	return text, nil
}

// objectOr is JSON as it is; what is none, an empty object.
func objectOr(args string) json.RawMessage {
	if !json.Valid([]byte(args)) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(args)
}

func (k *karl) executing(d messages.ToolExecution) {
	args := cmp.Or(k.calls[d.CallID], d.Arguments)
	if !json.Valid([]byte(args)) && k.last > k.after {
		args = k.whole.arguments(d)
	}
	k.running[d.CallID] = true
	k.emit(karlEvent{Type: "tool_execution_start", ToolCallID: d.CallID, ToolName: d.ToolName, Args: objectOr(args)})
}

func (k *karl) executed(d messages.ToolExecution) {
	if !k.running[d.CallID] { // it was refused
		k.executing(messages.ToolExecution{StepID: d.StepID, CallID: d.CallID, ToolName: d.ToolName})
	}
	delete(k.running, d.CallID)
	result := &karlResult{Content: []karlContent{{Type: "text", Text: d.Result}}, IsError: d.IsError}
	if k.last > k.after && (d.Truncated || strings.Contains(d.Result, "[image")) {
		if whole := k.whole.result(d); whole != nil {
			result.Content = contentOf(whole.Content)
		}
	}
	k.emit(karlEvent{Type: "tool_execution_end", ToolCallID: d.CallID, ToolName: d.ToolName, Result: result, IsError: &d.IsError})
}

func contentOf(blocks []messages.Block) []karlContent {
	out := []karlContent{}
	for _, b := range blocks {
		switch {
		case b.Image != nil && b.Image.URL == "":
			out = append(out, karlContent{Type: "image", Data: b.Image.Data, MimeType: b.Image.MediaType})
		case b.Image != nil:
			out = append(out, karlContent{Type: "text", Text: b.Image.URL})
		default:
			out = append(out, karlContent{Type: "text", Text: b.Text})
		}
	}
	return out
}

func usageOf(u messages.Usage, cost *float64) *karlUsage {
	return &karlUsage{u.Input, u.Output, u.Total, cost}
}

func (k *karl) finish(r messages.AgentResult) {
	if r.Success {
		k.emit(karlEvent{Type: "turn_end", Usage: k.usage})
		return
	}
	failed := &karlError{Name: "Error", Message: "the run has " + string(r.Status)}
	if r.Error != nil {
		failed.Message, failed.Code = r.Error.Message, r.Error.Code
	}
	k.emit(karlEvent{Type: "error", Error: failed})
}

// delta is what follows from live text.
func (k *karl) delta(l *messages.Live) []frame {
	if k.last == 0 || k.last < k.after || l.Step <= k.ended || k.json {
		return nil
	}
	k.out = nil
	fresh, anew, gap := k.Follow(l)
	if !fresh {
		return nil
	}
	if l.Step != k.step || anew && (k.length > 0 || len(k.begun) > 0) {
		k.begin(l.Step)
	}
	k.broken = (k.broken && !anew) || gap
	switch {
	case k.broken:
	case l.Kind == messages.LiveText && l.Text != "":
		k.add(l.Text)
		k.emit(karlEvent{Type: "text_delta", Delta: l.Text})
	case l.Kind == messages.LiveCall:
		k.calling(l)
	}
	return k.out
}

// calling gives tool_call_start when a call begins; with args again whenever its arguments have become longer by half.
func (k *karl) calling(l *messages.Live) {
	n := len(k.begun)
	if n == 0 || k.begun[n-1].ID != l.CallID {
		k.begun = append(k.begun, callOf(l.CallID, l.Tool, l.Text))
		k.given = len(l.Text)
		k.emit(karlEvent{Type: "tool_call_start", ToolCall: callOf(l.CallID, l.Tool, l.Text)})
		return
	}
	f := &k.begun[n-1].Function
	if !k.args || len(f.Arguments) > maxGrowing {
		return
	}
	if f.Arguments += l.Text; len(f.Arguments) > k.given+k.given/2 {
		k.given = len(f.Arguments)
		k.emit(karlEvent{Type: "tool_call_start", ToolCall: callOf(l.CallID, l.Tool, f.Arguments)})
	}
}

// maxGrowing bounds the arguments that are given while they are written, in bytes.
const maxGrowing = 64 << 10

package openai

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// assembly puts a reply together from chunks in canonical form.
type assembly struct {
	text  strings.Builder
	calls []*pieces
}

type pieces struct {
	id, name string
	args     strings.Builder
}

// add takes in a chunk, and returns its pieces of calls.
func (a *assembly) add(d *delta) (calls []*model.CallPiece) {
	a.text.WriteString(d.Content)
	for i := range d.ToolCalls {
		t := &d.ToolCalls[i]
		if *t.Index == len(a.calls) {
			a.calls = append(a.calls, &pieces{})
		}
		p := a.calls[*t.Index]
		if t.ID != "" {
			p.id = t.ID
		}
		if t.Function.Name != "" {
			p.name = t.Function.Name
		}
		p.args.WriteString(t.Function.Arguments)
		if p.id != "" && p.name != "" { // else it cannot be told apart yet
			calls = append(calls, &model.CallPiece{ID: p.id, Name: p.name, Arguments: t.Function.Arguments})
		}
	}
	return calls
}

// reply judges what came. The reason to stop is derived: what providers say is often wrong.
func (a *assembly) reply(r model.Request, x *exchange, f Flavour) (*model.Reply, error) {
	stop := stopReason(x)
	var calls []messages.Block
	extras := map[int]json.RawMessage{}
	half, nameless := false, false
	if stop != messages.StopLength { // else the last call may have lost its end, and the next ones are missing
		for i, p := range a.calls {
			list, ok := p.settle()
			half, nameless = half || !ok, nameless || len(list) == 0
			if extra, ok := x.thoughts.extras[i]; ok {
				extras[len(calls)] = extra
			}
			for n := range list {
				calls = append(calls, messages.Block{ToolCall: &list[n]})
			}
		}
	}
	switch {
	case half && r.MaxTokens > 0 && x.usage.Output >= int64(r.MaxTokens): // the others do not make up for it
		stop, calls, extras = messages.StopLength, nil, nil
	case nameless, half && (x.finish == "" || stop != messages.StopEnd):
		return nil, invalid("the reply ends within a tool call")
	}
	msg := messages.Message{Role: messages.RoleAssistant, Content: x.thoughts.blocks(f, extras)}
	if a.text.Len() > 0 {
		msg.Content = append(msg.Content, messages.Block{Text: a.text.String()})
	}
	msg.Content = append(msg.Content, calls...)
	switch {
	case len(calls) > maxCalls:
		return nil, invalid(fmt.Sprintf("more than %d tool calls", maxCalls))
	case len(calls) > 0:
		stop = messages.StopToolCalls
	case stop == messages.StopEnd && promisesCalls(x.finish):
		return nil, invalid("the reply says that it calls a tool, and holds no call")
	case x.finish == "" && a.text.Len() == 0:
		return nil, invalid("the reply is empty and gives no reason for it")
	}
	out := &model.Reply{Message: msg, Stop: stop, Usage: x.usage, Provider: family, Model: x.model}
	if out.Model == "" {
		out.Model = r.Model
	}
	return out, nil
}

func invalid(detail string) error { return &model.Error{Class: model.ModelOutput, Detail: detail} }

// settle returns false for half a call. Arguments that are not JSON, or end too soon, are handed on: the model is told, and
// can correct them. There is no call without a name.
// Several objects are as many calls of the tool; the same one again is no more than that.
func (p *pieces) settle() ([]messages.ToolCall, bool) {
	args := strings.TrimSpace(p.args.String())
	if args == "" || args == "null" {
		args = "{}"
	}
	list, err := objects(args)
	if p.name == "" {
		return nil, false
	}
	if err != nil {
		list = []string{args}
	}
	out := make([]messages.ToolCall, len(list))
	for i, a := range list {
		out[i] = messages.ToolCall{ID: p.id, Name: p.name, Arguments: a}
		if p.id == "" || i > 0 {
			out[i].ID = "call_" + rand.Text()[:16]
		}
	}
	return out, !errors.Is(err, io.ErrUnexpectedEOF)
}

// objects splits JSON objects that follow each other, and drops repeated ones.
func objects(s string) ([]string, error) {
	var out []string
	for d := json.NewDecoder(strings.NewReader(s)); ; {
		var v json.RawMessage
		err := d.Decode(&v)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case v[0] != '{':
			return nil, errNoObject
		case !slices.Contains(out, string(v)):
			out = append(out, string(v))
		}
		if len(out) > maxCalls {
			return nil, errNoObject
		}
	}
}

var errNoObject = errors.New("no object")

// promisesCalls reports whether a finish reason says that there are tool calls.
func promisesCalls(finish string) bool {
	switch strings.ToLower(finish) {
	case "tool_calls", "function_call", "tool_use":
		return true
	default:
		return false
	}
}

// stopReason translates the reasons that are known to occur, of other protocols too. A reason to call tools becomes
// an end here: only a call makes it one.
func stopReason(x *exchange) messages.StopReason {
	switch strings.ToLower(x.finish) {
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return messages.StopLength
	case "content_filter", "content_filtered", "safety", "prohibited_content", "blocklist", "spii", "recitation", "sensitive":
		return messages.StopContentFilter
	case "refusal":
		return messages.StopRefusal
	}
	if x.refused {
		return messages.StopRefusal
	}
	return messages.StopEnd
}

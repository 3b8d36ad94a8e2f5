package openai

import (
	"fmt"
	"strings"

	api "github.com/sashabaranov/go-openai"
)

// Bounds of the tool calls of one reply.
const (
	maxCalls     = 256
	maxArguments = 1 << 20 // bytes of one call's
	maxCallName  = 256     // bytes of a name or an id, and of a model's name
)

var errArguments = fmt.Errorf("the arguments of a tool call are larger than %d bytes", maxArguments)

// callTracker tells to which call of a reply a piece belongs, and numbers the calls 0, 1, 2 in the order in which
// they begin. Indexes may be missing, repeated or the same for all calls; ids may come once, always or never.
type callTracker struct {
	calls   []*trackedCall
	byIndex map[int64]int
	byID    map[string]int
}

type trackedCall struct {
	id, name string
	args     jsonEnd
	size     int // of the arguments
}

// place returns the piece in canonical form: with an index, and a name only the first time.
func (t *callTracker) place(c *wireCall) (api.ToolCall, error) {
	fn := &c.Function.value
	id, name, args := string(c.ID), string(fn.Name), string(fn.Arguments)
	if len(id) > maxCallName || len(name) > maxCallName {
		return api.ToolCall{}, fmt.Errorf("a tool call's name or id is longer than %d bytes", maxCallName)
	}
	n, found := t.find(c, id, name, args)
	if !found {
		if n = len(t.calls); n == maxCalls {
			return api.ToolCall{}, fmt.Errorf("more than %d tool calls", maxCalls)
		}
		t.calls = append(t.calls, &trackedCall{})
		if t.byIndex == nil {
			t.byIndex, t.byID = map[int64]int{}, map[string]int{}
		}
	}
	if c.Index.ok {
		t.byIndex[c.Index.n] = n
	}
	call := t.calls[n]
	if call.size += len(args); call.size > maxArguments {
		return api.ToolCall{}, errArguments
	}
	out := api.ToolCall{Index: &n, Type: api.ToolTypeFunction}
	if id != "" {
		if len(t.byID) < 4*maxCalls { // a new id in each piece is no use
			t.byID[id] = n
		}
		if call.id == "" {
			call.id, out.ID = id, id
		}
	}
	if call.name == "" {
		call.name, out.Function.Name = name, name
	}
	call.args.write(args)
	out.Function.Arguments = args
	return out, nil
}

func (t *callTracker) find(c *wireCall, id, name, args string) (int, bool) {
	if c.whole {
		return 0, false
	}
	if c.Index.ok {
		n, ok := t.byIndex[c.Index.n]
		if !ok || !t.collides(t.calls[n], id, name, args) {
			return n, ok
		}
		n, ok = t.byID[id]
		return n, ok && id != ""
	}
	if id != "" {
		if n, ok := t.byID[id]; ok {
			// An id that is the tool's name is shared by all calls of that tool.
			return n, !t.calls[n].args.done() || name == "" || args == ""
		}
		n := len(t.calls) - 1
		return n, n >= 0 && t.calls[n].id == "" && (name == "" || t.calls[n].name == "")
	}
	n := len(t.calls) - 1
	return n, n >= 0 && !t.calls[n].followed(name, args)
}

// collides reports whether a piece under the index of a call begins another one.
func (t *callTracker) collides(call *trackedCall, id, name, args string) bool {
	if name == "" || call.name == "" {
		return false
	}
	if id == "" || call.id == "" {
		return id == "" && call.id == "" && call.args.done() && args != ""
	}
	return id != call.id
}

// followed reports whether a piece without index and id begins the next call.
func (c *trackedCall) followed(name, args string) bool {
	if name != "" && c.name != "" && name != c.name {
		return true
	}
	return c.args.done() && strings.TrimSpace(args) != "" && (name == "" || c.name != "")
}

// jsonEnd finds the end of a JSON object that comes in pieces, without keeping them.
type jsonEnd struct {
	depth             int
	begun, str, quote bool // an object has begun; inside of a string; after a backslash in it
}

func (j *jsonEnd) write(s string) {
	for i := range len(s) {
		c := s[i]
		switch {
		case j.quote:
			j.quote = false
		case j.str:
			j.quote, j.str = c == '\\', c != '"'
		case c == '"':
			j.str = true
		case c == '{' || c == '[':
			j.depth++
			j.begun = true
		case c == '}' || c == ']':
			j.depth--
		}
	}
}

func (j *jsonEnd) done() bool { return j.begun && j.depth <= 0 && !j.str }

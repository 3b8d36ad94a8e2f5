package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// Bounds of the text about a call.
const (
	MaxArguments = 60  // columns of a call's arguments
	maxCalls     = 256 // that are remembered of one step
	namedCalls   = 3   // that a line names
)

// call is a tool call that has not returned.
type call struct{ id, text string }

// Describe is a call in a few words: the tool and what it is about.
func Describe(c messages.ToolCall) string {
	about := render.Visible(c.Arguments)
	var args map[string]any
	if json.Unmarshal([]byte(c.Arguments), &args) == nil {
		about = subjectOf(args, about)
	}
	return strings.TrimSpace(render.Visible(c.Name) + " " + render.Truncate(about, MaxArguments))
}

// subjectOf is the argument that says most, or all of them.
func subjectOf(args map[string]any, all string) string {
	if len(args) == 0 {
		return ""
	}
	for _, key := range []string{"path", "file", "url", "query", "command", "name"} {
		if s, ok := args[key].(string); ok {
			return render.Visible(s)
		}
	}
	if keys := slices.Collect(maps.Keys(args)); len(keys) == 1 {
		if s, ok := args[keys[0]].(string); ok {
			return render.Visible(s)
		}
	}
	return all
}

// begin remembers a call, unless it is known.
func (r *run) begin(id, text string) {
	if !r.begun(id) && len(r.calls) < maxCalls {
		r.calls = append(r.calls, call{id, text})
	}
}

// begun reports whether a call is known and has not returned.
func (r *run) begun(id string) bool {
	return slices.ContainsFunc(r.calls, func(c call) bool { return c.id == id })
}

// end removes a call and returns its description; ok is false if the call is unknown.
func (r *run) end(id string) (text string, ok bool) {
	i := slices.IndexFunc(r.calls, func(c call) bool { return c.id == id })
	if i < 0 {
		return "", false
	}
	text = r.calls[i].text
	r.calls = slices.Delete(r.calls, i, i+1)
	return text, true
}

// working says which calls are in flight.
func (r *run) working() string {
	switch n := len(r.calls); n {
	case 0:
		return "thinking about the results"
	case 1:
		return r.calls[0].text
	default:
		return fmt.Sprintf("%s and %d more", r.calls[0].text, n-1)
	}
}

// listed are the calls of a message in a line.
func listed(calls []messages.ToolCall) string {
	var parts []string
	for i, c := range calls {
		if i == namedCalls {
			parts = append(parts, fmt.Sprintf("%d more", len(calls)-i))
			break
		}
		parts = append(parts, Describe(c))
	}
	return strings.Join(parts, ", ")
}

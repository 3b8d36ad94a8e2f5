package evaluation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxReason bounds what a reason shows of a result, in bytes.
const maxReason = 200

// Judge returns why a result is not what was expected, nothing when it is. The suite must come from Parse.
func (e *Expect) Judge(r *messages.AgentResult) []string {
	var why []string
	no := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if r.Status != e.Status {
		no("status: %s, want %s%s", r.Status, e.Status, because(r.Error))
	}
	if e.Code != "" && (r.Error == nil || r.Error.Code != e.Code) {
		no("code: want %s%s", e.Code, because(r.Error))
	}
	text, _ := r.Result.(string)
	if e.Equals != nil && strings.TrimSpace(text) != strings.TrimSpace(*e.Equals) {
		no("equals: %q, want %q", strict.Clip(text, maxReason), strict.Clip(*e.Equals, maxReason))
	}
	for _, part := range e.Contains {
		if !strings.Contains(text, part) {
			no("contains: %q is not in %q", strict.Clip(part, maxReason), strict.Clip(text, maxReason))
		}
	}
	for _, part := range e.NotContains {
		if strings.Contains(text, part) {
			no("notContains: %q is in %q", strict.Clip(part, maxReason), strict.Clip(text, maxReason))
		}
	}
	why = append(why, e.judgeJSON(text)...)
	return append(why, e.judgeUse(r)...)
}

func because(err *messages.RunError) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", err.Code, strict.Clip(err.Message, maxReason))
}

func (e *Expect) judgeJSON(text string) (why []string) {
	if len(e.JSON) == 0 && e.schema == nil {
		return nil
	}
	v, err := decodeJSON([]byte(text))
	if err != nil {
		return []string{fmt.Sprintf("json: the result is not JSON: %q", strict.Clip(text, maxReason))}
	}
	for i := range e.JSON {
		if reason := e.JSON[i].judge(v); reason != "" {
			why = append(why, "json: "+e.JSON[i].Path+": "+reason)
		}
	}
	if e.schema != nil {
		var plain any // the validator wants Go's numbers
		if err := json.Unmarshal([]byte(text), &plain); err != nil {
			return append(why, "schema: "+strict.Clip(err.Error(), maxReason))
		}
		if err := e.schema.Validate(plain); err != nil {
			why = append(why, "schema: "+strict.Clip(err.Error(), maxReason))
		}
	}
	return why
}

// decodeJSON reads one JSON value and keeps its numbers as they are written.
func decodeJSON(data []byte) (v any, err error) {
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	if err := in.Decode(&v); err != nil {
		return nil, err
	}
	if in.More() {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

func (a *AtPath) judge(v any) string {
	found, ok := at(v, a.steps)
	switch {
	case a.Exists != nil && ok != *a.Exists:
		return fmt.Sprintf("exists is %t, want %t", ok, *a.Exists)
	case a.Exists != nil:
		return ""
	case !ok:
		return "nothing is there"
	case a.Contains != "":
		if text, is := found.(string); !is || !strings.Contains(text, a.Contains) {
			return fmt.Sprintf("%q is not in %s", a.Contains, asJSON(found))
		}
		return ""
	}
	want, err := decodeJSON(a.Equals)
	if err != nil || !sameJSON(want, found) {
		return fmt.Sprintf("%s, want %s", asJSON(found), strict.Clip(string(a.Equals), maxReason))
	}
	return ""
}

// sameJSON compares values; numbers by what they are, not by how they are written.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		n, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, err := a.Float64()
		y, err2 := n.Float64()
		return a == n || err == nil && err2 == nil && x == y
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, sameJSON)
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok || len(a) != len(other) {
			return false
		}
		for k, v := range a {
			if w, there := other[k]; !there || !sameJSON(v, w) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strict.Clip(string(b), maxReason)
}

// judgeUse looks at what a run did and used.
func (e *Expect) judgeUse(r *messages.AgentResult) (why []string) {
	if e.Tools != nil {
		calls := r.Calls()
		called := make([]string, len(calls))
		for i := range calls {
			called[i] = calls[i].Name
		}
		switch {
		case r.Truncated && len(called) == 0 && len(*e.Tools) > 0:
			why = append(why, "tools: the result is too large to tell which were called")
		case !slices.Equal(called, *e.Tools):
			why = append(why, fmt.Sprintf("tools: [%s], want [%s]", strict.Clip(strings.Join(called, ", "), maxReason), strings.Join(*e.Tools, ", ")))
		}
	}
	if e.MaxSteps > 0 && r.Steps > e.MaxSteps {
		why = append(why, fmt.Sprintf("maxSteps: %d, want %d at most", r.Steps, e.MaxSteps))
	}
	if e.MaxTokens > 0 && r.TokenUsage.Total > e.MaxTokens {
		why = append(why, fmt.Sprintf("maxTokens: %d, want %d at most", r.TokenUsage.Total, e.MaxTokens))
	}
	switch {
	case e.MaxCost == nil:
	case r.CostEstimate == nil:
		why = append(why, "maxCost: the cost is unknown")
	case *r.CostEstimate > *e.MaxCost:
		why = append(why, fmt.Sprintf("maxCost: %s, want %s at most", messages.Money(*r.CostEstimate), messages.Money(*e.MaxCost)))
	}
	return why
}

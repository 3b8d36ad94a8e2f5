package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// A reference stands in a text of a step's args for what another step has answered: ${steps.ID.output}.
const (
	refOpen  = "${steps."
	refClose = ".output}"
)

// References are the ids that the step's args refer to, each once, sorted. Only texts count, not keys.
func (s *PlanStep) References() ([]string, error) {
	var ids []string
	_, err := s.Resolve(func(id string) (string, bool) {
		ids = append(ids, id)
		return "", true
	})
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// Resolve is the step's args as JSON with every reference replaced by the output of its step. What an output says is
// not looked at again, so it cannot refer to anything. Numbers stay as they are written. The error is a *FieldError.
func (s *PlanStep) Resolve(output func(id string) (text string, ok bool)) (string, error) {
	if len(s.Args) == 0 {
		return "{}", nil
	}
	if !bytes.Contains(s.Args, []byte("${steps.")) && !bytes.Contains(s.Args, []byte(`\u`)) {
		return string(s.Args), nil
	}
	in := json.NewDecoder(bytes.NewReader(s.Args))
	in.UseNumber()
	var tree any
	if err := in.Decode(&tree); err != nil {
		return "", &FieldError{Field: "args", Reason: "not valid JSON"}
	}
	tree, err := replaceIn("args", tree, output)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(tree); err != nil {
		return "", &FieldError{Field: "args", Reason: "not valid JSON"}
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func replaceIn(at string, v any, output func(string) (string, bool)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return replaceText(at, v, output)
	case []any:
		for i := range v {
			if v[i], err = replaceIn(fmt.Sprintf("%s[%d]", at, i), v[i], output); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) { // so that the first error is always the same
			if v[key], err = replaceIn(at+"."+strict.Shown(key), v[key], output); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func replaceText(at, s string, output func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, refOpen)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		n := 0
		for n < len(rest) && isTokenByte(rest[n]) {
			n++
		}
		id := rest[:n]
		if !strict.ValidToken(id) || !strings.HasPrefix(rest[n:], refClose) {
			return "", &FieldError{Field: strict.Clip(at, strict.MaxPath), Reason: fmt.Sprintf("%q is no reference; write ${steps.ID.output}", strict.Shown(refOpen+strict.Clip(rest, 32)))}
		}
		text, ok := output(id)
		if !ok {
			return "", &FieldError{Field: strict.Clip(at, strict.MaxPath), Reason: fmt.Sprintf("${steps.%s.output}: the step has no output", id)}
		}
		b.WriteString(text)
		s = rest[n+len(refClose):]
	}
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

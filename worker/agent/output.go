package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxWrong bounds what the model and the result say about an answer that does not fit, in bytes.
const maxWrong = 2 << 10

// OutputSchema is the schema of the run's final answer: the agent's, else the task's; empty: it is free.
func (s *State) OutputSchema() json.RawMessage {
	if len(s.Agent.OutputSchema) > 0 {
		return s.Agent.OutputSchema
	}
	return s.Task.OutputSchema
}

// CheckOutputSchema returns a *messages.FieldError if answers cannot be checked against the schemas that a run would begin with. A
// task may only narrow what its agent grants, and it is undecidable which of two schemas is narrower, so a task may have one only
// if its agent has none.
func CheckOutputSchema(t *messages.Task, d *messages.Definition) error {
	s := State{Task: t, Agent: d}
	schema := s.OutputSchema()
	switch {
	case len(schema) == 0:
		return nil
	case len(t.OutputSchema) > 0 && len(d.OutputSchema) > 0:
		return &messages.FieldError{Field: "outputSchema", Reason: fmt.Sprintf("the agent %s has one of its own", d.Name)}
	}
	if _, ok := Planners()[d.Planner].(Interpreter); !ok {
		return &messages.FieldError{Field: "outputSchema", Reason: fmt.Sprintf("the planner %s does not check answers", d.Planner)}
	}
	if _, err := resolve(schema); err != nil {
		return &messages.FieldError{Field: "outputSchema", Reason: strict.Clip(err.Error(), maxWrong)}
	}
	return nil
}

// resolve refuses references: a loop of them would have no end.
func resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var tree any
	if err := json.Unmarshal(schema, &tree); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if refers(tree) {
		return nil, errors.New("$ref is not supported: write the schema out")
	}
	var root jsonschema.Schema
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if root.Type != "object" {
		return nil, errors.New(`"type" must be "object"`) // no provider takes another
	}
	r, err := root.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve schema: %w", err)
	}
	return r, nil
}

// refers reports whether there is a reference in a schema.
func refers(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			if _, text := sub.(string); text && (key == "$ref" || key == "$dynamicRef") || refers(sub) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, refers)
	}
	return false
}

// checkOutput says what is wrong with an answer; empty: it fits.
func checkOutput(schema json.RawMessage, answer string) string {
	r, err := resolve(schema)
	if err != nil {
		return strict.Clip(err.Error(), maxWrong) // of a run that another version began
	}
	var raw json.RawMessage
	if err := strict.Decode([]byte(answer), &raw); err != nil {
		return "it is not JSON: " + strict.Clip(err.Error(), maxWrong)
	}
	v, err := decoded(raw)
	if err == nil {
		err = r.Validate(v)
	}
	if err != nil {
		return strict.Clip(err.Error(), maxWrong)
	}
	return ""
}

// decoded reads JSON with integers that stay exact.
func decoded(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return numbers(v)
}

func numbers(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
		n, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s is a number out of range", strict.Clip(v.String(), 64))
		}
		return n, nil
	case []any:
		for i := range v {
			if v[i], err = numbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = numbers(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// unfenced is an answer without the fence of a code block that many models put around JSON.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	body, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	first, body, ok := strings.Cut(body, "\n")
	if lang := strings.TrimSpace(first); !ok || lang != "" && !strings.EqualFold(lang, "json") {
		return s
	}
	if body, ok = strings.CutSuffix(body, "```"); !ok {
		return s
	}
	return strings.TrimSpace(body)
}

// outputPrompt tells the model the schema: not every provider can ask for one.
func (s *State) outputPrompt() string {
	schema := s.OutputSchema()
	if len(schema) == 0 {
		return ""
	}
	return "When you are done, answer with JSON alone, without any other text, that fits this JSON Schema:\n" + string(schema)
}

// paragraphs joins the texts that are not empty.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

package messages

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// MaxBatchTemplate bounds a template, in bytes.
const MaxBatchTemplate = 2 << 20

// place is a variable's place in a template, such as {{city}}.
var place = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

// variable is the name of one.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// BatchTemplate is a task with places for variables in its texts. Safe for concurrent use.
type BatchTemplate struct {
	tree any
}

// ParseBatchTemplate reads a task in which any text may hold places such as {{city}}.
func ParseBatchTemplate(data []byte) (*BatchTemplate, error) {
	if len(data) > MaxBatchTemplate {
		return nil, &FieldError{Field: "template", Reason: fmt.Sprintf("larger than %d bytes", MaxBatchTemplate)}
	}
	if _, err := parseTask(data); err != nil { // its fields; what they hold is known with the variables
		return nil, strict.Under("template", err)
	}
	tree, err := freeTree(data)
	if err != nil {
		return nil, strict.Under("template", err)
	}
	if err := walkTexts(tree, func(s string) error {
		for _, m := range place.FindAllStringSubmatch(s, -1) {
			if !variable.MatchString(m[1]) {
				return &FieldError{Field: "template", Reason: fmt.Sprintf("%q is not a valid variable name", strict.Shown(m[1]))}
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return &BatchTemplate{tree}, nil
}

// freeTree reads any JSON; numbers stay as they are written.
func freeTree(data []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, &FieldError{Field: strict.Body, Reason: "is not JSON"}
	}
	return tree, nil
}

func walkTexts(v any, do func(string) error) error {
	switch v := v.(type) {
	case string:
		return do(v)
	case []any:
		for _, e := range v {
			if err := walkTexts(e, do); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := walkTexts(e, do); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill is the task of a line: the template with the line's variables.
func (t *BatchTemplate) fill(line *lineWire) (*Task, error) {
	if b, err := json.Marshal(line.Task); err != nil || string(b) != emptyTask || line.Description != nil {
		return nil, &FieldError{Field: "vars", Reason: "are all that a line may hold besides custom_id when there is a template"}
	}
	vars := make(map[string]string, len(line.Vars)+1)
	for name, v := range line.Vars {
		text, err := varText(v)
		if err != nil || !variable.MatchString(name) {
			return nil, &FieldError{Field: "vars." + strict.Shown(name), Reason: "must be a text, a number, true or false, by a name of A-Z a-z 0-9 _"}
		}
		vars[name] = text
	}
	size := 0
	tree, err := substitute(t.tree, vars, &size)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, &FieldError{Field: "vars", Reason: "cannot be written as JSON"}
	}
	return parseTask(data)
}

// emptyTask is a task that says nothing, as it is encoded.
const emptyTask = `{"input":[]}`

// varText is a value as it appears in a text; a number as it was written.
func varText(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return "", &FieldError{Field: strict.Body, Reason: "must be a string, a number, true or false"}
	case raw[0] != '"':
		return string(raw), nil
	}
	var s string
	err := strict.Decode(raw, &s)
	return s, err
}

// substitute is a copy of a tree with the variables in place. A value is put in once: places in it are text.
func substitute(v any, vars map[string]string, size *int) (any, error) {
	switch v := v.(type) {
	case string:
		return fillText(v, vars, size)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = substitute(e, vars, size); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			var err error
			if out[k], err = substitute(e, vars, size); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return v, nil
	}
}

func fillText(s string, vars map[string]string, size *int) (string, error) {
	var out strings.Builder
	at := 0
	for _, m := range place.FindAllStringSubmatchIndex(s, -1) {
		name := s[m[2]:m[3]]
		value, ok := vars[name]
		if !ok {
			return "", &FieldError{Field: "vars." + name, Reason: "is missing"}
		}
		if *size += len(value); *size > MaxBatchLine { // a value may stand in many places
			return "", &FieldError{Field: "vars", Reason: fmt.Sprintf("make the task larger than %d bytes", MaxBatchLine)}
		}
		out.WriteString(s[at:m[0]])
		out.WriteString(value)
		at = m[1]
	}
	out.WriteString(s[at:])
	return out.String(), nil
}

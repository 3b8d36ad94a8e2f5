package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

func readCall(at string, f *callFile) (call, error) {
	if f.Name == "" {
		return call{}, &messages.FieldError{Field: at + ".name", Reason: "is missing"}
	}
	c := call{name: f.Name, raw: "{}"}
	if len(f.Arguments) == 0 {
		return c, nil
	}
	d := json.NewDecoder(bytes.NewReader(f.Arguments))
	d.UseNumber() // a number stays as it was written
	if err := d.Decode(&c.arguments); err != nil {
		return call{}, &messages.FieldError{Field: at + ".arguments", Reason: err.Error()}
	}
	switch v := c.arguments.(type) {
	case map[string]any:
	case string:
		c.raw, c.arguments = v, nil
	default:
		return call{}, &messages.FieldError{Field: at + ".arguments", Reason: "must be a map or a string"}
	}
	return c, nil
}

// encode writes the JSON as a model would: keys in order, nothing escaped that need not be.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("encode arguments: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// fill replaces the placeholders in all strings of a JSON value, keys aside.
func fill(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return r.Replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = fill(v[i], r)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = fill(v[k], r)
		}
		return out
	default:
		return v
	}
}

package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages"
)

func readCall(at string, f *callFile) (call, error) {
	if f.Name == "" {
		return call{}, &messages.FieldError{Field: at + ".name", Reason: "is missing"}
	}
	c := call{name: f.Name}
	switch n := &f.Arguments; {
	case n.IsZero():
		c.raw = "{}"
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		c.raw = n.Value
	case n.Kind == yaml.MappingNode:
		v, err := jsonOf(at+".arguments", n)
		if err != nil {
			return call{}, err
		}
		if _, err := encode(v); err != nil {
			return call{}, &messages.FieldError{Field: at + ".arguments", Reason: err.Error()}
		}
		c.arguments = v
	default:
		return call{}, &messages.FieldError{
			Field: at + ".arguments", Reason: fmt.Sprintf("must be a map or a string (line %d)", n.Line),
		}
	}
	return c, nil
}

// jsonOf is the JSON value of a node. Dates stay the strings they are, and aliases are refused because few of them
// can stand for very much.
func jsonOf(at string, n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return nil, &messages.FieldError{Field: at, Reason: fmt.Sprintf("a key is not a string (line %d)", key.Line)}
			}
			if _, twice := m[key.Value]; twice {
				return nil, &messages.FieldError{Field: at, Reason: fmt.Sprintf("%q is there twice (line %d)", key.Value, key.Line)}
			}
			v, err := jsonOf(at+"."+key.Value, n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[key.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		l := make([]any, len(n.Content))
		for i, c := range n.Content {
			v, err := jsonOf(fmt.Sprintf("%s[%d]", at, i), c)
			if err != nil {
				return nil, err
			}
			l[i] = v
		}
		return l, nil
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!bool", "!!int", "!!float", "!!null":
			var v any
			if err := n.Decode(&v); err != nil {
				return nil, &messages.FieldError{Field: at, Reason: err.Error()}
			}
			return v, nil
		default:
			return n.Value, nil
		}
	default:
		return nil, &messages.FieldError{Field: at, Reason: fmt.Sprintf("an alias is not allowed here (line %d)", n.Line)}
	}
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

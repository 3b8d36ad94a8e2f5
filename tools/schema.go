package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages/strict"
)

// schema checks arguments. It holds no references, so the work of a check is bounded by the size of the schema times
// that of the arguments; a loop of references would have no end.
type schema struct {
	root  *jsonschema.Schema
	whole *jsonschema.Resolved
	parts map[string]*jsonschema.Resolved // of the properties of root, to say which of them is wrong
}

const draft = "https://json-schema.org/draft/2020-12/schema"

func newSchema(data json.RawMessage) (*schema, error) {
	var raw json.RawMessage
	if err := strict.Decode(data, &raw); err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	if refers(tree) {
		return nil, errors.New("$ref is not supported: write the schema out")
	}
	s := &schema{root: &jsonschema.Schema{}, parts: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal(raw, s.root); err != nil {
		return nil, err
	}
	if s.root.Type != "object" {
		return nil, errors.New(`"type" must be "object"`)
	}
	if s.root.Schema != "" && s.root.Schema != draft {
		return nil, fmt.Errorf("%q is not supported; leave $schema out", s.root.Schema)
	}
	for name, part := range s.root.Properties {
		if part == nil {
			return nil, fmt.Errorf("property %q is null", name)
		}
		r, err := part.CloneSchemas().Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", name, err)
		}
		s.parts[name] = r
	}
	var err error
	if s.whole, err = s.root.Resolve(nil); err != nil {
		return nil, err
	}
	return s, nil
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

// forbids reports whether a schema is false: it fits nothing.
func forbids(s *jsonschema.Schema) bool {
	return s != nil && s.Not != nil && reflect.ValueOf(s.Not).Elem().IsZero()
}

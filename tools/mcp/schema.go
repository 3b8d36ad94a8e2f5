package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// Limits of a schema while its references are written out.
const (
	maxSchemaNodes = 10_000
	maxSchemaDepth = 24 // as JSON twice as deep, which the lock file must hold
)

// writtenOut is the schema of a server as a tool needs it: an object without references, in the current draft. References
// within the schema are replaced by what they lead to; none is ever loaded. An object that does not say whether it takes other
// arguments takes none, so that no misspelt one is lost in silence.
func writtenOut(schema any) (json.RawMessage, error) {
	root, ok := schema.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	w := &writer{root: root}
	out, err := w.schema(root, 0)
	if err != nil {
		return nil, err
	}
	o, ok := out.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	if o["type"] == nil {
		o["type"] = "object"
	}
	if o["properties"] == nil {
		o["properties"] = map[string]any{} // some providers refuse an object without the word
	}
	closes := true
	for _, other := range []string{"additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "if", "$dynamicRef"} {
		closes = closes && o[other] == nil
	}
	if closes {
		o["additionalProperties"] = false
	}
	data, err := json.Marshal(o)
	if err == nil && len(data) > maxSchema {
		err = fmt.Errorf("it is longer than %d bytes", maxSchema)
	}
	return data, err
}

// writer copies a schema. It counts what it copies: references to references can make a small schema a huge one.
type writer struct {
	root  map[string]any
	nodes int
	path  []string // references that are being written out
}

// Drafts whose schemas are read as the current one.
func draft(uri any) bool {
	s, ok := uri.(string)
	s = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://"), "#")
	return ok && (s == "json-schema.org/draft-07/schema" || s == "json-schema.org/draft/2019-09/schema" || s == "json-schema.org/draft/2020-12/schema")
}

func (w *writer) schema(v any, depth int) (any, error) {
	if w.nodes++; w.nodes > maxSchemaNodes {
		return nil, errors.New("it is too large once its references are written out")
	}
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxSchemaDepth)
	}
	if list, ok := v.([]any); ok {
		out := make([]any, len(list))
		for i := range list {
			var err error
			if out[i], err = w.schema(list[i], depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	in, ok := v.(map[string]any)
	if !ok {
		return w.value(v, depth)
	}
	if d, ok := in["$schema"]; ok && !draft(d) {
		return nil, errors.New("$schema is not draft 7, 2019-09 or 2020-12")
	}
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		var err error
		switch key {
		case "$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "$ref":
			continue
		case "$dynamicRef", "$recursiveRef":
			return nil, fmt.Errorf("%s is not supported", key)
		case "title", "description":
			if text, ok := in[key].(string); ok {
				out[key] = tools.Plain(text)
				continue
			}
			return nil, fmt.Errorf("%s is not a text", key)
		case "properties", "patternProperties", "dependentSchemas":
			out[key], err = w.named(in[key], depth)
		case "default", "const", "enum", "examples":
			out[key], err = w.value(in[key], depth)
		default:
			out[key], err = w.schema(in[key], depth+1)
		}
		if err != nil {
			return nil, err
		}
	}
	ref, ok := in["$ref"]
	if !ok {
		return out, nil
	}
	return w.refer(ref, out, depth)
}

// refer writes out what a reference leads to, with the keywords next to it.
func (w *writer) refer(ref any, beside map[string]any, depth int) (any, error) {
	name, ok := ref.(string)
	if !ok || !strings.HasPrefix(name, "#") {
		return nil, errors.New("$ref leads out of the schema, and nothing is loaded")
	}
	if slices.Contains(w.path, name) {
		return nil, errors.New("$ref leads back to itself, which models cannot be told")
	}
	target, err := w.at(name)
	if err != nil {
		return nil, err
	}
	w.path = append(w.path, name)
	led, err := w.schema(target, depth+1)
	w.path = w.path[:len(w.path)-1]
	if err != nil {
		return nil, err
	}
	into, ok := led.(map[string]any)
	for key := range beside {
		switch key {
		case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly":
		default:
			ok = false // both must hold
		}
	}
	if !ok {
		beside["allOf"] = append([]any{led}, asList(beside["allOf"])...)
		return beside, nil
	}
	maps.Copy(into, beside)
	return into, nil
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// at follows a JSON pointer.
func (w *writer) at(ref string) (any, error) {
	missing := errors.New("$ref leads to nothing")
	var v any = w.root
	for step := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if step == "" {
			continue
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[step]
			if !ok {
				return nil, missing
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil, missing
			}
			v = in[i]
		default:
			return nil, missing
		}
	}
	return v, nil
}

// named copies schemas by the names of arguments.
func (w *writer) named(v any, depth int) (any, error) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("properties are not an object")
	}
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if name == "" || tools.Plain(name) != name || len(name) > maxToolName {
			return nil, fmt.Errorf("the argument %q has a name that is empty, too long or holds hidden characters", strict.Shown(name))
		}
		var err error
		if out[name], err = w.schema(in[name], depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// value checks what is no schema and is copied as it is.
func (w *writer) value(v any, depth int) (any, error) {
	if w.nodes++; w.nodes > maxSchemaNodes || depth > maxSchemaDepth {
		return nil, errors.New("it is too large")
	}
	switch v := v.(type) {
	case string:
		if tools.Plain(v) != v {
			return nil, errors.New("a value holds hidden characters")
		}
	case []any:
		for i := range v {
			if _, err := w.value(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range v {
			if tools.Plain(key) != key {
				return nil, errors.New("a value holds hidden characters")
			}
			if _, err := w.value(v[key], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	maxArguments = 1 << 20 // bytes
	maxProblems  = 10      // in one text; a model corrects the first ones first
	maxShown     = 64      // bytes of a name that a model made up
	maxExpected  = 512     // bytes of a schema in a text
)

// Check reports whether a call may be made: the tool is one of the allowed and of the set, and the arguments are one
// strict JSON object that fits the tool's schema. It returns the arguments, or a Result for the model that says what
// is wrong with them. Empty arguments are {}; other text that is not JSON never is. Pure: the same call gets the same
// answer, and nothing happens.
func (s *Set) Check(c messages.ToolCall, allowed []messages.ToolSpec) (json.RawMessage, *Result) {
	var names []string
	for _, spec := range allowed {
		if s.members[spec.Name] != nil {
			names = append(names, spec.Name)
		}
	}
	if !slices.Contains(names, c.Name) {
		return nil, invalid(fmt.Sprintf("Tool %q not found. Allowed tools: %s", strict.Clip(c.Name, maxShown), orNone(names)))
	}
	args, problems := s.members[c.Name].schema.check(c.Arguments)
	if problems != nil {
		return nil, invalid(fmt.Sprintf("Invalid arguments for %s: %s.", c.Name, strings.Join(problems, "; ")))
	}
	return args, nil
}

func (s *schema) check(arguments string) (json.RawMessage, []string) {
	if len(arguments) > maxArguments {
		return nil, []string{fmt.Sprintf("they are larger than %d bytes", maxArguments)}
	}
	if arguments = strings.TrimSpace(arguments); arguments == "" {
		arguments = "{}" // which does not fit when something is required
	}
	var raw json.RawMessage
	if err := strict.Decode([]byte(arguments), &raw); err != nil {
		return nil, []string{undecodable(err)}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, []string{"not valid JSON: " + strict.Clip(err.Error(), maxExpected)}
	}
	var f finder
	tree = f.numbers("", tree)
	f.compare("", s.root, tree)
	if f.problems == nil {
		f.validate(s, tree)
	}
	return raw, f.problems
}

// undecodable says what is wrong with text that is not strict JSON.
func undecodable(err error) string {
	fe, ok := errors.AsType[*messages.FieldError](err)
	switch {
	case !ok:
		return "they must be one JSON object: " + strict.Clip(err.Error(), maxExpected)
	case fe.Field == "body":
		return "they must be one JSON object: " + fe.Reason
	default:
		return fmt.Sprintf("%q: %s", fe.Field, fe.Reason)
	}
}

// finder collects what is wrong with arguments, in words that name the field.
type finder struct{ problems []string }

func (f *finder) add(path, format string, args ...any) {
	if len(f.problems) == maxProblems {
		return
	}
	what := "the arguments"
	if path != "" {
		what = strconv.Quote(path)
	}
	f.problems = append(f.problems, what+" "+fmt.Sprintf(format, args...))
}

// numbers makes exact integers of numbers that are some, and floats of the others.
func (f *finder) numbers(path string, v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		n, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			f.add(path, "is a number out of range")
		}
		return n
	case []any:
		for i := range v {
			v[i] = f.numbers(index(path, i), v[i])
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = f.numbers(below(path, key), v[key])
		}
	}
	return v
}

// compare finds what is wrong most often: missing and unknown fields, wrong types, values that are not offered.
// Whatever it lets pass, validate judges.
func (f *finder) compare(path string, s *jsonschema.Schema, v any) {
	if s == nil {
		return
	}
	if want := typesOf(s); want != nil && !fits(v, want) {
		f.add(path, "must be %s, not %s", phrase(want), article(typeOf(v)))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		f.object(path, s, v)
	case []any:
		for i := range v {
			f.compare(index(path, i), s.Items, v[i])
		}
	case string:
		if s.Enum != nil && !slices.Contains(s.Enum, any(v)) {
			offered, _ := json.Marshal(s.Enum)
			f.add(path, "must be one of %s", strict.Clip(string(offered), maxExpected))
		}
	}
}

func (f *finder) object(path string, s *jsonschema.Schema, v map[string]any) {
	for _, key := range s.Required {
		if _, ok := v[key]; !ok {
			f.add(below(path, key), "is missing")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		sub, known := s.Properties[key]
		if !known && forbids(s.AdditionalProperties) && len(s.PatternProperties) == 0 {
			f.add(below(path, key), "is unknown (known: %s)", knownOf(s))
			continue
		}
		f.compare(below(path, key), sub, v[key])
	}
}

func knownOf(s *jsonschema.Schema) string {
	return strict.Clip(orNone(slices.Sorted(maps.Keys(s.Properties))), maxExpected)
}

// validate is the last word: the whole schema.
func (f *finder) validate(s *schema, tree any) {
	if s.whole.Validate(tree) == nil {
		return
	}
	if v, ok := tree.(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if part := s.parts[key]; part != nil && part.Validate(v[key]) != nil {
				f.add(key, "must fit %s", written(part.Schema()))
			}
		}
	}
	if f.problems == nil {
		f.add("", "must fit %s", written(s.root))
	}
}

func written(s *jsonschema.Schema) string {
	b, err := json.Marshal(s)
	if err != nil {
		return "the tool's schema"
	}
	return strict.Clip(string(b), maxExpected)
}

func below(path, key string) string {
	key = strict.Clip(key, maxShown)
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

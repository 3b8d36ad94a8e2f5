package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// knows reports whether the structured output of the API takes a keyword of JSON Schema:
// https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs.
func knows(keyword string) bool {
	switch keyword {
	case "$ref", "$defs", "type", "anyOf", "allOf", "description", "title", "enum", "const",
		"properties", "additionalProperties", "required", "items", "minItems", "format", "pattern":
		return true
	}
	return false
}

// knowsFormat reports whether it takes a format of strings.
func knowsFormat(format string) bool {
	switch format {
	case "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid":
		return true
	}
	return false
}

// closed is a schema as the API takes it. The API refuses objects that are left open and keywords that it does not know: the former are
// closed, and the description tells the model about the latter. It reports whether the schema says of what kind the reply is, which the
// API wants to know.
func closed(schema map[string]any) (map[string]any, bool) {
	if ref, ok := schema["$ref"]; ok { // which stands alone, but for what it may point to
		out := map[string]any{"$ref": ref}
		if defs, ok := schema["$defs"]; ok {
			out["$defs"] = closedIn(defs)
		}
		return out, true
	}
	out, rest := map[string]any{}, map[string]any{}
	for name, value := range schema {
		if knows(name) {
			out[name] = value
		} else {
			rest[name] = value
		}
	}
	if variants, ok := rest["oneOf"]; ok && out["anyOf"] == nil { // which the API takes for it
		out["anyOf"] = variants
		delete(rest, "oneOf")
	}
	for name, value := range out {
		switch name {
		case "properties", "$defs", "anyOf", "allOf":
			out[name] = closedIn(value)
		case "items":
			out[name] = closedValue(value)
		}
	}
	narrow(out, rest)
	if len(rest) > 0 {
		describe(out, rest)
	}
	for _, name := range []string{"type", "anyOf", "allOf", "enum", "const"} {
		if _, ok := out[name]; ok {
			return out, true
		}
	}
	return out, false
}

// narrow moves what the API knows, but not with this value, to rest, and closes an object.
func narrow(out, rest map[string]any) {
	if format, ok := out["format"].(string); ok && !knowsFormat(format) {
		rest["format"] = format
		delete(out, "format")
	}
	if least, ok := out["minItems"]; ok && least != 0.0 && least != 1.0 {
		rest["minItems"] = least
		delete(out, "minItems")
	}
	if !isObject(out) {
		return
	}
	open, dictionary := out["additionalProperties"].(map[string]any)
	if _, fixed := out["properties"]; !fixed && dictionary { // of any names: additionalProperties says what they hold
		out["additionalProperties"] = closedValue(open)
		return
	}
	out["additionalProperties"] = false
}

func isObject(schema map[string]any) bool {
	switch kind := schema["type"].(type) {
	case string:
		return kind == "object"
	case []any:
		return slices.Contains(kind, any("object"))
	default:
		return false
	}
}

// closedIn closes each schema of a list or of a map.
func closedIn(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = closedValue(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = closedValue(v[name])
		}
		return out
	default:
		return value
	}
}

// closedValue closes a schema. One that is true or false stays.
func closedValue(value any) any {
	if schema, ok := value.(map[string]any); ok {
		out, _ := closed(schema)
		return out
	}
	return value
}

// describe tells the model of keywords that the API does not know.
func describe(out, rest map[string]any) {
	said := make([]string, 0, len(rest))
	for name, value := range rest {
		raw, err := json.Marshal(value)
		if err != nil {
			continue // it was read from JSON
		}
		said = append(said, fmt.Sprintf("%s: %s", name, raw))
	}
	slices.Sort(said)
	text := "{" + strings.Join(said, ", ") + "}"
	if before, _ := out["description"].(string); before != "" {
		text = before + "\n\n" + text
	}
	out["description"] = text
}

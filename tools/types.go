package tools

import (
	"math"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// typesOf are the types that a schema allows; nil: any.
func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// typeOf names the JSON Schema type of a decoded value.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func fits(v any, types []string) bool {
	t := typeOf(v)
	return slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

// phrase says "a string" or "null or an array".
func phrase(types []string) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = article(t)
	}
	return strings.Join(words, " or ")
}

func article(t string) string {
	switch t {
	case "null":
		return t
	case "integer", "array", "object":
		return "an " + t
	default:
		return "a " + t
	}
}

package messages

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// A schema that no worker could check an answer by must not get as far as a worker. Whether it is one is found here, with
// what the contract may link; what only the validator finds, such as a bad $id, the worker tells as before.

// keyword is what the value of a keyword of JSON Schema must be.
type keyword int

const (
	aSchema keyword = iota
	schemas
	schemaOrList
	schemasByName
	schemasByPattern
	aText
	texts
	textsByName
	aNumber
	anInteger
	aBoolean
	aList
	aPattern
	aType
)

// keywords are those with values that a validator reads. Others may be anything.
func keywords() map[string]keyword {
	return map[string]keyword{
		"additionalItems": aSchema, "contains": aSchema, "unevaluatedItems": aSchema, "additionalProperties": aSchema, "propertyNames": aSchema,
		"unevaluatedProperties": aSchema, "not": aSchema, "if": aSchema, "then": aSchema, "else": aSchema, "contentSchema": aSchema,
		"prefixItems": schemas, "allOf": schemas, "anyOf": schemas, "oneOf": schemas, "items": schemaOrList,
		"$defs": schemasByName, "definitions": schemasByName, "properties": schemasByName, "dependentSchemas": schemasByName,
		"patternProperties": schemasByPattern,
		"$id":               aText, "$schema": aText, "$comment": aText, "$anchor": aText, "$dynamicAnchor": aText, "title": aText, "description": aText,
		"format": aText, "contentEncoding": aText, "contentMediaType": aText,
		"required": texts, "dependentRequired": textsByName,
		"multipleOf": aNumber, "minimum": aNumber, "maximum": aNumber, "exclusiveMinimum": aNumber, "exclusiveMaximum": aNumber,
		"minLength": anInteger, "maxLength": anInteger, "minItems": anInteger, "maxItems": anInteger, "minContains": anInteger, "maxContains": anInteger,
		"minProperties": anInteger, "maxProperties": anInteger,
		"deprecated": aBoolean, "readOnly": aBoolean, "writeOnly": aBoolean, "uniqueItems": aBoolean,
		"enum": aList, "examples": aList, "pattern": aPattern, "type": aType,
	}
}

// types are the names that the keyword type knows.
func types() []string {
	return []string{"string", "number", "integer", "boolean", "object", "array", "null"}
}

// areTypes reports whether a list names types, at least one.
func areTypes(list []any) bool {
	known := types()
	return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool {
		name, _ := v.(string)
		return !slices.Contains(known, name)
	})
}

// CheckSchema reports whether answers, or the arguments of a tool, can be checked by a schema, an object that is strict JSON. The error
// is a *FieldError with the path in the schema.
func CheckSchema(schema json.RawMessage) error {
	var tree map[string]any
	if err := json.Unmarshal(schema, &tree); err != nil {
		return &FieldError{Field: strict.Body, Reason: "must be an object"}
	}
	if at := reference("", tree); at != "" {
		return &FieldError{Field: at, Reason: "is not supported: write the schema out"}
	}
	if tree["type"] != "object" {
		return &FieldError{Field: "type", Reason: `must be "object": no provider takes another`}
	}
	return checkKeywords("", tree, keywords())
}

// reference is the path of the first reference in a schema: a loop of them would have no end. Empty: there is none.
func reference(path string, v any) string {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if _, text := v[key].(string); text && (key == "$ref" || key == "$dynamicRef") {
				return step(path, key)
			}
			if at := reference(step(path, key), v[key]); at != "" {
				return at
			}
		}
	case []any:
		for i := range v {
			if at := reference(fmt.Sprintf("%s[%d]", path, i), v[i]); at != "" {
				return at
			}
		}
	}
	return ""
}

func step(path, key string) string {
	if path == "" {
		return strict.Shown(key)
	}
	return path + "." + strict.Shown(key)
}

func checkKeywords(path string, schema map[string]any, known map[string]keyword) error {
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		kind, ok := known[key]
		if !ok || schema[key] == nil {
			continue
		}
		if err := checkKeyword(step(path, key), schema[key], kind, known); err != nil {
			return err
		}
	}
	return nil
}

func checkSubschema(path string, v any, known map[string]keyword) error {
	switch v := v.(type) {
	case bool:
		return nil
	case map[string]any:
		return checkKeywords(path, v, known)
	default:
		return wrongKeyword(path, "a schema: an object, true or false")
	}
}

func wrongKeyword(path, want string) error {
	return &FieldError{Field: strict.Clip(path, strict.MaxPath), Reason: "must be " + want}
}

func checkKeyword(path string, v any, kind keyword, known map[string]keyword) error {
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	text, isText := v.(string)
	number, isNumber := v.(float64)
	_, isBool := v.(bool)
	switch kind {
	case aSchema:
		return checkSubschema(path, v, known)
	case schemas, schemaOrList:
		if !isList && kind == schemaOrList {
			return checkSubschema(path, v, known)
		}
		if !isList {
			return wrongKeyword(path, "an array of schemas")
		}
		for i := range list {
			if err := checkSubschema(fmt.Sprintf("%s[%d]", path, i), list[i], known); err != nil {
				return err
			}
		}
	case schemasByName, schemasByPattern:
		if !isObject {
			return wrongKeyword(path, "an object of schemas")
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if _, err := regexp.Compile(name); kind == schemasByPattern && err != nil {
				return wrongKeyword(step(path, name), "a regular expression of RE2")
			}
			if err := checkSubschema(step(path, name), object[name], known); err != nil {
				return err
			}
		}
	case textsByName:
		if !isObject {
			return wrongKeyword(path, "an object of arrays of strings")
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !areTexts(object[name]) {
				return wrongKeyword(step(path, name), "an array of strings")
			}
		}
	case texts:
		if !areTexts(v) {
			return wrongKeyword(path, "an array of strings")
		}
	case aType:
		if isText {
			list = []any{text}
		}
		if !areTypes(list) {
			return wrongKeyword(path, "one of "+strings.Join(types(), ", ")+", or an array of them")
		}
	case aPattern:
		if _, err := regexp.Compile(text); !isText || err != nil {
			return wrongKeyword(path, "a regular expression of RE2")
		}
	default:
		wants := map[keyword]struct {
			ok   bool
			want string
		}{
			aText: {isText, "a string"}, aNumber: {isNumber, "a number"}, aBoolean: {isBool, "true or false"}, aList: {isList, "an array"},
			anInteger: {isNumber && number == float64(int32(number)), "an integer"},
		}
		if w := wants[kind]; !w.ok {
			return wrongKeyword(path, w.want)
		}
	}
	return nil
}

func areTexts(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(e any) bool { _, text := e.(string); return !text })
}

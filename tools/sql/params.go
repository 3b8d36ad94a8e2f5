package sql

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// array is a parameter that is a list, which only PostgreSQL has.
type array []any

// parseParams makes values of parameters; the text says what is wrong with one.
func parseParams(raw []json.RawMessage) (values []any, wrong string) {
	if len(raw) > maxParams {
		return nil, fmt.Sprintf("params: must not be more than %d", maxParams)
	}
	for i, r := range raw {
		v, wrong := parseParam(r)
		if wrong != "" {
			return nil, fmt.Sprintf("params[%d]: %s", i, wrong)
		}
		values = append(values, v)
	}
	return values, ""
}

func parseParam(raw json.RawMessage) (v any, wrong string) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, "is missing"
	}
	switch raw[0] {
	case '[':
		return parseArray(raw)
	case '{':
		return parseBytes(raw)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, "is not JSON"
	}
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case string:
		if strings.ContainsRune(v, 0) {
			return nil, `holds a NUL character: give bytes as {"base64":"…"}`
		}
	}
	return v, ""
}

func parseArray(raw json.RawMessage) (any, string) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, "is not JSON"
	}
	list := make(array, len(items))
	for i, item := range items {
		if item = bytes.TrimSpace(item); len(item) > 0 && (item[0] == '[' || item[0] == '{') {
			return nil, fmt.Sprintf("[%d]: must be a text, a number, true, false or null", i)
		}
		v, wrong := parseParam(item)
		if wrong != "" {
			return nil, fmt.Sprintf("[%d]: %s", i, wrong)
		}
		list[i] = v
	}
	return list, ""
}

func parseBytes(raw json.RawMessage) (any, string) {
	var in struct {
		Base64 *string `json:"base64"`
	}
	if err := strict.Decode(raw, &in); err != nil || in.Base64 == nil {
		return nil, `must be a value, or bytes as {"base64":"…"}`
	}
	data, err := base64.StdEncoding.DecodeString(*in.Base64)
	if err != nil {
		return nil, "is not base64"
	}
	return data, ""
}

// exact is a number that neither an int64 nor a float64 holds as it is written. PostgreSQL takes it as text.
type exact string

// number keeps a number as it is written.
func number(text string) (any, string) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, ""
	}
	return exact(text), ""
}

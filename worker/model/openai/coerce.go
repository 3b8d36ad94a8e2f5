package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// The types below take what providers send where the protocol has a string, a number or a list of texts. None of
// them ever refuses a JSON value: what makes no sense counts as absent.

// looseString takes a string, a number or a bool.
type looseString string

// UnmarshalJSON implements json.Unmarshaler.
func (s *looseString) UnmarshalJSON(data []byte) error {
	var str string
	switch {
	case json.Unmarshal(data, &str) == nil:
		*s = looseString(str) // null leaves it empty
	case data[0] != '{' && data[0] != '[':
		*s = looseString(data)
	}
	return nil
}

// looseInt takes a whole or broken number, also in a string.
type looseInt struct {
	n  int64
	ok bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *looseInt) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(bytes.Trim(data, `" `)), 64)
	if err == nil && math.Abs(f) < 1<<53 {
		i.n, i.ok = int64(f), true
	}
	return nil
}

// count is a number of tokens.
func (i looseInt) count() int64 { return max(i.n, 0) }

// looseText takes a text, or a list of texts and typed parts; parts of reasoning are left out.
type looseText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *looseText) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		*t = looseText(partText(data))
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var b strings.Builder
	for _, p := range parts { // lists in lists are not text: no recursion
		b.WriteString(partText(p))
	}
	*t = looseText(b.String())
	return nil
}

func partText(data []byte) string {
	if data[0] == '{' {
		var part struct {
			Type looseString `json:"type"`
			Text looseString `json:"text"`
		}
		if json.Unmarshal(data, &part) != nil || part.Type != "" && !strings.HasSuffix(string(part.Type), "text") {
			return ""
		}
		return string(part.Text)
	}
	var s looseString
	_ = s.UnmarshalJSON(data) // never fails
	return string(s)
}

// looseArguments takes JSON in a string, or the JSON itself.
type looseArguments string

// UnmarshalJSON implements json.Unmarshaler.
func (a *looseArguments) UnmarshalJSON(data []byte) error {
	var str string
	if json.Unmarshal(data, &str) == nil {
		*a = looseArguments(str) // null leaves it empty
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return err
	}
	*a = looseArguments(compact.String())
	return nil
}

// looseObject takes an object of type T; anything else counts as absent.
type looseObject[T any] struct {
	value T
	ok    bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *looseObject[T]) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	o.ok = true
	return json.Unmarshal(data, &o.value)
}

// looseList takes a list of T, or a single object instead of a list of one.
type looseList[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *looseList[T]) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '[':
		var list []T
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		*l = list
	case '{':
		var one T
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		*l = looseList[T]{one}
	}
	return nil
}

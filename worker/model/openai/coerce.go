package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
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

// looseText takes a text, or a list of texts and typed parts. Parts of reasoning are kept apart.
type looseText struct{ text, thinking string }

// UnmarshalJSON implements json.Unmarshaler.
func (t *looseText) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &t.text) // nearly all
	}
	parts := looseList[textOrPart]{}
	if data[0] != '[' {
		parts = make(looseList[textOrPart], 1)
		if err := parts[0].UnmarshalJSON(data); err != nil {
			return err
		}
	} else if err := parts.UnmarshalJSON(data); err != nil {
		return err
	}
	var text, thinking strings.Builder
	for _, p := range parts {
		text.WriteString(p.text)
		thinking.WriteString(p.thinking)
	}
	t.text, t.thinking = text.String(), thinking.String()
	return nil
}

// textOrPart is one item of a list of content. Lists in lists are not text: there is no recursion.
type textOrPart struct{ text, thinking string }

// UnmarshalJSON implements json.Unmarshaler.
func (p *textOrPart) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		var s looseString
		err := s.UnmarshalJSON(data)
		p.text = string(s)
		return err
	}
	var part struct {
		Type     looseString     `json:"type"`
		Text     looseString     `json:"text"`
		Thinking json.RawMessage `json:"thinking"` // a text, or a list of parts
	}
	if err := json.Unmarshal(data, &part); err != nil {
		return err
	}
	switch {
	case part.Type == "thinking" && len(part.Thinking) > 0:
		var inner looseList[struct {
			Text looseString `json:"text"`
		}]
		var s looseString
		_ = s.UnmarshalJSON(part.Thinking) // never fails
		p.thinking = string(s)
		if err := inner.UnmarshalJSON(part.Thinking); err != nil {
			return err
		}
		for _, i := range inner {
			p.thinking += string(i.Text)
		}
	case part.Type == "" || strings.HasSuffix(string(part.Type), "text"):
		p.text = string(part.Text)
	}
	return nil
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
	if !utf8.Valid(compact.Bytes()) {
		*a = looseArguments([]rune(compact.String())) // as in a JSON string: each broken byte is replaced
	}
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

// looseList takes a list of T, or a single object instead of a list of one. Items that are no T count as empty ones,
// and more than maxItems are an error: an item of two bytes can take hundreds in memory.
type looseList[T any] []T

const maxItems = 1024

// UnmarshalJSON implements json.Unmarshaler.
func (l *looseList[T]) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '[':
		d := json.NewDecoder(bytes.NewReader(data))
		if _, err := d.Token(); err != nil {
			return err
		}
		for d.More() {
			if len(*l) == maxItems {
				return fmt.Errorf("a list has more than %d items", maxItems)
			}
			var one T
			var wrong *json.UnmarshalTypeError
			if err := d.Decode(&one); err != nil && !errors.As(err, &wrong) {
				return err
			}
			*l = append(*l, one)
		}
	case '{':
		var one T
		if err := json.Unmarshal(data, &one); err != nil {
			return err
		}
		*l = looseList[T]{one}
	}
	return nil
}

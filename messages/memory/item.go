package memory

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Item is one thing that is remembered.
type Item struct {
	ID      string         `json:"id"` // 1 to 64 characters of A-Z a-z 0-9 _ -
	Agent   string         `json:"agent,omitempty"`
	Session string         `json:"session,omitempty"`
	Subject string         `json:"subject,omitempty"` // the person or thing that the item is about
	Text    string         `json:"text,omitempty"`
	Cut     bool           `json:"cut,omitempty"` // the text is longer than shown
	Fields  map[string]any `json:"fields,omitempty"`
	Tags    []string       `json:"tags,omitempty"`
	Created time.Time      `json:"created,omitzero"` // zero in a write: now
	Expires time.Time      `json:"expires,omitzero"` // zero: never
	Source  Source         `json:"source,omitzero"`
	Model   string         `json:"model,omitempty"` // that gave the text its vector; not in a write
}

// Source says where an item came from: a step of a run, or a part of a document.
type Source struct {
	Run      string `json:"run,omitempty"`
	Step     int    `json:"step,omitempty"`
	Document string `json:"document,omitempty"`
	Part     int    `json:"part,omitempty"` // of the document, from 0
}

// BriefText is how many bytes of a text a list has that does not ask for whole ones.
const BriefText = 200

// Brief cuts the text of an item.
func (it *Item) Brief() {
	if len(it.Text) > BriefText {
		end := BriefText
		for end > 0 && !utf8.RuneStart(it.Text[end]) {
			end--
		}
		it.Text, it.Cut = it.Text[:end], true
	}
}

// Filter is which items of a collection are meant; the zero value is all.
type Filter struct {
	Agent   string   `json:"agent,omitempty"`
	Session string   `json:"session,omitempty"`
	Subject string   `json:"subject,omitempty"`
	Tags    []string `json:"tags,omitempty"` // all of them
}

// MaxTags bounds the tags of a filter.
const MaxTags = 32

func (f *Filter) check() error {
	for _, part := range []struct{ field, value string }{{"agent", f.Agent}, {"session", f.Session}} {
		if part.value != "" {
			if err := strict.CheckToken(part.field, part.value); err != nil {
				return err
			}
		}
	}
	if err := checkLine("subject", f.Subject, MaxSubject); err != nil {
		return err
	}
	if len(f.Tags) > MaxTags {
		return &messages.FieldError{Field: "tags", Reason: "has more than 32 tags"}
	}
	for _, tag := range f.Tags {
		if err := checkLine("tags", tag, MaxTag); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of what names an item, in bytes.
const (
	MaxSubject = 128
	MaxTag     = 64
)

// checkLine refuses what is not one line of text.
func checkLine(field, s string, limit int) error {
	if err := strict.CheckText(field, s, limit); err != nil {
		return err
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return &messages.FieldError{Field: field, Reason: "holds a control character"}
	}
	return nil
}

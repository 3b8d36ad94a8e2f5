package messages

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// ErrUnknownPrompt means that a prompt, or the version of it that was asked for, is not in the store.
var ErrUnknownPrompt = errors.New("unknown prompt")

// ErrRevision means that something was changed since the revision that a change was made for.
var ErrRevision = errors.New("it has been changed meanwhile")

// Engines of prompts.
const (
	EngineFString    = "fstring" // {name}; {{ and }} are braces
	EngineMustache   = "mustache"
	EngineHandlebars = "handlebars"
	EngineLiquid     = "liquid"
)

// Engines are all engines.
func Engines() []string {
	return []string{EngineFString, EngineMustache, EngineHandlebars, EngineLiquid}
}

// Limits of a prompt, in bytes and counts.
const (
	MaxPromptText     = 64 << 10
	maxPromptVars     = 256
	maxPromptTags     = 32
	maxPromptMetadata = 16 << 10
	MaxAuthor         = 256
	MaxVars           = 256 << 10
)

// Prompt is a template with what is known about it. Every change is a version of its own, and the newest 64 are kept.
type Prompt struct {
	ID           string          `json:"id"`
	Version      uint64          `json:"version,omitempty"` // given by the store; grows with each change, with gaps
	Name         string          `json:"name,omitempty"`    // for people
	Text         string          `json:"text,omitempty"`    // absent in lists
	Engine       string          `json:"engine,omitempty"`  // default "fstring"
	RequiredVars []string        `json:"requiredVars,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`  // an object; Longshore does not interpret it
	Author       string          `json:"author,omitempty"`    // of this version
	CreatedAt    *time.Time      `json:"createdAt,omitempty"` // of this version; given by the store
}

// SetDefaults fills the engine.
func (p *Prompt) SetDefaults() {
	if p.Engine == "" {
		p.Engine = EngineFString
	}
}

// Validate returns a *FieldError for the first field that is wrong. It does not read the text as a template.
func (p *Prompt) Validate() error {
	if err := strict.CheckToken("id", p.ID); err != nil {
		return err
	}
	if !slices.Contains(Engines(), p.Engine) {
		return &FieldError{Field: "engine", Reason: fmt.Sprintf("%q is not an engine; known: fstring, mustache, handlebars, liquid", strict.Shown(p.Engine))}
	}
	if p.Text == "" {
		return &FieldError{Field: "text", Reason: "is empty"}
	}
	for _, f := range []struct {
		name, text string
		limit      int
	}{{"text", p.Text, MaxPromptText}, {"name", p.Name, maxLabel}, {"author", p.Author, MaxAuthor}} {
		if err := strict.CheckText(f.name, f.text, f.limit); err != nil {
			return err
		}
	}
	if len(p.RequiredVars) > maxPromptVars {
		return &FieldError{Field: "requiredVars", Reason: fmt.Sprintf("more than %d", maxPromptVars)}
	}
	for i, v := range p.RequiredVars {
		if err := strict.CheckToken(fmt.Sprintf("requiredVars[%d]", i), v); err != nil {
			return err
		}
	}
	if len(p.Tags) > maxPromptTags {
		return &FieldError{Field: "tags", Reason: fmt.Sprintf("more than %d", maxPromptTags)}
	}
	for i, t := range p.Tags {
		if err := strict.CheckToken(fmt.Sprintf("tags[%d]", i), t); err != nil {
			return err
		}
	}
	return CheckObject("metadata", p.Metadata, maxPromptMetadata)
}

// CheckObject refuses free JSON that is not an object of at most limit bytes. Absent is right.
func CheckObject(field string, data json.RawMessage, limit int) error {
	switch {
	case len(data) == 0:
		return nil
	case len(data) > limit:
		return &FieldError{Field: field, Reason: fmt.Sprintf("larger than %d bytes", limit)}
	case data[0] != '{':
		return &FieldError{Field: field, Reason: "must be an object"}
	}
	return nil
}

// PromptRef names a stored prompt and what is filled in.
type PromptRef struct {
	ID      string          `json:"id"`
	Version uint64          `json:"version,omitempty"` // default: the newest when the run begins
	Vars    json.RawMessage `json:"vars,omitempty"`    // an object. What it lacks is taken from the task's context
}

func (p *PromptRef) check(field string) error {
	if p == nil {
		return nil
	}
	if err := strict.CheckToken(field+".id", p.ID); err != nil {
		return err
	}
	return CheckObject(field+".vars", p.Vars, MaxVars)
}

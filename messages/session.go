package messages

import (
	"fmt"
	"slices"
	"time"
)

// A session is a conversation of a tenant that continues over several runs. One of them at a time has its turn.

// Limits of a session.
const (
	MaxSessionRuns = 1000 // that have their turn or wait for it
	MaxSessionPast = 200  // ended runs that a session remembers
)

// Session is the order of a session's runs.
type Session struct {
	Runs  []string  `json:"runs,omitempty"`  // in the order of their turns; the first has its turn
	Ended []string  `json:"ended,omitempty"` // the last ones, oldest first
	Time  time.Time `json:"time,omitzero"`   // of the last change
}

// Remember adds a run that has ended.
func (s *Session) Remember(run string) {
	s.Ended = append(slices.Clone(s.Ended), run)
	s.Ended = s.Ended[max(0, len(s.Ended)-MaxSessionPast):]
}

// Empty reports whether nothing is known of the session.
func (s *Session) Empty() bool { return len(s.Runs) == 0 && len(s.Ended) == 0 }

// Defaults of a SessionPolicy.
const (
	DefaultSessionMessages = 100
	DefaultSessionTokens   = 16_000
	maxSessionMessages     = 1000
	maxSessionTokens       = 1_000_000
)

// Values of SessionPolicy.Summary.
const (
	SummaryOff = "off"
	SummaryOn  = "on"
)

// SessionPolicy is how much of a conversation a run of an agent begins with.
type SessionPolicy struct {
	MaxMessages int    `json:"maxMessages,omitempty" minimum:"1" maximum:"1000"`  // default 100
	MaxTokens   int    `json:"maxTokens,omitempty" minimum:"1" maximum:"1000000"` // about: four bytes count as one. Default 16000
	Summary     string `json:"summary,omitempty"`                                 // of what is older: "off" (default), "on": a model call makes one
	KeepTools   bool   `json:"keepTools,omitempty"`                               // tool calls and their results too, not only what was said
	Scratchpad  bool   `json:"scratchpad,omitempty"`                              // it begins with the scratchpad that the run before left
}

// SessionPolicy is how much of a conversation the agent's runs begin with, defaults filled.
func (d *Definition) SessionPolicy() SessionPolicy {
	var p SessionPolicy
	if d.Session != nil {
		p = *d.Session
	}
	if p.MaxMessages == 0 {
		p.MaxMessages = DefaultSessionMessages
	}
	if p.MaxTokens == 0 {
		p.MaxTokens = DefaultSessionTokens
	}
	if p.Summary == "" {
		p.Summary = SummaryOff
	}
	return p
}

func (p *SessionPolicy) check() error {
	switch {
	case p.MaxMessages < 0 || p.MaxMessages > maxSessionMessages:
		return &FieldError{Field: "session.maxMessages", Reason: fmt.Sprintf("must be 1 to %d", maxSessionMessages)}
	case p.MaxTokens < 0 || p.MaxTokens > maxSessionTokens:
		return &FieldError{Field: "session.maxTokens", Reason: fmt.Sprintf("must be 1 to %d", maxSessionTokens)}
	case p.Summary != "" && p.Summary != SummaryOff && p.Summary != SummaryOn:
		return &FieldError{Field: "session.summary", Reason: "must be off or on"}
	}
	return nil
}

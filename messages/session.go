package messages

import (
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// A session is a conversation of a tenant that goes on over several runs. One of them at a time has its turn.

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

// Requests about sessions, of the dispatcher's micro service.
const (
	SubjectSessions      = "longshore.sessions"       // SessionRequest without a name -> SessionList
	SubjectSession       = "longshore.session"        // SessionRequest -> SessionStatus
	SubjectSessionDelete = "longshore.session_delete" // SessionRequest -> SessionStatus as it was; conflict while it has runs
)

// SessionRequest names a session, or all of a tenant.
type SessionRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	Name   string `json:"name,omitempty"`
}

// Check fills the tenant's default and checks the names; one checks that a session is named.
func (r *SessionRequest) Check(one bool) error {
	if r.Tenant == "" {
		r.Tenant = DefaultTenant
	}
	if err := strict.CheckToken("tenant", r.Tenant); err != nil {
		return err
	}
	if !one {
		return nil
	}
	return strict.CheckToken("name", r.Name)
}

// SessionStatus is what is known about a session.
type SessionStatus struct {
	Tenant  string    `json:"tenant"`
	Name    string    `json:"name"`
	Turn    string    `json:"turn,omitempty"`    // the run that has its turn
	Queue   int       `json:"queue"`             // runs that wait for their turn
	Turns   int       `json:"turns"`             // ended runs, as far as they are remembered
	Waiting []string  `json:"waiting,omitempty"` // the next one first; not in a list
	Ended   []string  `json:"ended,omitempty"`   // oldest first; not in a list
	Updated time.Time `json:"updated"`
}

// SessionList is the sessions of a tenant by name.
type SessionList struct {
	Sessions []SessionStatus `json:"sessions"`
	More     bool            `json:"more,omitempty"` // there are others
}

// StatusOf is the public form of a session.
func (s *Session) StatusOf(tenant, name string) SessionStatus {
	st := SessionStatus{Tenant: tenant, Name: name, Turns: len(s.Ended), Ended: s.Ended, Updated: s.Time}
	if len(s.Runs) > 0 {
		st.Turn, st.Queue, st.Waiting = s.Runs[0], len(s.Runs)-1, s.Runs[1:]
	}
	return st
}

// Package erasure is what dispatchers are asked about all that is kept of a tenant, of a conversation or of a person: to find it and to
// erase it. The operations are in messages/control. Standard library and messages/strict only.
//
// Every request has a Check, which fills in the default of the tenant; its error is a *messages.FieldError.
package erasure

import (
	"strings"
	"unicode"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about what is kept, of the dispatcher's micro service.
const (
	SubjectFind  = "longshore.data.find"  // FindRequest -> Kept
	SubjectErase = "longshore.data.erase" // EraseRequest -> Kept
)

// EventErased says what was erased. It belongs to no run: its subject is NoRun of the tenant.
const EventErased = "data_erased"

// LabelSubject is the label of tasks that names the person whom a run is about, as the subject of an item does in long-term memory.
const LabelSubject = "subject"

// Scope says of whom or what: of a conversation, of a person, or, with neither, of the whole tenant.
type Scope struct {
	Tenant  string `json:"tenant,omitempty"`  // default "default"
	Session string `json:"session,omitempty"` // the runs, the conversation and the items of a session
	Subject string `json:"subject,omitempty"` // the runs whose task has the label subject, and the items about it
}

// Check fills in the default and checks the names.
func (s *Scope) Check() error {
	if s.Tenant == "" {
		s.Tenant = messages.DefaultTenant
	}
	if err := strict.CheckToken("tenant", s.Tenant); err != nil {
		return err
	}
	if s.Tenant == messages.NoRun {
		return &messages.FieldError{Field: "tenant", Reason: "_ stands for no tenant"}
	}
	if s.Session != "" && s.Subject != "" {
		return &messages.FieldError{Field: "subject", Reason: "is given together with session: ask for one of them"}
	}
	if s.Session != "" {
		return strict.CheckToken("session", s.Session)
	}
	if err := strict.CheckText("subject", s.Subject, MaxSubject); err != nil {
		return err
	}
	if strings.ContainsFunc(s.Subject, unicode.IsControl) {
		return &messages.FieldError{Field: "subject", Reason: "holds a control character"}
	}
	return nil
}

// Whole reports whether the scope is the whole tenant.
func (s *Scope) Whole() bool { return s.Session == "" && s.Subject == "" }

// Bounds of requests.
const (
	MaxSubject = 128  // bytes
	MaxRuns    = 1000 // that a page names
)

// FindRequest asks for what is kept.
type FindRequest struct {
	Scope

	After string `json:"after,omitempty"` // Next of the page before
}

// Check fills in the default and checks the names.
func (r *FindRequest) Check() error {
	if err := r.Scope.Check(); err != nil || r.After == "" {
		return err
	}
	return strict.CheckToken("after", r.After)
}

// EraseRequest erases it, as much as one request has time for.
type EraseRequest struct {
	Scope

	After string `json:"after,omitempty"` // Next of the page before
	// KeepKey leaves the key of the tenant as it is; else the last page of a whole tenant destroys it.
	KeepKey bool   `json:"keepKey,omitempty"`
	By      string `json:"by,omitempty"`
}

// Check fills in the default and checks the names.
func (r *EraseRequest) Check() error {
	f := FindRequest{Scope: r.Scope, After: r.After}
	err := f.Check()
	r.Scope = f.Scope
	return err
}

// Kept is what was found or erased with one request. What is not of runs is on the last page.
type Kept struct {
	Runs     []string `json:"runs"`               // that have ended
	Busy     []string `json:"busy,omitempty"`     // that have not: they stay, with what is theirs
	Sessions []string `json:"sessions,omitempty"` // whose conversation is forgotten
	Items    int64    `json:"items"`              // of long-term memory
	Cached   int64    `json:"cached"`             // values in Redis; only of what was erased
	Key      bool     `json:"key,omitempty"`      // the key of the tenant is, or would be, destroyed
	Left     []string `json:"left,omitempty"`     // what this dispatcher does not reach, and why
	Next     string   `json:"next,omitempty"`     // After of the next page; empty at the end
}

// Erased is the data of data_erased.
type Erased struct {
	Of      string   `json:"of"` // tenant, session or subject; a subject is not named
	Session string   `json:"session,omitempty"`
	Runs    []string `json:"runs,omitempty"` // of which nothing is kept but this
	Items   int64    `json:"items,omitempty"`
	Key     bool     `json:"key,omitempty"` // the key of the tenant was destroyed
	By      string   `json:"by,omitempty"`
}

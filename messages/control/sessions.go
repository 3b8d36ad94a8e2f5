package control

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

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
func (r *SessionRequest) Check(one bool) error { return checkNamed(&r.Tenant, r.Name, one) }

// checkNamed fills a tenant's default and checks it, and a name if one is meant.
func checkNamed(tenant *string, name string, one bool) error {
	if *tenant == "" {
		*tenant = messages.DefaultTenant
	}
	if err := strict.CheckToken("tenant", *tenant); err != nil || !one {
		return err
	}
	return strict.CheckToken("name", name)
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
func StatusOf(s *messages.Session, tenant, name string) SessionStatus {
	st := SessionStatus{Tenant: tenant, Name: name, Turns: len(s.Ended), Ended: s.Ended, Updated: s.Time}
	if len(s.Runs) > 0 {
		st.Turn, st.Queue, st.Waiting = s.Runs[0], len(s.Runs)-1, s.Runs[1:]
	}
	return st
}

package control

import (
	"encoding/json"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// EventActed records a request to change something that has no event of its own. It belongs to no run: its subject is NoRun of the
// tenant that the request names, or of the default tenant. It is stored after the change and before the answer; if the dispatcher
// dies in between, there is none.
const EventActed = "acted"

// HeaderCaller is the header that names the Caller on whose behalf a program sends a request. Clients that may send requests for
// all tenants may set it, as they may set by. On the subjects of a tenant it is ignored.
const HeaderCaller = "Longshore-Caller"

// Caller is for whom a request is made.
type Caller struct {
	Who    string `json:"who,omitempty"`    // whose key or token it was, over HTTP with authentication
	Remote string `json:"remote,omitempty"` // the address that it came from
	// TextsOnly says that the caller has no permission to grant: of agents it may change texts alone.
	TextsOnly bool `json:"textsOnly,omitempty"`
}

// Acted is the data of acted. It has no bodies and no secrets.
type Acted struct {
	Action  string        `json:"action"`           // the request without "longshore.", such as quotas.put
	Target  string        `json:"target,omitempty"` // what it names: kind/name, the id, the number
	By      string        `json:"by,omitempty"`     // who the request says to be from
	Who     string        `json:"who,omitempty"`    // as Caller has it
	Remote  string        `json:"remote,omitempty"`
	Outcome string        `json:"outcome"` // done, or unknown when it failed in a way that may have changed something
	Code    messages.Code `json:"code,omitempty"`
}

// Outcomes of a request.
const (
	ActDone    = "done"
	ActUnknown = "unknown"
)

// Acted reads what a request of the operation is about, as far as it says so, and its tenant; empty: none.
func (o *Operation) Acted(request []byte) (a Acted, tenant string) {
	var r struct {
		Tenant   string      `json:"tenant"`
		Kind     string      `json:"kind"`
		Name     string      `json:"name"`
		ID       string      `json:"id"`
		Worker   string      `json:"worker"`
		Seq      json.Number `json:"seq"`
		By       string      `json:"by"`
		Schedule struct {
			Tenant string `json:"tenant"`
			Name   string `json:"name"`
		} `json:"schedule"`
	}
	_ = json.Unmarshal(request, &r) // the handler has decoded it strictly
	var parts []string
	name := r.Name
	if o.Untitled {
		name = ""
	}
	for _, part := range []string{r.Kind, name, r.Schedule.Name, r.ID, r.Worker, r.Seq.String()} {
		if part != "" {
			parts = append(parts, strict.Brief(part, messages.MaxEventName))
		}
	}
	tenant = r.Tenant
	if tenant == "" {
		tenant = r.Schedule.Tenant
	}
	if !strict.ValidToken(tenant) {
		tenant = ""
	}
	return Acted{Action: o.Name(), Target: strings.Join(parts, "/"), By: strict.Brief(r.By, messages.MaxEventName)}, tenant
}

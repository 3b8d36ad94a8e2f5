package messages

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// Grants narrow what the tools of an agent may reach. The operator of a worker decides what is reachable at all; a list here
// leaves of it what it names, an empty list leaves nothing, and an absent one leaves all, but for Writable.
type Grants struct {
	Hosts       []string `json:"hosts,omitzero"`       // that tools may call over HTTP: "api.example.com", "*.example.com", either with a port
	Methods     []string `json:"methods,omitzero"`     // of HTTP, in capitals
	Credentials []string `json:"credentials,omitzero"` // names of the operator's credentials
	Databases   []string `json:"databases,omitzero"`   // names of the operator's databases
	Writable    []string `json:"writable,omitempty"`   // of those, the ones that may be written; unlike the others it leaves nothing when it is absent
	KV          string   `json:"kv,omitempty"`         // who shares what tools keep under a key: KVRun (default), KVSession or KVTenant
}

// Values of Grants.KV.
const (
	KVRun     = "run"
	KVSession = "session"
	KVTenant  = "tenant"
)

// Limits of what an agent says about its tools.
const (
	maxGrants      = 256 // names in one list
	maxGrant       = 256 // bytes of a name
	maxToolRetries = 10
)

// GrantOf returns the grants of a definition; without any they narrow nothing.
func (d *Definition) GrantOf() Grants {
	if d.Grants == nil {
		return Grants{}
	}
	return *d.Grants
}

// Leaves reports whether a list of Grants leaves a name.
func Leaves(list []string, name string) bool { return list == nil || slices.Contains(list, name) }

func (g *Grants) check() error {
	for _, list := range []struct {
		field string
		names []string
	}{
		{"hosts", g.Hosts}, {"methods", g.Methods}, {"credentials", g.Credentials}, {"databases", g.Databases}, {"writable", g.Writable},
	} {
		if len(list.names) > maxGrants {
			return &FieldError{Field: "grants." + list.field, Reason: fmt.Sprintf("more than %d", maxGrants)}
		}
		for i, name := range list.names {
			field := fmt.Sprintf("grants.%s[%d]", list.field, i)
			if name == "" {
				return &FieldError{Field: field, Reason: "is empty"}
			}
			if err := strict.CheckText(field, name, maxGrant); err != nil {
				return err
			}
		}
	}
	for i, m := range g.Methods {
		if m != strings.ToUpper(m) || strings.ContainsFunc(m, func(r rune) bool { return r < 'A' || r > 'Z' }) {
			return &FieldError{Field: fmt.Sprintf("grants.methods[%d]", i), Reason: "must be a method in capitals, such as GET"}
		}
	}
	switch g.KV {
	case "", KVRun, KVSession, KVTenant:
		return nil
	default:
		return &FieldError{Field: "grants.kv", Reason: "must be run, session or tenant"}
	}
}

// checkTools checks the names of the agent's tools.
func (d *Definition) checkTools() error {
	if len(d.Tools) > maxTools {
		return &FieldError{Field: "tools", Reason: fmt.Sprintf("more than %d", maxTools)}
	}
	for i, name := range d.Tools {
		if err := strict.CheckToken(fmt.Sprintf("tools[%d]", i), name); err != nil {
			return err
		}
		if slices.Index(d.Tools, name) != i {
			return &FieldError{Field: fmt.Sprintf("tools[%d]", i), Reason: "named twice"}
		}
	}
	return nil
}

// checkGrants checks what the definition says of tools that it may call.
func (d *Definition) checkGrants() error {
	for _, name := range slices.Sorted(maps.Keys(d.ToolRetries)) {
		field := "toolRetries." + strict.Shown(name)
		if !slices.Contains(d.Tools, name) {
			return &FieldError{Field: field, Reason: "is none of the agent's tools"}
		}
		if n := d.ToolRetries[name]; n < 0 || n > maxToolRetries {
			return &FieldError{Field: field, Reason: fmt.Sprintf("must be 0 to %d", maxToolRetries)}
		}
	}
	if d.Grants != nil {
		if err := d.Grants.check(); err != nil {
			return err
		}
	}
	if d.Policy != nil {
		return d.Policy.Check("policy")
	}
	return nil
}

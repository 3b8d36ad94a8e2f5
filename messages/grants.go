package messages

import (
	"fmt"
	"maps"
	"net/netip"
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
	Programs    []string `json:"programs,omitzero"`    // that tools may run, by name
	Folders     []string `json:"folders,omitzero"`     // of the operator, that programs may read
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
		{"hosts", g.Hosts},
		{"methods", g.Methods},
		{"credentials", g.Credentials},
		{"databases", g.Databases},
		{"writable", g.Writable},
		{"programs", g.Programs},
		{"folders", g.Folders},
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

// HandDown narrows the definition of an agent to what a run of another one may hand to its child: the tools, the grants, the collections of
// memory and the approvals are those that both allow. Withheld are the tools that the child does not get.
func (d *Definition) HandDown(child Definition) (_ Definition, withheld []string) {
	has := func(name string) bool { return slices.Contains(d.Tools, name) }
	var left []string
	for _, name := range child.Tools {
		if has(name) {
			left = append(left, name)
		} else {
			withheld = append(withheld, name)
		}
	}
	child.Tools = left
	retries := map[string]int{}
	for name, n := range child.ToolRetries {
		if has(name) {
			retries[name] = n
		}
	}
	if child.ToolRetries = retries; len(retries) == 0 {
		child.ToolRetries = nil
	}
	if d.Grants != nil || child.Grants != nil {
		above, own := d.GrantOf(), child.GrantOf()
		both := above.both(&own)
		child.Grants = &both
	}
	child.Memory = child.Memory.within(d.Memory)
	child.Approve = d.approveBoth(&child)
	return child, withheld
}

// approveBoth has a call of a child wait for an approval when either agent would.
func (d *Definition) approveBoth(child *Definition) *Approve {
	if d.Approve == nil && child.Approve == nil {
		return nil
	}
	var above, own Approve
	if d.Approve != nil {
		above = *d.Approve
	}
	if child.Approve != nil {
		own = *child.Approve
	}
	out := own
	out.Always, out.Never = nil, nil
	for _, name := range child.Tools {
		switch {
		case slices.Contains(above.Always, name) || slices.Contains(own.Always, name):
			out.Always = append(out.Always, name)
		case slices.Contains(above.Never, name) && slices.Contains(own.Never, name):
			out.Never = append(out.Never, name)
		}
	}
	return &out
}

// both are the grants that two agents leave together.
func (g *Grants) both(other *Grants) Grants {
	return Grants{
		Hosts:       hostsOfBoth(g.Hosts, other.Hosts),
		Methods:     namesOfBoth(g.Methods, other.Methods),
		Credentials: namesOfBoth(g.Credentials, other.Credentials),
		Databases:   namesOfBoth(g.Databases, other.Databases),
		Writable:    onBoth(g.Writable, other.Writable),
		Programs:    namesOfBoth(g.Programs, other.Programs),
		Folders:     namesOfBoth(g.Folders, other.Folders),
		KV:          narrowest(g.KV, other.KV),
	}
}

// namesOfBoth is what is on two lists of Grants, of which a nil one leaves everything.
func namesOfBoth(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return append([]string{}, onBoth(a, b)...) // an empty list is not an absent one
}

func onBoth(a, b []string) (both []string) {
	for _, name := range a {
		if slices.Contains(b, name) {
			both = append(both, name)
		}
	}
	return both
}

func narrowest(a, b string) string {
	order := []string{"", KVRun, KVSession, KVTenant} // an absent one is the narrowest
	if slices.Index(order, a) < slices.Index(order, b) {
		return a
	}
	return b
}

// hostsOfBoth are the hosts on two lists: of each pair what both name.
func hostsOfBoth(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := []string{}
	for _, x := range a {
		for _, y := range b {
			if host, ok := hostOfBoth(x, y); ok && !slices.Contains(out, host) && len(out) < maxGrants {
				out = append(out, host)
			}
		}
	}
	return out
}

func hostOfBoth(a, b string) (string, bool) {
	nameA, portA := hostAndPort(a)
	nameB, portB := hostAndPort(b)
	if portA != "" && portB != "" && portA != portB {
		return "", false
	}
	name := nameA
	switch {
	case nameA == nameB:
	case below(nameA, nameB):
	case below(nameB, nameA):
		name = nameB
	default:
		return "", false
	}
	if port := portA + portB; port != "" {
		if portA == portB {
			port = portA
		}
		return name + ":" + port, true
	}
	return name, true
}

// hostAndPort splits what a list of hosts holds. The name of an IPv6 address keeps its brackets.
func hostAndPort(s string) (name, port string) {
	s = strings.ToLower(strings.TrimSpace(s))
	at := strings.LastIndexByte(s, ':')
	if at < 0 || strings.HasSuffix(s, "]") || !strings.HasPrefix(s, "[") && strings.Count(s, ":") > 1 {
		return s, ""
	}
	return s[:at], s[at+1:]
}

// below reports whether a name, or all that "*.name" stands for, is below what a "*.name" stands for. An address never is.
func below(name, wild string) bool {
	parent, ok := strings.CutPrefix(wild, "*")
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil || !ok {
		return false
	}
	return strings.HasSuffix(name, parent) && len(name) > len(parent)
}

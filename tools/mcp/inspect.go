package mcp

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// State is how a tool of a server stands to the lock file.
type State string

// States.
const (
	Pinned  State = "pinned"  // offered
	New     State = "new"     // not in the lock file
	Changed State = "changed" // the server defines it otherwise than the lock file; disabled
	Gone    State = "gone"    // the server no longer has it; disabled
	Refused State = "refused" // cannot be offered, and Why says why
)

// Standing is a tool of a server.
type Standing struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool"` // as the server calls it
	Name   string          `json:"name,omitempty"`
	State  State           `json:"state"`
	Effect messages.Effect `json:"effect,omitempty"`
	Why    string          `json:"why,omitempty"`

	pin Pin // of a tool that the server has and that can be offered
}

// Inspect connects to one server, as a worker would, and compares its tools with the lock file. The texts are safe to print.
func Inspect(ctx context.Context, cfg Config, lock *Lock, name string, d Deps) ([]Standing, error) {
	runtime.LockOSThread() // a process is told to die when the thread that started it does
	defer runtime.UnlockOSThread()
	s, err := newServer(name, cfg.Servers[name], d)
	if err != nil {
		return nil, strict.Under("servers."+name, err)
	}
	n, err := s.connect(ctx)
	if err != nil {
		return nil, errors.New(s.clean(err.Error()))
	}
	defer n.close()
	pins := lock.Servers[name]
	out := map[string]Standing{}
	_, refused := n.definitions()
	for _, t := range n.found {
		tool := strict.Shown(t.Name)
		if s.cfg.Tools != nil && !slices.Contains(s.cfg.Tools, t.Name) {
			continue
		}
		st := Standing{Server: name, Tool: tool, State: New, Effect: s.effect(t.Name)}
		pin, err := define(name, t)
		if err == nil && refused[t.Name] != "" {
			err = errors.New(refused[t.Name])
		}
		if err != nil {
			st.State, st.Why = Refused, err.Error()
			out[tool] = st
			continue
		}
		st.Name, _ = toldName(name, t.Name) // which define made too
		if was, ok := pins[t.Name]; ok {
			if st.State = Changed; was.SHA256 == pin.SHA256 {
				st.State, pin = Pinned, was
			}
		}
		st.pin = pin
		out[tool] = st
	}
	for tool := range pins {
		if _, ok := out[strict.Shown(tool)]; !ok {
			out[strict.Shown(tool)] = Standing{Server: name, Tool: strict.Shown(tool), State: Gone}
		}
	}
	for _, tool := range s.cfg.Tools {
		if _, ok := out[strict.Shown(tool)]; !ok {
			out[strict.Shown(tool)] = Standing{Server: name, Tool: strict.Shown(tool), State: Refused, Why: n.lacks(tool)}
		}
	}
	var all []Standing
	for _, tool := range slices.Sorted(maps.Keys(out)) {
		all = append(all, out[tool])
	}
	return all, nil
}

// lacks says that a server does not have a tool, and which it probably is.
func (n *session) lacks(tool string) string {
	var has []string
	for _, t := range n.found {
		has = append(has, t.Name)
	}
	slices.Sort(has)
	if near := strict.Nearest(tool, has); near != "" {
		return "the server has no tool of this name: did you mean " + strict.Shown(near) + "?"
	}
	if len(has) == 0 {
		return "the server has no tools"
	}
	return strict.Clip("the server has no tool of this name; it has "+strict.Shown(strings.Join(has, ", ")), 256)
}

// Pin writes what servers define now into a lock, in place of what stood there about those servers. What a person wrote there in
// place of a definition that has not changed stays.
func (l *Lock) Pin(server string, all []Standing) {
	pins := map[string]Pin{}
	for _, st := range all {
		if st.pin.SHA256 != "" {
			pins[st.Tool] = st.pin
		}
	}
	if l.Servers == nil {
		l.Servers = map[string]map[string]Pin{}
	}
	l.Servers[server] = pins
}

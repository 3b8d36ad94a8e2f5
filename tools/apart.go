package tools

import (
	"encoding/json"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Resourcer is a Tool that says what a call is about, so that calls which cannot disturb each other run together. The key
// is a path: what is below a key is a part of what that stands for, as "db/users/7" is of "db/users". Tools that share a
// resource use the same keys for it. An empty key says that the call may be about anything.
//
// Calls of tools with the effect read always run together. A call of an idempotent tool runs in parallel with another that reads or
// is idempotent when both have keys and neither is that of the other or below it. A call with the effect once runs alone.
type Resourcer interface {
	// Resource is pure. The arguments fit the schema of Spec.
	Resource(args json.RawMessage) string
}

// Claim is what a call needs to itself.
type Claim struct {
	effect messages.Effect
	key    string
}

// Claim of a call that passed Check, with the arguments that Check returned; without them it may be about anything.
func (s *Set) Claim(name string, args json.RawMessage) Claim {
	c := Claim{effect: s.Effect(name)}
	if m := s.members[name]; m != nil && len(args) > 0 && c.effect != messages.EffectOnce {
		if r, ok := m.tool.(Resourcer); ok {
			c.key = strings.Trim(r.Resource(args), "/")
		}
	}
	return c
}

// Beside reports whether two calls may run at the same time.
func (c Claim) Beside(d Claim) bool {
	switch {
	case c.effect == messages.EffectOnce || d.effect == messages.EffectOnce:
		return false
	case c.effect == messages.EffectRead && d.effect == messages.EffectRead:
		return true
	default:
		return c.key != "" && d.key != "" && !within(c.key, d.key) && !within(d.key, c.key)
	}
}

// within reports whether a key is another one or below it.
func within(key, of string) bool {
	rest, ok := strings.CutPrefix(key, of)
	return ok && (rest == "" || rest[0] == '/')
}

package tools

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Set is the choice of tools that a worker offers. Safe for concurrent use.
type Set struct {
	// Log gets the stack of a tool that panicked. Set it before the first Call; nil discards it.
	Log *slog.Logger
	// Timeout is that of tools without one of their own. Set it before the first Call; 0 is DefaultTimeout.
	Timeout time.Duration
	// Retries are the operator's policies by the names of tools. Set them before the first Call.
	Retries map[string]RetryPolicy

	members map[string]*member // by name, fixed
	names   []string           // sorted
}

// member is a tool with what is known about it for good.
type member struct {
	tool    Tool
	spec    messages.ToolSpec
	schema  *schema
	timeout time.Duration // its own; 0: that of the set
	retry   Retry         // its own; zero: none

	calls, nanos   atomic.Int64 // that were answered, and how long they took together
	bytes, retries atomic.Uint64
}

// NewSet refuses a tool whose name is malformed or taken, and one whose spec no call could be checked by: the schema
// must be of an object, resolve, and be written out without references.
func NewSet(ts ...Tool) (*Set, error) {
	s := &Set{members: make(map[string]*member, len(ts))}
	for i, t := range ts {
		if t == nil {
			return nil, fmt.Errorf("tool %d is nil", i)
		}
		m, err := newMember(t)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", strict.Clip(t.Spec().Name, maxShown), err)
		}
		if s.members[m.spec.Name] != nil {
			return nil, fmt.Errorf("tool %q: the name is taken by another tool", m.spec.Name)
		}
		s.members[m.spec.Name] = m
	}
	s.names = slices.Sorted(maps.Keys(s.members))
	return s, nil
}

func newMember(t Tool) (*member, error) {
	m := &member{tool: t, spec: t.Spec()}
	if !strict.ValidToken(m.spec.Name) {
		return nil, errors.New("the name must be 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	if strings.TrimSpace(m.spec.Description) == "" {
		return nil, errors.New("the description is empty: a model chooses by it")
	}
	switch m.spec.Effect {
	case messages.EffectRead, messages.EffectIdempotent, messages.EffectOnce:
	default:
		return nil, fmt.Errorf("effect %q is not one of read, idempotent, once", m.spec.Effect)
	}
	if own, ok := t.(Timeouter); ok {
		if m.timeout = own.Timeout(); m.timeout <= 0 {
			return nil, fmt.Errorf("timeout %v is not more than zero", m.timeout)
		}
	}
	if own, ok := t.(Retrier); ok {
		m.retry = own.Retry()
	}
	var err error
	if m.schema, err = newSchema(m.spec.InputSchema); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	return m, nil
}

// Specs are the specs of the named tools, in that order. An unknown name is an error that lists the known ones. The
// schemas must not be modified.
func (s *Set) Specs(names []string) ([]messages.ToolSpec, error) {
	specs := make([]messages.ToolSpec, len(names))
	for i, name := range names {
		m := s.members[name]
		if m == nil {
			return nil, fmt.Errorf("tool %q is unknown; known: %s", strict.Clip(name, maxShown), orNone(s.names))
		}
		specs[i] = m.spec
	}
	return specs, nil
}

// Has reports whether there is a tool of that name that is present.
func (s *Set) Has(name string) bool {
	return s != nil && s.members[name] != nil && s.members[name].present()
}

// Names are those of all tools that are present, sorted.
func (s *Set) Names() []string {
	return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return !s.members[name].present() })
}

// Effect of a tool. That of an unknown tool is once: nothing may be assumed about it.
func (s *Set) Effect(name string) messages.Effect {
	if m := s.members[name]; m != nil {
		return m.spec.Effect
	}
	return messages.EffectOnce
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// enough is how many calls of a tool say how long one takes.
const enough = 3

// Mean is how long the calls of a tool have taken that this Set has made, on average; false before there are a few.
func (s *Set) Mean(name string) (time.Duration, bool) {
	m := s.members[name]
	if m == nil {
		return 0, false
	}
	n := m.calls.Load()
	if n < enough {
		return 0, false
	}
	return time.Duration(m.nanos.Load() / n), true
}

// Usage is what calls of a tool have amounted to.
type Usage struct {
	Bytes   uint64 // of the text that models were told, before secrets are taken out of it
	Retries uint64 // attempts after the first
}

// Usage is that of the calls that this Set has made, for every tool by name.
func (s *Set) Usage() map[string]Usage {
	all := make(map[string]Usage, len(s.members))
	for name, m := range s.members {
		all[name] = Usage{m.bytes.Load(), m.retries.Load()}
	}
	return all
}

package browser_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Kinds are the kinds of controls that the parts of a test met.
type kinds struct {
	mu       sync.Mutex
	seen     map[string]string // by kind, what was done when it was first seen
	done     map[string]bool   // a key has operated it
	finished int               // parts that came to their end
}

func newKinds() *kinds { return &kinds{seen: map[string]string{}, done: map[string]bool{}} }

// excused are kinds that no part operates, each with the reason.
var excused = map[string]string{
	"/compare/… › button Change the arguments": "it is part of what decides about a call, which is operated on the page of a run and in the inbox",
	"/compare/… › button Deny":                 "the same",
}

// note adds what a page tells.
func (s *kinds) note(deed string, seen, done []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range seen {
		if _, known := s.seen[kind]; !known {
			s.seen[kind] = deed
		}
	}
	for _, kind := range done {
		s.done[kind] = true
	}
}

// missing are the kinds that were seen, and neither operated nor excused.
func (s *kinds) missing() []string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(s.seen)) {
		if _, is := excused[kind]; !is && !s.done[kind] {
			list = append(list, kind+", seen when "+s.seen[kind])
		}
	}
	return list
}

// TestTheConsoleByKeyboard operates the console by keyboard alone. Each part checks the effects of what it does. Together they operate every kind
// of control that any of them sees.
func TestTheConsoleByKeyboard(t *testing.T) {
	parts := map[string]func(t *testing.T, met *kinds){
		"Runs": runsByKeyboard, "Agents": agentsByKeyboard, "Kept": keptByKeyboard, "Operating": operatingByKeyboard, "Keys": keysByKeyboard,
		"LiveLists": liveListsByKeyboard, "Views": viewsByKeyboard, "Links": linksByKeyboard,
	}
	met := newKinds()
	t.Cleanup(func() { // after all parts, which run in parallel
		if met.finished < len(parts) {
			t.Logf("whether every kind of control is operated is not judged: %d of %d parts ran to their end", met.finished, len(parts))
			return
		}
		if missing := met.missing(); len(missing) > 0 {
			t.Errorf("no key has operated these kinds of controls; add a deed that does, or excuse them with a reason:\n%s", strings.Join(missing, "\n"))
		}
	})
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			part(t, met)
			met.mu.Lock()
			defer met.mu.Unlock()
			met.finished++
		})
	}
}

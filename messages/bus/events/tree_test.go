package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strconv"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// told is an event of a run by its name and data.
func told(t *testing.T, run string, n int, name string, data any) messages.Event {
	t.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return messages.Event{Type: "longshore." + name + ".v1", Subject: run, Sequence: strconv.Itoa(n), Data: b}
}

// life is all events of a run: it begins as a child of another run, delegates to others, and ends.
func life(t *testing.T, run, parent string, children ...string) []messages.Event {
	t.Helper()
	started := messages.RunStarted{}
	if parent != "" {
		started.Parent = &messages.ParentRef{Run: parent}
	}
	var to messages.DelegatedData
	for _, c := range children {
		to.Children = append(to.Children, messages.ChildRef{Run: c})
	}
	return []messages.Event{
		told(t, run, 1, messages.EventRunQueued, messages.RunQueued{}), told(t, run, 2, messages.EventRunStarted, started),
		told(t, run, 3, messages.EventDelegated, to), told(t, run, 4, messages.EventRunFinished, messages.RunFinished{}),
	}
}

// A tree has the runs that were begun as children, not one that has the id of a child, nor one that is no run; a run that names a run
// above it goes round in no circle. A reader may leave at any event, and an error ends all.
func TestTree(t *testing.T) {
	t.Parallel()
	lives := map[string][]messages.Event{
		"root":     life(t, "root", "", "child", "stranger", "not a token", "root"),
		"child":    life(t, "child", "root", "deep", "root", "child"),
		"stranger": life(t, "stranger", "another", "elsewhere"),
		"deep":     life(t, "deep", "child"),
	}
	broken := errors.New("broken")
	watch := func(_ context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
		return func(yield func(messages.Event, error) bool) {
			for _, e := range lives[run.Run] {
				if !yield(e, nil) {
					return
				}
			}
			if lives[run.Run] == nil {
				yield(messages.Event{}, broken)
			}
		}
	}
	tree := events.Tree{Watch: watch, Over: func(context.Context, messages.Ref) (bool, error) { return true, nil }}
	root := messages.Ref{Tenant: "acme", Run: "root"}
	got := map[string]int{}
	for e, err := range tree.Events(t.Context(), root) {
		if err != nil {
			t.Fatal(err)
		}
		got[e.Subject]++
	}
	if len(got) != 3 || got["root"] != 4 || got["child"] != 4 || got["deep"] != 4 {
		t.Errorf("events of each run: %v", got)
	}
	for leave := range 12 {
		n := 0
		for range tree.Events(t.Context(), root) {
			if n++; n > leave {
				break
			}
		}
	}
	lives["deep"] = nil
	var errs []error
	for _, err := range tree.Events(t.Context(), root) {
		errs = append(errs, err)
	}
	if at := slices.IndexFunc(errs, func(err error) bool { return err != nil }); at != len(errs)-1 || !errors.Is(errs[at], broken) {
		t.Errorf("%v", errs)
	}
}

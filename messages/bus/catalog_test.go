package bus_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

func TestAgentRevisions(t *testing.T) {
	b, _ := openNew(t)
	ctx := ctxFor(t)
	if _, err := b.AgentHistory(ctx, "writer"); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("history of none: %v", err)
	}
	apply := func(text, by string, ifRevision *uint64) (messages.Change, bool, error) {
		return b.ApplyAgent(ctx, messages.Definition{Name: "writer", Instructions: text}, by, ifRevision)
	}
	if _, _, err := apply("one", "ann", new(uint64(7))); !errors.Is(err, messages.ErrRevision) {
		t.Errorf("of a revision that never was: %v", err)
	}
	first, changed, err := apply("one", "ann\r\nEvil: x", new(uint64(0)))
	if err != nil || !changed || first.By != "ann  Evil: x" || first.At.IsZero() {
		t.Fatalf("%+v %v %v", first, changed, err)
	}
	if same, changed, err := apply("one", "bob", nil); err != nil || changed || same.Revision != first.Revision || same.By != first.By {
		t.Errorf("the same again: %+v %v %v", same, changed, err)
	}
	if _, _, err := apply("two", "", new(uint64(0))); !errors.Is(err, messages.ErrRevision) {
		t.Errorf("there is one: %v", err)
	}
	second, _, err := apply("two", "", &first.Revision)
	if err != nil || second.By != "unknown" {
		t.Fatalf("%+v %v", second, err)
	}
	old, err := b.AgentAt(ctx, "writer", first.Revision)
	if err != nil || old.Agent.Instructions != "one" || old.Agent.Revision != first.Revision {
		t.Errorf("%+v %v", old, err)
	}
	for name, revision := range map[string]uint64{"other": first.Revision, "writer": 99} {
		if _, err := b.AgentAt(ctx, name, revision); !errors.Is(err, messages.ErrUnknownAgent) {
			t.Errorf("%s %d: %v", name, revision, err)
		}
	}
	if _, err := b.DeleteAgent(ctx, messages.CatalogDelete{Name: "writer", IfRevision: &first.Revision}); !errors.Is(err, messages.ErrRevision) {
		t.Errorf("delete an old one: %v", err)
	}
	if _, err := b.DeleteAgent(ctx, messages.CatalogDelete{Name: "writer", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.DeleteAgent(ctx, messages.CatalogDelete{Name: "writer"}); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("delete twice: %v", err)
	}
	if _, err := b.Agent(ctx, "writer"); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("it is gone: %v", err)
	}
	if _, _, err := apply("three", "ann", new(uint64(0))); err != nil {
		t.Errorf("anew: %v", err)
	}
	changes, err := b.AgentHistory(ctx, "writer")
	var story []string
	for _, c := range changes {
		story = append(story, fmt.Sprint(c.By, c.Deleted))
	}
	if got := strings.Join(story, ","); err != nil || got != "annfalse,anntrue,unknownfalse,ann  Evil: xfalse" {
		t.Errorf("%s %v", got, err)
	}
	if gone, err := b.AgentAt(ctx, "writer", changes[1].Revision); err != nil || gone.Agent != nil || !gone.Change.Deleted {
		t.Errorf("%+v %v", gone, err)
	}
}

func TestOneOfManyWritersWins(t *testing.T) {
	b, _ := openNew(t)
	ctx := ctxFor(t)
	var wins atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			put := messages.PromptPut{Prompt: messages.Prompt{ID: "p", Text: fmt.Sprint("text ", i), Author: strconv.Itoa(i)}, IfVersion: new(uint64(0))}
			switch _, changed, err := b.PutPrompt(ctx, put); {
			case err == nil && changed:
				wins.Add(1)
			case !errors.Is(err, messages.ErrRevision):
				t.Errorf("writer %d: %v, %v", i, changed, err)
			}
		})
	}
	wg.Wait()
	if n := wins.Load(); n != 1 {
		t.Errorf("%d writers won", n)
	}
	for i := range 4 { // without a condition all of them are stored
		wg.Go(func() {
			if _, _, err := b.PutPrompt(ctx, messages.PromptPut{Prompt: messages.Prompt{ID: "p", Text: fmt.Sprint("again ", i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if changes, err := b.PromptHistory(ctx, "p"); err != nil || len(changes) != 5 {
		t.Errorf("%d versions, %v", len(changes), err)
	}
}

func TestPromptVersions(t *testing.T) {
	b, _ := openNew(t)
	ctx := ctxFor(t)
	put := func(p messages.Prompt) messages.Prompt {
		t.Helper()
		out, _, err := b.PutPrompt(ctx, messages.PromptPut{Prompt: p})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one := put(messages.Prompt{ID: "greet", Text: "Hi {name}", Tags: []string{"a"}, Author: "ann"})
	two := put(messages.Prompt{ID: "greet", Text: "Hello {name}", Tags: []string{"b"}, Author: "bob", Name: "Greeting"})
	put(messages.Prompt{ID: "other", Text: "x"})
	if got, err := b.Prompt(ctx, "greet", 0); err != nil || got.Text != "Hello {name}" || got.Version != two.Version || got.Author != "bob" || got.CreatedAt.IsZero() {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := b.Prompt(ctx, "greet", one.Version); err != nil || got.Text != "Hi {name}" || got.Author != "ann" {
		t.Errorf("%+v %v", got, err)
	}
	for filter, want := range map[messages.PromptFilter]int{{}: 2, {Tag: "b"}: 1, {Tag: "a"}: 0, {Name: "Greet"}: 1, {Name: "e"}: 2, {Tag: "b", Name: "other"}: 0} {
		if list, err := b.Prompts(ctx, filter); err != nil || len(list) != want || len(list) > 0 && list[0].Text != "" {
			t.Errorf("%+v: %+v %v", filter, list, err)
		}
	}
	if _, err := b.DeletePrompt(ctx, messages.CatalogDelete{Name: "greet"}); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"gone":         func() error { _, err := b.Prompt(ctx, "greet", 0); return err },
		"hostile":      func() error { _, err := b.Prompt(ctx, ">", 0); return err },
		"of another":   func() error { _, err := b.Prompt(ctx, "other", one.Version); return err },
		"delete twice": func() error { _, err := b.DeletePrompt(ctx, messages.CatalogDelete{Name: "greet"}); return err },
		"history":      func() error { _, err := b.PromptHistory(ctx, "never"); return err },
	} {
		if err := do(); !errors.Is(err, messages.ErrUnknownPrompt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := b.Prompt(ctx, "greet", one.Version); err != nil || got.Text != "Hi {name}" {
		t.Errorf("a run that was begun may still look at its version: %+v %v", got, err)
	}
	for name, p := range map[string]messages.Prompt{
		"id": {ID: "a.b", Text: "x"}, "engine": {ID: "a", Engine: "jinja", Text: "x"}, "text": {ID: "a"},
		"metadata": {ID: "a", Text: "x", Metadata: []byte(`[]`)}, "tags[0]": {ID: "a", Text: "x", Tags: []string{"*"}},
	} {
		var field *messages.FieldError
		if _, _, err := b.PutPrompt(ctx, messages.PromptPut{Prompt: p}); !errors.As(err, &field) || field.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnnouncements(t *testing.T) {
	b, _ := openNew(t)
	ctx := ctxFor(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			name := []string{messages.EventAgentApplied, messages.EventPromptChanged}[i%2]
			if err := b.Announce(ctx, name, messages.Change{Name: "x", Revision: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var last uint64
	count := 0
	for e := range values(t, b.Events(ctx, bus.EveryEvent, time.Time{})) {
		if e.Number() <= last || e.Subject != messages.NoRun || e.Source != "/tenants/default" {
			t.Errorf("%+v after %d", e, last)
		}
		last = e.Number()
		count++
	}
	if count != 6 {
		t.Errorf("%d events", count)
	}
}

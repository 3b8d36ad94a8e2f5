package catalog_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
)

func TestAgentRevisions(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	cat := catalog.New(b)
	ctx := bustest.Context(t)
	if _, err := cat.AgentHistory(ctx, "writer"); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("history of none: %v", err)
	}
	apply := func(text, by string, ifRevision *uint64) (control.Change, bool, error) {
		return cat.ApplyAgent(ctx, messages.Definition{Name: "writer", Instructions: text}, by, ifRevision)
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
	old, err := cat.AgentAt(ctx, "writer", first.Revision)
	if err != nil || old.Agent.Instructions != "one" || old.Agent.Revision != first.Revision {
		t.Errorf("%+v %v", old, err)
	}
	for name, revision := range map[string]uint64{"other": first.Revision, "writer": 99} {
		if _, err := cat.AgentAt(ctx, name, revision); !errors.Is(err, messages.ErrUnknownAgent) {
			t.Errorf("%s %d: %v", name, revision, err)
		}
	}
	if _, err := cat.DeleteAgent(ctx, control.CatalogDelete{Name: "writer", IfRevision: &first.Revision}); !errors.Is(err, messages.ErrRevision) {
		t.Errorf("delete an old one: %v", err)
	}
	if _, err := cat.DeleteAgent(ctx, control.CatalogDelete{Name: "writer", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := cat.DeleteAgent(ctx, control.CatalogDelete{Name: "writer"}); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("delete twice: %v", err)
	}
	if _, err := cat.Agent(ctx, "writer"); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("it is gone: %v", err)
	}
	if _, _, err := apply("three", "ann", new(uint64(0))); err != nil {
		t.Errorf("anew: %v", err)
	}
	changes, err := cat.AgentHistory(ctx, "writer")
	var story []string
	for _, c := range changes {
		story = append(story, fmt.Sprint(c.By, c.Deleted))
	}
	if got := strings.Join(story, ","); err != nil || got != "annfalse,anntrue,unknownfalse,ann  Evil: xfalse" {
		t.Errorf("%s %v", got, err)
	}
	if gone, err := cat.AgentAt(ctx, "writer", changes[1].Revision); err != nil || gone.Agent != nil || !gone.Change.Deleted {
		t.Errorf("%+v %v", gone, err)
	}
}

func TestOneOfManyWritersWins(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	cat := catalog.New(b)
	ctx := bustest.Context(t)
	var wins atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			put := control.PromptPut{Prompt: messages.Prompt{ID: "p", Text: fmt.Sprint("text ", i), Author: strconv.Itoa(i)}, IfVersion: new(uint64(0))}
			switch _, changed, err := cat.PutPrompt(ctx, put); {
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
			if _, _, err := cat.PutPrompt(ctx, control.PromptPut{Prompt: messages.Prompt{ID: "p", Text: fmt.Sprint("again ", i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if changes, err := cat.PromptHistory(ctx, "p"); err != nil || len(changes) != 5 {
		t.Errorf("%d versions, %v", len(changes), err)
	}
}

func TestPromptVersions(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	cat := catalog.New(b)
	ctx := bustest.Context(t)
	put := func(p messages.Prompt) messages.Prompt {
		t.Helper()
		out, _, err := cat.PutPrompt(ctx, control.PromptPut{Prompt: p})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one := put(messages.Prompt{ID: "greet", Text: "Hi {name}", Tags: []string{"a"}, Author: "ann"})
	two := put(messages.Prompt{ID: "greet", Text: "Hello {name}", Tags: []string{"b"}, Author: "bob", Name: "Greeting"})
	put(messages.Prompt{ID: "other", Text: "x"})
	if got, err := cat.Prompt(ctx, "greet", 0); err != nil || got.Text != "Hello {name}" || got.Version != two.Version || got.Author != "bob" || got.CreatedAt.IsZero() {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := cat.Prompt(ctx, "greet", one.Version); err != nil || got.Text != "Hi {name}" || got.Author != "ann" {
		t.Errorf("%+v %v", got, err)
	}
	for filter, want := range map[control.PromptFilter]int{{}: 2, {Tag: "b"}: 1, {Tag: "a"}: 0, {Name: "Greet"}: 1, {Name: "e"}: 2, {Tag: "b", Name: "other"}: 0} {
		if list, err := cat.Prompts(ctx, filter); err != nil || len(list) != want || len(list) > 0 && list[0].Text != "" {
			t.Errorf("%+v: %+v %v", filter, list, err)
		}
	}
	if _, err := cat.DeletePrompt(ctx, control.CatalogDelete{Name: "greet"}); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"gone":       func() error { _, err := cat.Prompt(ctx, "greet", 0); return err },
		"hostile":    func() error { _, err := cat.Prompt(ctx, ">", 0); return err },
		"of another": func() error { _, err := cat.Prompt(ctx, "other", one.Version); return err },
		"delete twice": func() error {
			_, err := cat.DeletePrompt(ctx, control.CatalogDelete{Name: "greet"})
			return err
		},
		"history": func() error { _, err := cat.PromptHistory(ctx, "never"); return err },
	} {
		if err := do(); !errors.Is(err, messages.ErrUnknownPrompt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := cat.Prompt(ctx, "greet", one.Version); err != nil || got.Text != "Hi {name}" {
		t.Errorf("a run that was begun may still look at its version: %+v %v", got, err)
	}
	for name, p := range map[string]messages.Prompt{
		"id": {ID: "a.b", Text: "x"}, "engine": {ID: "a", Engine: "jinja", Text: "x"}, "text": {ID: "a"},
		"metadata": {ID: "a", Text: "x", Metadata: []byte(`[]`)}, "tags[0]": {ID: "a", Text: "x", Tags: []string{"*"}},
	} {
		var field *messages.FieldError
		if _, _, err := cat.PutPrompt(ctx, control.PromptPut{Prompt: p}); !errors.As(err, &field) || field.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnnouncements(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	ctx := bustest.Context(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			name := []string{control.EventAgentApplied, control.EventPromptChanged}[i%2]
			if err := events.New(b).Announce(ctx, name, control.Change{Name: "x", Revision: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var last uint64
	count := 0
	for e := range bustest.Values(t, events.New(b).Events(ctx, bus.EveryEvent, time.Time{})) {
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

func TestAgents(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	cat := catalog.New(b)
	def := messages.Definition{Name: "writer", Instructions: "Write.", Tools: []string{"read_file"}}
	rev, changed, err := cat.PutAgent(bustest.Context(t), def)
	if err != nil || !changed || rev != 1 {
		t.Fatalf("got %d, %v, %v", rev, changed, err)
	}
	def.Revision = 99
	if again, changed, err := cat.PutAgent(bustest.Context(t), def); err != nil || changed || again != rev {
		t.Errorf("the same again: got %d, %v, %v", again, changed, err)
	}
	fresh, err := bus.Open(bustest.Context(t), bustest.Connect(t, s), bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	freshCat := catalog.New(fresh)
	got, err := freshCat.Agent(bustest.Context(t), "writer")
	want := def
	want.SetDefaults()
	want.Revision = rev
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	before := nc.Stats().OutMsgs
	if _, err := cat.Agent(bustest.Context(t), "writer"); err != nil || nc.Stats().OutMsgs != before {
		t.Errorf("got %v and %d requests, want none", err, nc.Stats().OutMsgs-before)
	}
	if d, err := cat.Agent(bustest.Context(t), messages.DefaultAgent); err != nil || d.Revision != 0 || len(d.Tools) == 0 {
		t.Errorf("built in: got %+v, %v", d, err)
	}
	if d, err := cat.Agent(bustest.Context(t), messages.LiteAgent); err != nil || d.Planner != messages.PlannerJSON || *d.Temperature != 0 {
		t.Errorf("built in: got %+v, %v", d, err)
	}
	for _, name := range []string{"unknown", "*", "a.b", ""} {
		if _, err := cat.Agent(bustest.Context(t), name); !errors.Is(err, messages.ErrUnknownAgent) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if _, err := cat.Agent(bustest.Context(t), "unknown"); !strings.Contains(fmt.Sprint(err), `"unknown"; known: default, run-lite, writer`) {
		t.Errorf("got %v", err)
	}
	def.Instructions = "Write well."
	if rev, changed, err = cat.PutAgent(bustest.Context(t), def); err != nil || !changed || rev != 2 {
		t.Errorf("got %d, %v, %v", rev, changed, err)
	}
	if d, err := cat.Agent(bustest.Context(t), "writer"); err != nil || d.Revision != 2 || d.Instructions != def.Instructions {
		t.Errorf("after an edit: got %+v, %v", d, err)
	}
	kv, err := bustest.NewJetStream(t, nc).KeyValue(bustest.Context(t), bus.BucketAgents) // it is an ordinary bucket
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(bustest.Context(t), "writer"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := freshCat.PutAgent(bustest.Context(t), messages.Definition{Name: "x y"}); err == nil {
		t.Error("a bad name: got no error")
	}
	if all, err := cat.Agents(bustest.Context(t)); err != nil || len(all) != 2 || all[0].Name != messages.DefaultAgent || all[1].Name != messages.LiteAgent {
		t.Errorf("after the removal: got %+v, %v", all, err)
	}
	if _, err := kv.Put(bustest.Context(t), "broken", []byte(`{"name":"broken","surprise":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := cat.Agent(bustest.Context(t), "broken"); err == nil || !strings.Contains(err.Error(), "surprise") {
		t.Errorf("an unknown field: got %v", err)
	}
}

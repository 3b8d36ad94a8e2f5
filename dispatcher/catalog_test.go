package dispatcher_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// newFleet is a whole fleet whose model answers everything.
func newFleet(t *testing.T) *dispatcher.Client {
	t.Helper()
	script, err := scripted.Parse([]byte(`{scenes: [{match: "", turns: [{text: done}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 4, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: scripted.New(script)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestRunsHoldThePromptThatTheyBeganWith(t *testing.T) {
	c := newFleet(t)
	ctx := t.Context()
	first, err := c.Prompts().Put(ctx, messages.Prompt{ID: "review", Text: "Be {tone} about {what}.", RequiredVars: []string{"tone"}, Author: "ann"}, new(uint64(0)))
	if err != nil || first.Version == 0 || first.Author != "ann" || first.CreatedAt == nil {
		t.Fatalf("%+v %v", first, err)
	}
	def := messages.Definition{Name: "reviewer", Prompt: &messages.PromptRef{ID: "review", Vars: json.RawMessage(`{"tone":"kind"}`)}}
	applied, err := c.Agents().Apply(ctx, def, "ann", new(uint64(0)))
	if err != nil || !applied.Changed {
		t.Fatalf("%+v %v", applied, err)
	}
	work := func(context string) *messages.AgentResult {
		t.Helper()
		id, err := c.Submit(ctx, messages.Task{Agent: "reviewer", Input: messages.TextInput("go"), Context: json.RawMessage(context)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Wait(ctx, dispatcher.Run(id))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := work(`{"what":"tests","tone":"rude"}`); !r.Success {
		t.Errorf("%+v", r.Error)
	}
	if r := work(`{}`); r.Success || r.Error.Code != messages.CodeInvalidInput || !strings.Contains(r.Error.Message, "missing: what") {
		t.Errorf("a variable is missing: %+v", r.Error)
	}
	if _, err := c.Prompts().Delete(ctx, control.CatalogDelete{Name: "review", IfRevision: &first.Version}); err != nil {
		t.Fatal(err)
	}
	if r := work(`{"what":"tests"}`); r.Success || r.Error.Code != messages.CodeInvalidInput || !strings.Contains(r.Error.Message, "unknown prompt") {
		t.Errorf("the prompt is gone: %+v", r.Error)
	}
	if _, err := c.Agents().Delete(ctx, control.CatalogDelete{Name: "reviewer", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second) // the client remembers what it saw for two seconds
	for {
		_, err := c.Submit(ctx, messages.Task{Agent: "reviewer", Input: messages.TextInput("go")})
		if errors.Is(err, dispatcher.ErrUnknownAgent) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("submit to a deleted agent: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	var names []string
	for e, err := range c.Runs().Recent(ctx, messages.DefaultTenant, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Subject == messages.NoRun {
			var change control.Change
			if err := json.Unmarshal(e.Data, &change); err != nil || change.By == "" {
				t.Errorf("%s: %v", e.Data, err)
			}
			names = append(names, e.Name())
		}
	}
	if got := strings.Join(names, " "); got != "prompt_changed agent_applied prompt_changed agent_applied" {
		t.Errorf("audit events: %s", got)
	}
}

func TestCatalogRefusals(t *testing.T) {
	c := newFleet(t)
	ctx := t.Context()
	is := func(field string) func(error) bool {
		return func(err error) bool {
			fe, ok := errors.AsType[*messages.FieldError](err)
			return ok && fe.Field == field
		}
	}
	of := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	put := func(p messages.Prompt, v *uint64) error { _, err := c.Prompts().Put(ctx, p, v); return err }
	apply := func(d messages.Definition, v *uint64) error { _, err := c.Agents().Apply(ctx, d, "", v); return err }
	if err := put(messages.Prompt{ID: "p", Text: "{a}"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := apply(messages.Definition{Name: "a"}, nil); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		do    func() error
		right func(error) bool
	}{
		"prompt without text":   {func() error { return put(messages.Prompt{ID: "p"}, nil) }, is("text")},
		"prompt that is broken": {func() error { return put(messages.Prompt{ID: "p", Text: "{"}, nil) }, is("prompt")},
		"prompt of an old":      {func() error { return put(messages.Prompt{ID: "p", Text: "x"}, new(uint64(99))) }, of(dispatcher.ErrRevision)},
		"prompt that is there":  {func() error { return put(messages.Prompt{ID: "p", Text: "x"}, new(uint64(0))) }, of(dispatcher.ErrRevision)},
		"no such prompt":        {func() error { _, err := c.Prompts().Get(ctx, "q", 0); return err }, of(dispatcher.ErrUnknownPrompt)},
		"no such version":       {func() error { _, err := c.Prompts().Get(ctx, "p", 77); return err }, of(dispatcher.ErrUnknownPrompt)},
		"a hostile prompt":      {func() error { _, err := c.Prompts().Get(ctx, "*", 0); return err }, of(dispatcher.ErrUnknownPrompt)},
		"render of none":        {func() error { _, err := c.Prompts().Render(ctx, control.PromptRender{ID: "q"}); return err }, of(dispatcher.ErrUnknownPrompt)},
		"render of a list": {func() error {
			_, err := c.Prompts().Render(ctx, control.PromptRender{ID: "p", Vars: json.RawMessage(`[]`)})
			return err
		}, is("vars")},
		"render without": {func() error {
			_, err := c.Prompts().Render(ctx, control.PromptRender{ID: "p", ThrowOnMissing: true})
			return err
		}, is("vars")},
		"delete of no prompt":  {func() error { _, err := c.Prompts().Delete(ctx, control.CatalogDelete{Name: "q"}); return err }, of(dispatcher.ErrUnknownPrompt)},
		"history of no prompt": {func() error { _, err := c.Prompts().History(ctx, "q"); return err }, of(dispatcher.ErrUnknownPrompt)},
		"agent of an old":      {func() error { return apply(messages.Definition{Name: "a", Model: "m"}, new(uint64(99))) }, of(dispatcher.ErrRevision)},
		"agent without a name": {func() error { return apply(messages.Definition{}, nil) }, is("agent.name")},
		"agent with vars": {func() error {
			return apply(messages.Definition{Name: "a", Prompt: &messages.PromptRef{ID: "p", Vars: json.RawMessage(`1`)}}, nil)
		}, is("agent.prompt.vars")},
		"no such agent":       {func() error { _, err := c.Agents().At(ctx, "b", 0); return err }, of(dispatcher.ErrUnknownAgent)},
		"no such revision":    {func() error { _, err := c.Agents().At(ctx, "a", 77); return err }, of(dispatcher.ErrUnknownAgent)},
		"history of no agent": {func() error { _, err := c.Agents().History(ctx, "b"); return err }, of(dispatcher.ErrUnknownAgent)},
		"delete of no agent":  {func() error { _, err := c.Agents().Delete(ctx, control.CatalogDelete{Name: "b"}); return err }, of(dispatcher.ErrUnknownAgent)},
		"delete of an old": {func() error {
			_, err := c.Agents().Delete(ctx, control.CatalogDelete{Name: "a", IfRevision: new(uint64(9))})
			return err
		}, of(dispatcher.ErrRevision)},
		"a task that is no run": {func() error {
			_, err := c.Submit(ctx, messages.Task{ID: "_", Input: messages.TextInput("x")})
			return err
		}, is("id")},
		"a name that is a story": {func() error {
			_, err := c.Agents().Delete(ctx, control.CatalogDelete{Name: "a", By: strings.Repeat("x", 300)})
			return err
		}, is("by")},
	} {
		if err := tc.do(); !tc.right(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := c.Prompts().Render(ctx, control.PromptRender{ID: "p", Vars: json.RawMessage(`{"a":"12345"}`)})
	if err != nil || got.Text != "12345" || got.TokensEstimate != 2 || got.Version == 0 {
		t.Errorf("%+v %v", got, err)
	}
	v, err := c.Prompts().Validate(ctx, messages.Prompt{ID: "p", Engine: "liquid", Text: "{% include 'x' %}"})
	if err != nil || v.OK || len(v.Errors) != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

package runner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/runner"
)

// What a tool says about its answer is in the record, the event and the result, without secrets, and not told to the model.
func TestMetaOfACall(t *testing.T) {
	script, err := scripted.Parse([]byte(`scenes: [{turns: [{calls: [{name: look}]}, {text: done}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	look, err := tools.Func(messages.ToolSpec{Name: "look", Description: "Looks.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) {
			r := tools.Text("seen")
			r.Meta = map[string]any{"hits": 3, "with": "a hidden-key"}
			return r, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(look)
	if err != nil {
		t.Fatal(err)
	}
	dir, log := t.TempDir(), &runlog.Memory{}
	r := runner.New(runner.Config{
		Worker: "w", Model: scripted.New(script), Tools: set,
		Workspace:  func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) },
		Controller: &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }},
		Agent: func(context.Context, string) (messages.Definition, error) {
			d := messages.Definition{Name: "a", Tools: []string{"look"}}
			d.SetDefaults()
			return d, nil
		},
		Redact: func(s string) string { return strings.ReplaceAll(s, "hidden-key", "[redacted]") },
	})
	if outcome, err := r.Run(t.Context(), rticket(1)); outcome != runner.Done || err != nil {
		t.Fatal(outcome, err)
	}
	const want = `{"hits":3,"with":"a [redacted]"}`
	seen := 0
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.ToolReturned:
				if seen++; string(r.Meta) != want || r.Result.Shown() != "seen" {
					t.Errorf("the record has %s, the model is told %q", r.Meta, r.Result.Shown())
				}
			case *record.Finished:
				if seen++; string(r.Result.Actions[0].Meta) != want {
					t.Errorf("the result has %s", r.Result.Actions[0].Meta)
				}
			}
		}
		for _, event := range record.Events(rrun, e) {
			if event.Name() == messages.EventToolExecutionEnd && !strings.Contains(string(event.Data), `"meta":`+want) {
				t.Errorf("the event has %s", event.Data)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d records", seen)
	}
}

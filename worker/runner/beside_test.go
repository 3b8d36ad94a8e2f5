package runner_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/runner"
)

type putArgs struct {
	On string `json:"on"`
}

// Calls that change different things run together; those that change the same thing run one after the other, in order.
func TestIdempotentCallsRunBesideOthers(t *testing.T) {
	var mu sync.Mutex
	var order []string
	busy := map[string]bool{}
	var all sync.WaitGroup
	all.Add(3)
	put, err := tools.FuncOn(messages.ToolSpec{Name: "put", Description: "Puts.", Effect: messages.EffectIdempotent},
		func(in putArgs) string { return in.On[:1] },
		func(ctx context.Context, _ tools.Call, in putArgs) (tools.Result, error) {
			mu.Lock()
			if busy[in.On[:1]] {
				t.Errorf("%s began during another call on the same", in.On)
			}
			busy[in.On[:1]] = true
			order = append(order, in.On)
			mu.Unlock()
			if in.On[1] == '1' { // a1, b1 and c1 wait for each other
				all.Done()
				met := make(chan struct{})
				go func() { defer close(met); all.Wait() }()
				select {
				case <-met:
				case <-ctx.Done():
					t.Errorf("%s is alone", in.On)
				}
			}
			mu.Lock()
			busy[in.On[:1]] = false
			mu.Unlock()
			return tools.Text(in.On), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, on := range []string{"a1", "b1", "c1", "a2", "a3", "b2"} {
		calls = append(calls, `{name: put, arguments: {on: `+on+`}}`)
	}
	play, err := scripted.Parse([]byte("scenes: [{turns: [{calls: [" + strings.Join(calls, ", ") + "]}, {text: done}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	var p parallel
	p.play(t, t.TempDir(), runner.Config{Model: scripted.New(play)}, messages.Definition{}, put)
	if p.state.Result == nil || !p.state.Result.Success || len(order) != 6 {
		t.Fatalf("%+v, %v", p.state.Result, order)
	}
	if slices.Index(order, "a2") > slices.Index(order, "a3") || slices.Index(order, "a1") > slices.Index(order, "a2") {
		t.Errorf("calls on the same are out of order: %v", order)
	}
	for i, a := range p.state.Result.Actions { // results go back in the model's order
		if want := []string{"a1", "b1", "c1", "a2", "a3", "b2"}[i]; a.Output != want {
			t.Errorf("action %d: %s, want %s", i, a.Output, want)
		}
	}
}

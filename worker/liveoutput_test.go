package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
)

// What a program of a tool writes is seen while it runs: the tool ends only once the watcher has seen it. Where rules judge results,
// it is not shown before they have.
func TestLiveOutputOfATool(t *testing.T) {
	for name, judged := range map[string]bool{"shown": false, "judged by rules": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLiveOutput(t, judged)
		})
	}
}

func testLiveOutput(t *testing.T, judged bool) {
	t.Helper()
	builder := messages.BuiltinAgent()
	builder.Name, builder.Tools = "builder", []string{"build"}
	if judged {
		builder.Policy = &messages.Policy{Content: []messages.ContentRule{{
			Name: "mail", At: []messages.PolicyPoint{messages.PolicyOutput}, Category: "email", Action: messages.PolicyRedact,
		}}}
	}
	h := open(t, 30*time.Second, builder)
	seen, given := make(chan struct{}), make(chan bool, 1)
	build, err := tools.Func(messages.ToolSpec{Name: "build", Description: "Builds.", Effect: messages.EffectRead},
		func(ctx context.Context, c tools.Call, _ struct{}) (tools.Result, error) {
			given <- c.Output != nil
			if c.Output != nil {
				c.Output([]byte("compiling\n"))
				select {
				case <-seen:
				case <-ctx.Done():
				}
			}
			return tools.Text("built"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	id, err := h.client.Submit(t.Context(), messages.Task{Agent: "builder", Input: messages.TextInput("work")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	live, stop := context.WithCancel(ctx)
	subscribed, watched := make(chan struct{}), make(chan struct{})
	var output messages.LiveOutput
	go func() {
		defer close(watched)
		for l, err := range h.client.Live(live, dispatcher.Run(id)) {
			if err != nil {
				return // the run has ended
			}
			if l.Kind == "probe" {
				select {
				case <-subscribed:
				default:
					close(subscribed)
				}
			}
			if output.Add(&l) && l.N == 1 {
				close(seen)
			}
		}
	}()
	h.probe(dispatcher.Run(id), subscribed)
	h.worker("w", script(t, `scenes: [{turns: [{calls: [{name: build}]}, {text: done}]}]`), worker.Config{Slots: 1}, build)
	if _, err := h.client.Wait(ctx, dispatcher.Run(id)); err != nil {
		t.Fatal(err)
	}
	stop()
	<-watched
	if has := <-given; has == judged {
		t.Errorf("the tool is given a place to write: %v", has)
	}
	if want := map[bool]string{false: "compiling\n"}[judged]; output.Text != want || output.Incomplete || !judged && (output.Step != 1 || output.CallID == "") {
		t.Errorf("got %+v", output)
	}
}

package worker_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
)

// breaking is a provider whose first reply breaks off once the test has seen its beginning.
type breaking struct {
	calls int
	seen  chan struct{}
}

func (p *breaking) Stream(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		p.calls++
		if !yield(model.Delta{Reasoning: "Secret thoughts. "}, nil) {
			return
		}
		text := "First words, "
		if p.calls > 1 {
			text = "Other words."
		}
		if !yield(model.Delta{Text: text}, nil) {
			return
		}
		select {
		case <-p.seen:
		case <-ctx.Done():
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		if p.calls == 1 {
			yield(model.Delta{}, &model.Error{Class: model.Overloaded, Detail: "busy"})
			return
		}
		yield(model.Delta{Reply: &model.Reply{
			Message: messages.Message{Content: messages.TextContent(text)}, Stop: messages.StopEnd,
		}}, nil)
	}
}

// A retry after text is shown, and tells watchers to forget the text. Reasoning is shown only when the agent keeps it.
func TestLiveTextOfARetry(t *testing.T) {
	const text, idea, retry, reset = messages.LiveText, messages.LiveReasoning, messages.LiveRetry, messages.LiveReset
	for name, tc := range map[string]struct {
		reasoning string
		kinds     []messages.LiveKind
		thoughts  string
	}{
		"reasoning dropped": {messages.ReasoningDrop, []messages.LiveKind{text, retry, reset, text}, ""},
		"reasoning kept":    {messages.ReasoningKeep, []messages.LiveKind{idea, text, retry, reset, idea, text}, "Secret thoughts. "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLiveRetry(t, tc.reasoning, tc.kinds, tc.thoughts)
		})
	}
}

func testLiveRetry(t *testing.T, reasoning string, want []messages.LiveKind, thoughts string) {
	t.Helper()
	thinker := messages.BuiltinAgent()
	thinker.Name, thinker.Reasoning = "thinker", reasoning
	h := open(t, 30*time.Second, thinker)
	p := &breaking{seen: make(chan struct{})}
	id, err := h.client.Submit(t.Context(), messages.Task{Agent: "thinker", Input: messages.TextInput("work")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var kinds []messages.LiveKind
	var reply messages.LiveReply
	subscribed := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for l, err := range h.client.Live(ctx, dispatcher.Run(id)) {
			switch {
			case err != nil:
				t.Errorf("after %v: %v", kinds, err)
				return
			case l.Kind == "probe":
				select {
				case <-subscribed:
				default:
					close(subscribed)
				}
				continue
			}
			kinds = append(kinds, l.Kind)
			reply.Add(&l)
			switch reply.Text {
			case "First words, ":
				p.seen <- struct{}{}
			case "Other words.":
				return
			}
		}
	}()
	h.probe(dispatcher.Run(id), subscribed)
	h.worker("w", model.NewRetry(p, model.RetryConfig{Random: func() float64 { return 0 }}), worker.Config{Slots: 1})
	<-watched
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	if reply.Text != "Other words." || reply.Reasoning != thoughts || reply.Step != 1 || reply.Attempt != 1 || reply.Try != 2 || reply.Incomplete {
		t.Errorf("got %+v", reply)
	}
	close(p.seen)
	if _, err := h.client.Wait(ctx, dispatcher.Run(id)); err != nil {
		t.Fatal(err)
	}
}

// probe publishes until a watcher of live text has begun to watch.
func (h *house) probe(run messages.Ref, subscribed <-chan struct{}) {
	h.t.Helper()
	deadline := time.After(patience)
	for {
		l := messages.Live{Type: messages.TypeLive, Run: run.Run, Step: 1, Attempt: 1, Try: 1, N: 1, Kind: "probe"}
		if err := events.New(h.bus).PublishLive(run, &l); err != nil {
			h.t.Fatal(err)
		}
		select {
		case <-subscribed:
			return
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			h.t.Fatal("no watcher is connected")
		}
	}
}

package worker_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/memorylimit"
	"github.com/longshore-run/longshore/worker/model"
)

// crowded is a model that lists files first. Before its very first reply it has others take the memory.
type crowded struct{ crowd func() }

func (m crowded) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	reply := &model.Reply{Stop: messages.StopEnd, Message: messages.Message{Content: messages.TextContent("done")}}
	if r.Messages[len(r.Messages)-1].Role == messages.RoleUser {
		m.crowd()
		call := messages.Block{ToolCall: &messages.ToolCall{ID: "c", Name: "list_files", Arguments: "{}"}}
		reply = &model.Reply{Stop: messages.StopToolCalls, Message: messages.Message{Content: []messages.Block{call}}}
	}
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{Reply: reply}, nil) }
}

// While others hold the memory a run waits visibly and no further task is taken, and both continue when there is room.
func TestRunThatWaitsForMemoryIsShown(t *testing.T) {
	t.Parallel()
	h := open(t, 30*time.Second, messages.Definition{Name: "lister", Tools: []string{"list_files"}})
	b := memorylimit.New(64 << 20)
	common, senior := b.Open("other", 0), b.Open("other", 0)
	crowd := sync.OnceFunc(func() {
		if err := common.Hold(t.Context(), 32<<20-b.Stats().Used); err != nil { // all that is not for the senior
			t.Error(err)
		}
		if err := senior.Hold(t.Context(), 1<<20); err != nil {
			t.Error(err)
		}
	})
	w, _ := h.worker("small", crowded{crowd}, worker.Config{Memory: b, Slots: 2, Name: "small"}) // with more it may have asked for the next task before
	run := h.submit(messages.Task{Agent: "lister", Input: messages.TextInput("list")})
	eventually(t, "the run waits", func() bool { return b.Stats().Waiting == 1 })

	if y := h.why(run); !strings.Contains(y.Text, "waits for memory") || y.Worker != "small" {
		t.Errorf("why: %+v", y)
	}
	list, err := h.client.Fleet().Workers(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if m := list[0].Memory; m == nil || m.Limit != 64<<20 || m.Waiting != 1 || len(m.Runs) != 1 || m.Runs[0] != run.String() {
		t.Errorf("the worker says %+v", m)
	}
	// The worker has answered, so what it had asked of the queue before its memory was used up has been answered too.
	second := h.submit(messages.Task{Agent: "lister", Input: messages.TextInput("wait")})
	if held := w.Stats().Held; held != 1 {
		t.Errorf("%d tasks are held", held)
	}
	if y := h.why(second); y.Status != messages.StatusQueued {
		t.Errorf("the second: %+v", y)
	}
	common.Close()
	senior.Close()
	for _, run := range []messages.Ref{run, second} {
		if r := h.result(run); r.Status != messages.StatusCompleted {
			t.Errorf("%s: %+v", run, r.Error)
		}
	}
}

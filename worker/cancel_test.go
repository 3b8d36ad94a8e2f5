package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
)

func TestCancelQueuedNeedsNoWorker(t *testing.T) {
	h := open(t, 30*time.Second)
	run := h.submit(messages.Task{Input: messages.TextInput("hello")})
	st, err := h.client.Cancel(t.Context(), run, "not needed")
	if err != nil || st.Status != messages.StatusCancelled {
		t.Fatalf("cancel: %+v, %v", st, err)
	}
	want := []string{"run_queued", "run_started", "cancel_requested", "turn_end", "run_finished"}
	if diff := cmp.Diff(want, names(h.events(run))); diff != "" {
		t.Error(diff)
	}
	r := h.result(run)
	if r.Status != messages.StatusCancelled || r.Error.Message != "cancelled: not needed" || !r.Aborted {
		t.Errorf("result: %+v %v", r, r.Error)
	}
	// A worker that comes later finds nothing to do.
	h.worker("late", script(t, hello), worker.Config{})
	h.result(h.submit(messages.Task{Input: messages.TextInput("hello")}))
	if got := len(h.events(run)); got != len(want) {
		t.Errorf("%d events after a worker came, want %d", got, len(want))
	}
}

// hanging is a model server that begins a stream and never ends it.
type hanging struct {
	*httptest.Server
	began, gone chan time.Time
}

func newHanging(t *testing.T) *hanging {
	t.Helper()
	m := &hanging{began: make(chan time.Time, 8), gone: make(chan time.Time, 8)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Well\"}}]}\n\n"))
		w.(http.Flusher).Flush()
		m.began <- time.Now()
		<-r.Context().Done()
		m.gone <- time.Now()
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *hanging) provider(t *testing.T) model.Provider {
	t.Helper()
	p, err := openai.New(openai.Config{Endpoint: httpstream.Endpoint{BaseURL: m.URL, APIKey: "k-123456"}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCancelInModelCallAbortsIt(t *testing.T) {
	h := open(t, 6*patience) // no heartbeat looks at the log before we give up: the hint has to do it
	srv := newHanging(t)
	h.worker("w", srv.provider(t), worker.Config{})
	run := h.submit(messages.Task{Input: messages.TextInput("hello")})
	<-srv.began
	if _, err := h.client.Cancel(t.Context(), run, "changed my mind"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-srv.gone:
	case <-time.After(patience):
		t.Fatal("the request is still open")
	}
	if r := h.result(run); r.Status != messages.StatusCancelled || r.Error.Code != messages.CodeCancelled {
		t.Errorf("result: %+v", r)
	}
}

// A model's request is aborted within 200 ms, and what the machine needs: that is seen in how long the same requests to
// cancel take, each an entry in the log. The median counts: neither a lucky one nor a moment of another process.
func TestCancelIsPrompt(t *testing.T) {
	const within, tries = 200 * time.Millisecond, 9
	h := open(t, 6*patience)
	srv := newHanging(t)
	h.worker("w", srv.provider(t), worker.Config{})
	var asking, aborted []time.Duration
	for range tries {
		run := h.submit(messages.Task{Input: messages.TextInput("hello")})
		<-srv.began
		asked := time.Now()
		if _, err := h.client.Cancel(t.Context(), run, "changed my mind"); err != nil {
			t.Fatal(err)
		}
		asking = append(asking, time.Since(asked))
		select {
		case at := <-srv.gone:
			aborted = append(aborted, at.Sub(asked))
		case <-time.After(patience):
			t.Fatal("the request is still open")
		}
		h.result(run)
	}
	slices.Sort(asking)
	slices.Sort(aborted)
	took, most := aborted[tries/2], within+4*asking[tries/2]
	t.Logf("requests to cancel took %v, aborts %v", asking, aborted)
	if took > most {
		t.Errorf("half of %d requests were aborted after %v and more, want at most %v", tries, took, most)
	}
}

// blocking is a tool that ends with its context only.
type blocking struct{ began chan struct{} }

func (b blocking) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "block", Description: "Blocks.", Effect: messages.EffectIdempotent, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (b blocking) Call(ctx context.Context, _ tools.Call) (tools.Result, error) {
	b.began <- struct{}{}
	<-ctx.Done()
	return tools.Result{}, context.Cause(ctx)
}

var blockAgent = messages.Definition{Name: "blocker", Tools: []string{"block"}}

const blockScript = `
scenes:
  - turns:
      - calls: [{name: block, arguments: {}}]
      - text: Done.
`

func TestCancelInTool(t *testing.T) {
	def := blockAgent
	def.SetDefaults()
	h := open(t, 30*time.Second, def)
	tool := blocking{make(chan struct{}, 1)}
	h.worker("w", script(t, blockScript), worker.Config{}, tool)
	run := h.submit(messages.Task{Agent: "blocker", Input: messages.TextInput("go")})
	<-tool.began
	if _, err := h.client.Cancel(t.Context(), run, ""); err != nil {
		t.Fatal(err)
	}
	if r := h.result(run); r.Status != messages.StatusCancelled {
		t.Errorf("result: %+v", r)
	}
}

func TestCancelAfterTheEndChangesNothing(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{})
	run := h.submit(messages.Task{Input: messages.TextInput("hello")})
	before := h.result(run)
	if _, err := h.client.Cancel(t.Context(), run, ""); !errors.Is(err, dispatcher.ErrEnded) {
		t.Errorf("cancel: %v", err)
	}
	if diff := cmp.Diff(before, h.result(run)); diff != "" {
		t.Error(diff)
	}
	if _, err := h.client.Cancel(t.Context(), dispatcher.Run("unknown"), ""); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("cancel of an unknown run: %v", err)
	}
}

// asking is a tool that parks the run for an answer.
type asking struct{ wait time.Duration }

func (asking) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "block", Description: "Asks.", Effect: messages.EffectRead, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (a asking) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Park: &tools.Park{Reason: "answer", For: a.wait}}, nil
}

func TestParkAnswerAndTimer(t *testing.T) {
	def := blockAgent
	def.SetDefaults()
	const s = `
scenes:
  - turns:
      - calls: [{name: block, arguments: {}}]
      - text: "Heard: ${lastToolResult}"
`
	for _, tc := range []struct {
		name   string
		wait   time.Duration
		act    func(h *house, run messages.Ref)
		want   string
		status messages.Status
	}{
		{"answered", time.Hour, func(h *house, run messages.Ref) {
			last, _, err := h.logs().Last(h.t.Context(), run)
			if err != nil {
				h.t.Fatal(err)
			}
			answer := &record.Answered{ID: "a", Park: last.Head.ParkSeq, Content: messages.TextContent("blue")}
			if _, err := controller(h.bus, h.logs()).Control(h.t.Context(), run, answer); err != nil {
				h.t.Fatal(err)
			}
		}, "Heard: blue", messages.StatusCompleted},
		{"expired", 300 * time.Millisecond, func(*house, messages.Ref) {}, "Heard: No answer came in time.", messages.StatusCompleted},
		{"cancelled", time.Hour, func(h *house, run messages.Ref) {
			if _, err := h.client.Cancel(h.t.Context(), run, ""); err != nil {
				h.t.Fatal(err)
			}
		}, "", messages.StatusCancelled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := open(t, 30*time.Second, def)
			w, _ := h.worker("w", script(t, s), worker.Config{}, asking{tc.wait})
			run := h.submit(messages.Task{Agent: "blocker", Input: messages.TextInput("go")})
			h.until(run, messages.EventRunWaiting)
			if st, err := h.client.Status(t.Context(), run); err != nil || tc.wait > time.Minute && (st.Status != messages.StatusWaiting || st.Waits != "answer") {
				t.Errorf("status: %+v %v", st, err)
			}
			tc.act(h, run)
			r := h.result(run)
			got, _ := r.Result.(string)
			if got != tc.want || r.Status != tc.status {
				t.Errorf("result: %q %s %v", got, r.Status, r.Error)
			}
			if n := w.Stats().Runner.Reclaims; n != 0 {
				t.Errorf("%d claims were taken from a worker", n)
			}
		})
	}
}

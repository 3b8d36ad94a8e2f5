package worker_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// limiting is a model server that refuses the first call of tasks that say so, with a Retry-After.
func limiting(t *testing.T, seconds int, refused *atomic.Int32) model.Provider {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if strings.Contains(string(body), "be limited") && refused.Add(1) == 1 {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"slow down"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Done.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	p, err := openai.New(openai.Config{Endpoint: httpstream.Endpoint{BaseURL: srv.URL, APIKey: "k-123456"}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	r, err := model.NewRouter(model.RouterConfig{
		Endpoints: []model.Endpoint{{Name: "p", Provider: p}}, Default: "p", Retry: model.RetryConfig{Retries: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A provider that asks for a long wait gets it, and the only slot is free for others meanwhile.
func TestLongWaitHoldsNoSlot(t *testing.T) {
	h := open(t, 30*time.Second)
	var refused atomic.Int32
	h.worker("w", limiting(t, 31, &refused), worker.Config{Slots: 1})
	run := h.submit(messages.Task{Input: messages.TextInput("be limited")})
	var waits messages.RunWaiting
	if err := json.Unmarshal(h.until(run, messages.EventRunWaiting).Data, &waits); err != nil {
		t.Fatal(err)
	}
	if waits.Reason != "model" || waits.Until == nil || time.Until(*waits.Until) < 10*time.Second {
		t.Errorf("waits: %+v", waits)
	}
	if r := h.result(h.submit(messages.Task{Input: messages.TextInput("hello")})); !r.Success {
		t.Errorf("another run: %+v", r)
	}
	st, err := h.client.Status(t.Context(), run)
	if err != nil || st.Status != messages.StatusWaiting || st.Waits != "model" {
		t.Errorf("status: %+v, %v", st, err)
	}
	if r, err := h.client.Cancel(t.Context(), run, "not needed"); err != nil || r.Status == messages.StatusRunning {
		t.Errorf("cancel: %+v, %v", r, err)
	}
	if r := h.result(run); r.Status != messages.StatusCancelled {
		t.Errorf("result: %+v", r)
	}
}

// When the wait is over the run continues.
func TestLongWaitEnds(t *testing.T) {
	h := open(t, 30*time.Second)
	h.longWait = 100 * time.Millisecond
	var refused atomic.Int32
	h.worker("w", limiting(t, 1, &refused), worker.Config{Slots: 1})
	run := h.submit(messages.Task{Input: messages.TextInput("be limited")})
	want := []string{
		"run_queued", "run_started", "step_start", "run_waiting", "run_resumed", "message_end", "step_end", "turn_end", "run_finished",
	}
	if diff := cmp.Diff(want, names(h.events(run))); diff != "" {
		t.Error(diff)
	}
	if r := h.result(run); !r.Success || r.Result != "Done." || refused.Load() != 2 || r.RetryInfo == nil ||
		r.RetryInfo.Attempts != 1 || !strings.Contains(r.RetryInfo.LastError, "slow down") {
		t.Errorf("result after %d calls: %+v", refused.Load(), r)
	}
}

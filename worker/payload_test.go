package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
)

// long is a tool with a long output.
type long struct{ text string }

func (long) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "block", Description: "Conversations.", Effect: messages.EffectRead, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (l long) Call(context.Context, tools.Call) (tools.Result, error) { return tools.Text(l.text), nil }

func TestLongPayloadsComeBackWhole(t *testing.T) {
	def := blockAgent
	def.SetDefaults()
	h := open(t, 30*time.Second, def)
	text := strings.Repeat("0123456789abcdef", 40_000) // 640 kB
	h.worker("w", script(t, `
scenes:
  - turns:
      - calls: [{name: block, arguments: {}}]
      - text: "`+text+`"
        chunk: 65536
`), worker.Config{}, long{text})
	run := h.submit(messages.Task{Agent: "blocker", Input: messages.TextInput(strings.Repeat("long ", 20_000))})
	events := h.events(run)
	for _, e := range events {
		b, _ := json.Marshal(e)
		if len(b) > messages.MaxPayload {
			t.Errorf("event %s has %d bytes", e.Type, len(b))
		}
	}
	if r := h.result(run); r.Result != text {
		t.Errorf("result has %d bytes, want %d", len(fmt.Sprint(r.Result)), len(text))
	}
	entries := 0
	for e, err := range h.logs().Read(t.Context(), run, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
		for _, r := range e.Records {
			if ret, ok := r.(*record.ToolReturned); ok {
				if shown := ret.Result.Content[0].Text; !strings.HasPrefix(shown, text[:64<<10]) || !strings.Contains(shown, "The result has 640000 bytes") {
					t.Errorf("the model is told %d bytes of the tool's output: …%q", len(shown), shown[len(shown)-200:])
				}
			}
		}
	}
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	logs := bustest.LogIn(h.bus, run)
	for _, name := range []string{logs, "BLOBS"} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if st := s.CachedInfo().State; name == logs && st.Bytes > uint64(entries*messages.MaxPayload) || st.Msgs == 0 {
			t.Errorf("%s holds %d messages of %d bytes", name, st.Msgs, st.Bytes)
		}
	}
}

func TestWatchers(t *testing.T) {
	h := open(t, 30*time.Second)
	run := h.submit(messages.Task{Input: messages.TextInput("hello")})
	watch := func() []string {
		var out []string
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for e, err := range h.client.Watch(ctx, run) {
			if err != nil {
				t.Error(err)
				return nil
			}
			out = append(out, e.Sequence+" "+e.Name())
		}
		return out
	}
	var wg sync.WaitGroup
	early := make([][]string, 3)
	for i := range early {
		wg.Go(func() { early[i] = watch() })
	}
	stalled, cancel := context.WithCancel(t.Context())
	defer cancel()
	wg.Go(func() { // takes one event and then nothing more: it does not affect others
		for range h.client.Watch(stalled, run) {
			<-stalled.Done()
			return
		}
	})
	h.worker("w", script(t, hello), worker.Config{})
	late := h.events(run)
	want := make([]string, len(late))
	for i, e := range late {
		want[i] = e.Sequence + " " + e.Name()
	}
	cancel()
	wg.Wait()
	if len(want) != 12 {
		t.Errorf("late watcher: %v", want)
	}
	for i, got := range early {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("early watcher %d: %s", i, diff)
		}
	}
}

// Any NATS client can publish a task and subscribe to its events, without our code.
func TestPlainClient(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{})
	nc := h.conn()
	sub, err := nc.SubscribeSync("events.acme.plain-1.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("tasks.high.acme.plain-1", []byte(`{"input": "Say hello."}`)); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			SpecVersion string          `json:"specversion"`
			Type        string          `json:"type"`
			Subject     string          `json:"subject"`
			Data        json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &e); err != nil || e.SpecVersion != "1.0" || e.Subject != "plain-1" {
			t.Fatalf("event %s: %v", m.Data, err)
		}
		if e.Type == "longshore.run_finished.v1" {
			if !strings.Contains(string(e.Data), `"success":true`) {
				t.Errorf("%s", m.Data)
			}
			return
		}
	}
}

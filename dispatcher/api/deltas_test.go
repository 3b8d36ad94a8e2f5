package api_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// talker keeps writing its reply until a watcher has seen some of it.
type talker struct{ seen chan struct{} }

func (p *talker) Stream(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var text strings.Builder
		for every := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-every.C:
				text.WriteString("word ")
				if !yield(model.Delta{Text: "word "}, nil) {
					return
				}
				continue
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			case <-p.seen:
			}
			every.Stop()
			yield(model.Delta{Reply: &model.Reply{
				Message: messages.Message{Content: messages.TextContent(text.String())}, Stop: messages.StopEnd,
			}}, nil)
			return
		}
	}
}

func openTalker(t *testing.T) (*hall, *talker) {
	t.Helper()
	p := &talker{make(chan struct{})}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: model.Provider(p)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &hall{t, dev, "http://" + dev.API}, p
}

// Live text is between the events, has no id, and all who ask for it get it.
func TestDeltas(t *testing.T) {
	h, p := openTalker(t)
	h.do("POST", "/v1/tasks", `{"id":"r","input":"hi"}`, http.StatusAccepted, nil)
	first, second := h.send("GET", "/v1/tasks/r/events?deltas=true", ""), h.send("GET", "/v1/tasks/r/events?deltas=true&types=run_finished", "")
	plain := h.send("GET", "/v1/tasks/r/events", "")
	isDelta := func(e sse) bool {
		if e.name != "delta" {
			return false
		}
		var l messages.Live
		if err := json.Unmarshal([]byte(e.data), &l); err != nil || e.id != "" || l.Kind != messages.LiveText || !strings.Contains(l.Text, "word") {
			t.Errorf("%v %+v", err, e)
		}
		return true
	}
	for e := range events(second.Body) {
		if !isDelta(e) {
			t.Errorf("before live text: %s", e.name)
		}
		break
	}
	_ = second.Body.Close() // one that vanishes takes nothing from the other
	var seen []string       // without live text, which may overtake them: it waits for no storage
	texts := 0
	for e := range events(first.Body) {
		if !isDelta(e) {
			seen = append(seen, e.name)
		} else if texts++; texts == 2 {
			close(p.seen)
		}
	}
	_ = first.Body.Close()
	if texts < 2 || seen[0] != messages.EventRunQueued || seen[len(seen)-1] != messages.EventRunFinished {
		t.Errorf("%d pieces of live text, and %v", texts, seen)
	}
	n := 0
	for e := range events(plain.Body) {
		if n++; e.name == "delta" {
			t.Error("live text came without a request for it")
		}
	}
	_ = plain.Body.Close()
	if n == 0 {
		t.Error("no events")
	}
	h.do("GET", "/v1/tasks/r/events?deltas=maybe", "", http.StatusBadRequest, nil)
}

// As AG-UI a stream has frames of data alone; who comes back after a number lacks nothing and gets nothing twice.
func TestAGUI(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hi","session":"s"}`, http.StatusOK, nil)
	read := func(headers ...string) []string {
		t.Helper()
		resp := h.send("GET", "/v1/tasks/r/events?format=ag-ui&deltas=true", "", headers...)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var frames []string
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				frames = append(frames, data)
			}
			if strings.HasPrefix(line, "event: ") {
				t.Errorf("an event with a name: %s", line)
			}
		}
		return frames
	}
	all := read()
	if first := all[0]; !strings.Contains(first, `"threadId":"s"`) || !strings.Contains(first, `"type":"RUN_STARTED"`) {
		t.Errorf("it begins with %s", first)
	}
	if last := all[len(all)-1]; !strings.Contains(last, `"type":"RUN_FINISHED"`) {
		t.Errorf("it ends with %s", last)
	}
	rest := read("Last-Event-ID", "3")
	if len(rest) == 0 || !strings.Contains(rest[0], "TEXT_MESSAGE_START") || strings.Join(all[len(all)-len(rest):], "") != strings.Join(rest, "") {
		t.Errorf("after event 3: %s", rest)
	}
	h.do("GET", "/v1/tasks/r/events?format=xml", "", http.StatusBadRequest, nil)
	h.do("GET", "/v1/tasks/r/events?format=ag-ui&types=error", "", http.StatusBadRequest, nil)
}

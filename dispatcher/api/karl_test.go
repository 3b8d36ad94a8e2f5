package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

const karlScript = `
scenes:
  - match: write it
    turns:
      - {text: "TEXT", chunk: 2000, pause: 60ms, calls: [{name: write_file, arguments: {filePath: notes.txt, content: CONTENT}}, {name: nope, arguments: {a: 1}}]}
      - {text: "Done."}
  - match: fail
    turns: [{error: {class: auth, message: no such key}}]
`

// karlFrame is a frame of a stream, with its fields as a map.
type karlFrame struct {
	id   string
	data map[string]any
}

func (f karlFrame) String() string {
	call := func(v any) string {
		c := v.(map[string]any)
		fn := c["function"].(map[string]any)
		return fmt.Sprintf("%s %s %s", c["id"], c["type"], fn["name"])
	}
	switch kind := f.data["type"].(string); kind {
	case "text_delta":
		return kind + " " + f.data["delta"].(string)
	case "text_end":
		return kind + " " + f.data["text"].(string)
	case "tool_call_start", "tool_call_end":
		return kind + " " + call(f.data["toolCall"])
	case "tool_execution_start":
		return fmt.Sprintf("%s %s %d", kind, f.data["toolName"], len(f.data["args"].(map[string]any)))
	case "tool_execution_end":
		result := f.data["result"].(map[string]any)
		return fmt.Sprintf("%s %s %v %v %d", kind, f.data["toolName"], f.data["isError"].(bool), result["isError"].(bool), len(result["content"].([]any)))
	case "message_end":
		m := f.data["message"].(map[string]any)
		calls, _ := m["tool_calls"].([]any)
		return fmt.Sprintf("%s %s %q %d %t", kind, m["role"], m["content"], len(calls), f.data["usage"].(map[string]any)["total"].(float64) > 0)
	case "turn_end":
		return fmt.Sprintf("%s %t", kind, f.data["usage"].(map[string]any)["input"].(float64) > 0)
	case "error":
		e := f.data["error"].(map[string]any)
		return fmt.Sprintf("%s %s %s", kind, e["name"], e["code"])
	default:
		return kind
	}
}

func karlFrames(t *testing.T, resp *http.Response) (all []karlFrame) {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	var f karlFrame
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return all
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			f.id = value
		case "event":
			t.Errorf("a frame with a name: %s", value)
		case "data":
			if err := json.Unmarshal([]byte(value), &f.data); err != nil {
				t.Fatal(err)
			}
			all, f = append(all, f), karlFrame{}
		}
	}
}

func told(frames []karlFrame) (out []string) {
	for _, f := range frames {
		s := f.String()
		if n := len(out); n > 0 && f.data["type"] == "text_delta" && strings.HasPrefix(out[n-1], "text_delta ") {
			out[n-1] += f.data["delta"].(string)
			continue
		}
		out = append(out, s)
	}
	return out
}

// The ten kinds of events of Karl's agent loop, with all that they hold; live while the reply is written, and the same
// when they are read again.
func TestKarl(t *testing.T) {
	text, content := strings.Repeat("I shall write. ", 500), strings.Repeat("ship-ahoy-", 2000) // the latter is more than an event shows
	play, err := scripted.Parse([]byte(strings.NewReplacer("CONTENT", content, "TEXT", text).Replace(karlScript)))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: model.Provider(scripted.New(play))},
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
	h := &hall{t, dev, "http://" + dev.API}
	h.do("POST", "/v1/tasks", `{"id":"r","input":"write it"}`, http.StatusAccepted, nil)
	live := karlFrames(t, h.send("GET", "/v1/tasks/r/events?format=karl", ""))
	want := []string{
		"stream_start", "text_delta " + text, "text_end " + text,
		"tool_call_start call_1_1 function write_file", "tool_call_end call_1_1 function write_file",
		"tool_call_start call_1_2 function nope", "tool_call_end call_1_2 function nope",
		fmt.Sprintf("message_end assistant %q 2 true", text),
		"tool_execution_start nope 1", "tool_execution_end nope true true 1",
		"tool_execution_start write_file 2", "tool_execution_end write_file false false 1",
		"stream_start", "text_delta Done.", "text_end Done.", `message_end assistant "Done." 0 true`, "turn_end true",
	}
	again := karlFrames(t, h.send("GET", "/v1/tasks/r/events?format=karl", ""))
	if diff := cmp.Diff(want, told(again)); diff != "" {
		t.Error(diff)
	}
	var deltas, starts int
	for _, f := range live {
		switch f.data["type"] {
		case "text_delta":
			deltas++
		case "tool_call_start":
			if starts++; f.id != "" && starts == 1 {
				t.Error("the call came with the whole reply")
			}
		case "tool_call_end", "tool_execution_start":
			args, _ := json.Marshal(f.data)
			if strings.Contains(string(args), "write_file") && !strings.Contains(string(args), content) {
				t.Errorf("%s is shortened: %d %.300s", f.data["type"], len(args), args)
			}
		}
	}
	if deltas < 3 || len(live) < len(again) {
		t.Errorf("%d pieces of text came while it was written", deltas)
	}
	h.do("POST", "/v1/tasks", `{"id":"g","input":"write it"}`, http.StatusAccepted, nil)
	grows := 0
	for _, f := range karlFrames(t, h.send("GET", "/v1/tasks/g/events?format=karl&deltas=true", "")) {
		if f.data["type"] == "tool_call_start" && strings.HasPrefix(f.String(), "tool_call_start call_1_1") {
			grows++
		}
	}
	if grows < 2 {
		t.Errorf("the arguments were given %d times while they were written", grows)
	}
	for i, f := range again {
		if f.id == "" {
			continue
		}
		rest := karlFrames(t, h.send("GET", "/v1/tasks/r/events?format=karl", "", "Last-Event-ID", f.id))
		if diff := cmp.Diff(told(again[i+1:]), told(rest)); diff != "" {
			t.Errorf("after %s: %s", f.id, diff)
		}
	}
	h.do("GET", "/v1/tasks/r/events?format=karl", "", http.StatusNoContent, nil, "Last-Event-ID", again[len(again)-1].id)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"f","input":"fail"}`, http.StatusOK, nil)
	if diff := cmp.Diff([]string{"stream_start", "error Error " + string(messages.CodeModelAuth)}, told(karlFrames(t, h.send("GET", "/v1/tasks/f/events?format=karl", "")))); diff != "" {
		t.Error(diff)
	}
	h.do("GET", "/v1/tasks/r/events?format=karl&types=plan", "", http.StatusBadRequest, nil)
	h.do("GET", "/v1/tasks/r/events?format=karl&after=1.1", "", http.StatusBadRequest, nil)
}

// /run-lite streams the same: its JSON protocol as texts and calls.
func TestLiteStreams(t *testing.T) {
	h := openLite(t, newEcho(t), 0, nil)
	resp := h.send("POST", "/run-lite?stream=true", liteBody(false, listFiles, `{"type":"final","content":"Looked."}`))
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(resp.Header.Get("Location"), "/v1/tasks/") {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	want := []string{
		"stream_start", "tool_call_start json-1 function list_files", "tool_call_end json-1 function list_files", `message_end assistant "" 1 false`,
		"tool_execution_start list_files 0", "tool_execution_end list_files false false 1",
		"stream_start", "text_delta Looked.", "text_end Looked.", `message_end assistant "Looked." 0 false`, "turn_end false",
	}
	if diff := cmp.Diff(want, told(karlFrames(t, resp))); diff != "" {
		t.Error(diff)
	}
	failed := told(karlFrames(t, h.send("POST", "/run-lite?stream=true", liteBody(false, "Sure!"))))
	if last := failed[len(failed)-1]; last != "error Error "+string(messages.CodeModelInvalidOutput) {
		t.Errorf("it ends with %s", last)
	}
	h.do("POST", "/run-lite?stream=true", `{"input":" "}`, http.StatusBadRequest, nil)
	h.do("POST", "/run-lite?stream=maybe", liteBody(false, listFiles), http.StatusBadRequest, nil)
	late := openLite(t, newEcho(t), 300*time.Millisecond, nil)
	cut := told(karlFrames(t, late.send("POST", "/run-lite?stream=true", liteBody(false, "hold"))))
	if last := cut[len(cut)-1]; last != "error Error "+string(messages.CodeDeadline) {
		t.Errorf("one that takes too long ends with %s", last)
	}
}

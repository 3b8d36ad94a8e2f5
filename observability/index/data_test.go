package index

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/jsonscan"
)

// FuzzReadData compares what is read of the data of events with what encoding/json reads of it.
func FuzzReadData(f *testing.F) {
	files, err := filepath.Glob("../../messages/testdata/events/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		lines, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(lines)) {
			var e messages.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				f.Fatal(err)
			}
			f.Add([]byte(e.Data))
		}
	}
	for _, data := range []string{
		`null`, ` null `, `[]`, `"x"`, `{}`, `{`, ``, `{"stepId":null,"usage":null,"cost":null,"cached":null,"millis":null}`,
		`{"stepId":1}`, `{"stepId":"a\u00e9\ud800"}`, "{\"stepId\":\"a\xff\"}", `{"millis":1.5}`, `{"millis":"1"}`, `{"millis":9223372036854775808}`, `{"cached":1}`, `{"cached":"true"}`,
		`{"cost":1e400}`, `{"cost":"1"}`, `{"cost":1,"cost":null}`, `{"usage":{"input":1,"total":"x"}}`, `{"usage":[]}`, `{"usage":{"input":1},"usage":{"total":2}}`,
		`{"labels":{"a":1}}`, `{"labels":{"a":"b"},"labels":{"c":"d"}}`, `{"queuedAt":"yesterday"}`, `{"queuedAt":5}`, `{"parent":{"run":"r"},"parent":null}`, `{"parent":"r"}`,
		`{"result":null}`, `{"result":{"id":"r","result":{"a":"b"},"provenance":{"agent":"a","planner":"plan"}}}`, `{"result":{"id":"r","result":"x","provenance":null,"success":true}}`,
		`{"result":{"id":"r","error":{"code":"c","message":"m"},"startedAt":"2026-01-02T03:04:05Z","costEstimate":0.5,"steps":3,"status":"failed","summary":"s"}}`,
		`{"result":{"id":"r","error":7}}`, `{"result":{"id":"r","provenance":[]}}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !asWritten(data) {
			return
		}
		same(t, readReply(data), read[reply](data))
		same(t, readCall(data), read[call](data))
		same(t, readStep(data), read[messages.Step](data))
		same(t, readStarted(data), read[started](data))
		queued := read[messages.RunQueued](data)
		if got := readQueued(data); queued != nil && got != nil {
			queued.By, queued.Traceparent = "", ""
			same(t, got, queued)
		} else if queued != nil {
			t.Errorf("what json reads as %+v is not read", queued)
		}
		type result struct {
			ID           string           `json:"id"`
			Success      bool             `json:"success"`
			Result       any              `json:"result"`
			Error        json.RawMessage  `json:"error"`
			Status       messages.Status  `json:"status"`
			Steps        int              `json:"steps"`
			TokenUsage   messages.Usage   `json:"tokenUsage"`
			CostEstimate *float64         `json:"costEstimate"`
			Summary      string           `json:"summary"`
			Provenance   *json.RawMessage `json:"provenance"`
		}
		got, want := readFinished(data), read[struct{ Result result }](data)
		if got == nil || want == nil {
			return
		}
		w := want.Result
		as := result{got.ID, got.Success, got.Result, w.Error, got.Status, got.Steps, got.TokenUsage, got.CostEstimate, got.Summary, w.Provenance}
		if _, isText := w.Result.(string); !isText {
			w.Result = nil
		}
		same(t, &as, &w)
	})
}

func same[T any](t *testing.T, got, want *T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// asWritten reports whether the names in JSON are exact and none comes twice, but for numbers and texts. Of other names encoding/json reads more.
func asWritten(data []byte) bool {
	known := []string{
		"stepId", "usage", "provider", "model", "millis", "cached", "cost", "toolName", "isError", "step", "status", "reason", "agent", "priority", "sessionId", "labels",
		"input", "queuedAt", "parent", "result", "id", "success", "error", "startedAt", "steps", "tokenUsage", "costEstimate", "summary", "provenance", "planner",
		"output", "cacheRead", "cacheWrite", "reasoning", "total", "run", "callId", "by", "traceparent", "code", "message",
	}
	ok, seen := true, map[string]bool{}
	_ = jsonscan.Members(data, func(name, value []byte) error {
		n := string(name)
		near := slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, n) })
		structured := len(value) > 0 && (value[0] == '{' || value[0] == '[')
		ok = ok && !strings.Contains(n, `\`) && (!near || slices.Contains(known, n)) && (!structured || !seen[n]) && (!structured || asWritten(value))
		seen[n] = true
		return nil
	})
	return ok
}

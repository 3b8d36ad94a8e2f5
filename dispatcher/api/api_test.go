package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = time.Minute

const script = `
scenes:
  - match: wait
    turns: [{delay: 1h, text: never}]
  - match: fail
    turns: [{error: {class: auth, message: no such key}}]
  - match: ""
    turns: [{text: hello}]
`

// hall is a fleet behind its HTTP address.
type hall struct {
	t   *testing.T
	dev *fleet.Dev
	url string
}

func open(t *testing.T) *hall {
	t.Helper()
	play, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, scripted.New(play))
}

// do makes a request and reads the answer, which must have a status.
func (h *hall) do(method, path, body string, want int, into any, headers ...string) http.Header {
	h.t.Helper()
	resp := h.send(method, path, body, headers...)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if resp.StatusCode != want {
		h.t.Fatalf("%s %s: %s, want %d: %s", method, path, resp.Status, want, data)
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			h.t.Fatalf("%s %s: %v: %s", method, path, err, data)
		}
	}
	return resp.Header
}

func (h *hall) send(method, path, body string, headers ...string) *http.Response {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func TestTaskFromSubmitToResult(t *testing.T) {
	h := open(t)
	var sub struct {
		ID     string
		Status messages.Status
		Result *messages.AgentResult
	}
	header := h.do("POST", "/v1/tasks", `{"input":"hi","labels":{"team":"search"}}`, 202, &sub)
	if sub.ID == "" || sub.Status != messages.StatusQueued || header.Get("Location") != "/v1/tasks/"+sub.ID {
		t.Errorf("%+v %v", sub, header)
	}
	h.do("POST", "/v1/tasks?wait=30s", `{"input":"hi"}`, 200, &sub, "Idempotency-Key", "order 7")
	if sub.Result == nil || sub.Result.Result != "hello" || !strings.HasPrefix(sub.ID, "key-") {
		t.Errorf("%+v", sub)
	}
	again := sub
	h.do("POST", "/v1/tasks?wait=30s", `{"input":"hi"}`, 200, &again, "Idempotency-Key", "order 7")
	if again.ID != sub.ID {
		t.Errorf("the same key made another task: %s", again.ID)
	}
	var p messages.Problem
	h.do("POST", "/v1/tasks", `{"input":"other"}`, 409, &p, "Idempotency-Key", "order 7")
	if p.Code != messages.CodeConflict {
		t.Errorf("%+v", p)
	}
	var state struct {
		Status messages.Status
		Result *messages.AgentResult
	}
	h.do("GET", "/v1/tasks/"+sub.ID, "", 200, &state)
	if state.Status != messages.StatusCompleted || state.Result == nil {
		t.Errorf("%+v", state)
	}
	h.do("GET", "/v1/tasks/"+sub.ID, "", 404, &p, "Longshore-Tenant", "other")
	var list struct {
		Runs []control.RunSummary
		Next string
	}
	h.do("GET", "/v1/tasks?status=completed&label=team=search", "", 200, &list)
	if len(list.Runs) != 1 || list.Runs[0].Labels["team"] != "search" {
		t.Errorf("%+v", list)
	}
	h.do("GET", "/v1/tasks?limit=1", "", 200, &list)
	if len(list.Runs) != 1 || list.Next == "" {
		t.Errorf("%+v", list)
	}
	if health := h.do("GET", "/healthz", "", 200, nil); health == nil {
		t.Error("no health")
	}
}

func TestCancel(t *testing.T) {
	h := open(t)
	for _, id := range []string{"one", "two"} {
		h.do("POST", "/v1/tasks", `{"id":"`+id+`","input":"wait","labels":{"k":"v"}}`, 202, nil)
		h.until(id, messages.EventStepStart)
	}
	var bulk struct{ Cancelled []string }
	var p messages.Problem
	h.do("POST", "/v1/tasks:cancel", "", 400, &p)
	h.do("POST", "/v1/tasks:cancel?status=failed", "", 400, &p)
	h.do("POST", "/v1/tasks/one/cancel", `{"reason":"no need"}`, 200, nil)
	h.until("one", messages.EventRunFinished)
	h.do("POST", "/v1/tasks:cancel?label=k=v", `{"reason":"all"}`, 200, &bulk)
	if diff := cmp.Diff([]string{"two"}, bulk.Cancelled); diff != "" {
		t.Error(diff)
	}
	h.until("two", messages.EventRunFinished)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	h.do("POST", "/v1/tasks", `{"id":"later","input":"wait","labels":{"k":"v"},"notBefore":"`+later+`"}`, 202, nil)
	h.do("GET", "/v1/tasks?until=now", "", 400, &p)
	h.do("POST", "/v1/tasks:cancel?label=k=v&until=2026-01-02T15:04:05Z", "", 200, &bulk)
	if len(bulk.Cancelled) != 0 {
		t.Errorf("submitted later: %v", bulk.Cancelled)
	}
	h.do("POST", "/v1/tasks:cancel?status=queued&label=k=v", "", 200, &bulk)
	if diff := cmp.Diff([]string{"later"}, bulk.Cancelled); diff != "" {
		t.Error(diff)
	}
	h.do("POST", "/v1/tasks/one/cancel", "", 409, &p)
	var res messages.AgentResult
	h.do("GET", "/v1/tasks/one/result", "", 200, &res)
	if res.Status != messages.StatusCancelled || !strings.Contains(res.Error.Message, "no need") {
		t.Errorf("%+v", res.Error)
	}
}

// until follows a run until an event of a name.
func (h *hall) until(id, name string) []sse {
	h.t.Helper()
	resp := h.send("GET", "/v1/tasks/"+id+"/events", "")
	defer func() { _ = resp.Body.Close() }()
	var got []sse
	for e := range events(resp.Body) {
		got = append(got, e)
		if e.name == name {
			return got
		}
	}
	h.t.Fatalf("the stream of %s ended without %s: %v", id, name, got)
	return nil
}

type sse struct{ id, name, data string }

// events reads a stream of server-sent events; comments are left out.
func events(r io.Reader) func(func(sse) bool) {
	return func(yield func(sse) bool) {
		var e sse
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" && !yield(e) {
					return
				}
				e = sse{}
			}
		}
	}
}

func TestEventsReplayAndResume(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hi"}`, 200, nil)
	all := h.until("r", messages.EventRunFinished)
	for i, e := range all {
		var event messages.Event
		if err := json.Unmarshal([]byte(e.data), &event); err != nil || event.Sequence != e.id || event.Name() != e.name {
			t.Errorf("event %d: %v %+v", i, err, e)
		}
	}
	resp := h.send("GET", "/v1/tasks/r/events", "", "Last-Event-ID", all[1].id)
	var rest []sse
	for e := range events(resp.Body) {
		rest = append(rest, e)
	}
	_ = resp.Body.Close()
	if diff := cmp.Diff(all[2:], rest, cmp.AllowUnexported(sse{})); diff != "" {
		t.Error(diff)
	}
	resp = h.send("GET", "/v1/tasks/r/events?types=step_start,run_finished", "")
	var names []string
	for e := range events(resp.Body) {
		names = append(names, e.name)
	}
	_ = resp.Body.Close()
	if diff := cmp.Diff([]string{"step_start", "run_finished"}, names); diff != "" {
		t.Error(diff)
	}
	h.do("GET", "/v1/tasks/unknown/events", "", 404, nil)
	h.do("GET", "/v1/tasks/r/events?after=x", "", 400, nil)
	last := all[len(all)-1].id
	h.do("GET", "/v1/tasks/r/events", "", http.StatusNoContent, nil, "Last-Event-ID", last)
	h.do("GET", "/v1/tasks/r/events?types=plan", "", http.StatusNoContent, nil)
	h.do("GET", "/v1/tasks/r/events?format=ag-ui", "", http.StatusNoContent, nil, "Last-Event-ID", last)
	var p messages.Problem
	h.do("GET", "/v1/tasks/r/events?types=run_finished,nope", "", 400, &p)
	if p.Field != "types" || !strings.Contains(p.Detail, `"nope"`) || !strings.Contains(p.Detail, "step_end, plan") {
		t.Errorf("%+v", p)
	}
}

// The event error has a name that does not collide with the error of EventSource, unless the old one is asked for.
func TestRunErrorHasANameOfItsOwn(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"fail"}`, 200, nil)
	for query, want := range map[string]string{"types=run_error": "run_error", "types=error": "error", "types=error,run_error": "run_error", "after=0": "run_error"} {
		resp := h.send("GET", "/v1/tasks/r/events?"+query, "")
		var names []string
		for e := range events(resp.Body) {
			if strings.HasSuffix(e.name, "error") {
				names = append(names, e.name)
				if !strings.Contains(e.data, `"type":"longshore.error.v1"`) {
					t.Error(e.data)
				}
			}
		}
		_ = resp.Body.Close()
		if diff := cmp.Diff([]string{want}, names); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

// A dispatcher that stops ends its streams, so that clients go elsewhere and it can go.
func TestStopEndsStreams(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks", `{"id":"r","input":"wait"}`, 202, nil)
	resp := h.send("GET", "/v1/tasks/r/events", "")
	defer func() { _ = resp.Body.Close() }()
	stopped := make(chan error, 1)
	for e := range events(resp.Body) {
		if e.name == messages.EventStepStart {
			go func() { stopped <- h.dev.Stop() }()
		}
	}
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it does not stop")
	}
}

func TestProblems(t *testing.T) {
	h := open(t)
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		code               messages.Code
		field              string
	}{
		"not JSON":          {"POST", "/v1/tasks", `{`, 400, "invalid_input", "task"},
		"nothing":           {"POST", "/v1/tasks", ``, 400, "invalid_input", "task"},
		"an unknown field":  {"POST", "/v1/tasks", `{"input":"x","inptu":"y"}`, 400, "invalid_input", "inptu"},
		"no input":          {"POST", "/v1/tasks", `{}`, 400, "invalid_input", "input"},
		"an unknown agent":  {"POST", "/v1/tasks", `{"input":"x","agent":"unknown"}`, 400, "unknown_agent", "agent"},
		"a hostile id":      {"POST", "/v1/tasks", `{"input":"x","id":"a.>"}`, 400, "invalid_input", "id"},
		"too long a wait":   {"POST", "/v1/tasks?wait=10m", `{"input":"x"}`, 400, "invalid_input", "wait"},
		"a wrong parameter": {"GET", "/v1/tasks?stauts=failed", ``, 400, "invalid_input", "stauts"},
		"one twice":         {"GET", "/v1/tasks?limit=1&limit=2", ``, 400, "invalid_input", "limit"},
		"a wrong status":    {"GET", "/v1/tasks?status=odd", ``, 400, "invalid_input", "status"},
		"a wrong limit":     {"GET", "/v1/tasks?limit=0", ``, 400, "invalid_input", "limit"},
		"a wrong label":     {"GET", "/v1/tasks?label=x", ``, 400, "invalid_input", "label"},
		"a wrong time":      {"GET", "/v1/tasks?since=yesterday", ``, 400, "invalid_input", "since"},
		"a wrong cursor":    {"GET", "/v1/tasks?after=*", ``, 400, "invalid_input", "after"},
		"no such run":       {"GET", "/v1/tasks/none", ``, 404, "not_found", ""},
		"a hostile run":     {"GET", "/v1/tasks/%3E", ``, 400, "invalid_input", "id"},
		"no such agent":     {"GET", "/v1/agents/none", ``, 404, "unknown_agent", ""},
		"no such path":      {"GET", "/v2", ``, 404, "not_found", ""},
		"another method":    {"DELETE", "/v1/tasks", ``, 405, "invalid_input", ""},
		"a long reason":     {"POST", "/v1/tasks/none/cancel", `{"reason":"` + strings.Repeat("x", 2000) + `"}`, 400, "invalid_input", "reason"},
		"a long body":       {"POST", "/v1/tasks", strings.Repeat("x", 5<<20), 413, "invalid_input", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hall{t, h.dev, h.url}
			var p messages.Problem
			header := h.do(tc.method, tc.path, tc.body, tc.status, &p)
			if p.Code != tc.code || p.Field != tc.field || p.Status != tc.status || p.Detail == "" {
				t.Errorf("%+v", p)
			}
			if ct := header.Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("content type %q", ct)
			}
		})
	}
	h.do("POST", "/v1/tasks", "<a/>", 415, nil, "Content-Type", "text/xml")
	h.do("GET", "/v1/agents", "", 400, nil, "Longshore-Tenant", "a.b")
	h.do("GET", "/v1/agents", "", 400, nil, "Longshore-Tenant", "acme", "Longshore-Tenant", "default")
}

func TestOpenAPIIsGolden(t *testing.T) {
	h := open(t)
	resp := h.send("GET", "/openapi.json", "")
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/openapi.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the document changed; run go test ./dispatcher/api -update\n%s", cmp.Diff(string(want), string(got)))
	}
	// Every operation of the document answers, and no other.
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		path = strings.NewReplacer("{id}", "none", "{name}", "none", "{workspace}", "none").Replace(path)
		for method := range methods {
			resp := h.send(strings.ToUpper(method), path, "")
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode >= 500 {
				t.Errorf("%s %s: %s", method, path, resp.Status)
			}
		}
	}
}

// Many watchers of one run cost one subscription, and each gets every event.
func TestManyWatchers(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks", `{"id":"crowd","input":"wait"}`, 202, nil)
	h.until("crowd", messages.EventStepStart)
	const watchers = 50
	done := make(chan string, watchers)
	for range watchers {
		resp := h.send("GET", "/v1/tasks/crowd/events", "")
		go func() {
			defer func() { _ = resp.Body.Close() }()
			var names []string
			for e := range events(resp.Body) {
				names = append(names, e.name)
			}
			done <- fmt.Sprint(len(names), " ", names[len(names)-1])
		}()
	}
	h.do("POST", "/v1/tasks/crowd/cancel", "", 200, nil)
	first := ""
	for range watchers {
		select {
		case got := <-done:
			if first == "" {
				first = got
			}
			if got != first || !strings.HasSuffix(got, messages.EventRunFinished) {
				t.Errorf("got %s, another %s", got, first)
			}
		case <-time.After(patience):
			t.Fatal("a watcher waits")
		}
	}
}

// A stream shows the events of a run by their numbers, however they are stored.
func TestEventsStoredOutOfOrder(t *testing.T) {
	h := open(t)
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	streams := len(bustest.EventStreams(t, nc))
	for name, order := range map[string]func([]sse){
		"backwards": slices.Reverse[[]sse],
		"end-first": func(e []sse) { slices.SortStableFunc(e, func(a, b sse) int { return endFirst(a) - endFirst(b) }) },
	} {
		h.do("POST", "/v1/tasks?wait=30s", fmt.Sprintf(`{"id":%q,"input":"hi"}`, name), 200, nil)
		want := h.until(name, messages.EventRunFinished)
		if err := js.PurgeStream(bus.PartitionName(bus.StreamEvents, bus.PartitionOf(messages.Ref{Tenant: "default", Run: name}, streams), streams), &nats.StreamPurgeRequest{Subject: "events.default." + name + ".>"}); err != nil {
			t.Fatal(err)
		}
		stored := slices.Clone(want)
		order(stored)
		for _, e := range stored {
			if _, err := js.Publish(bustest.EventsAt(t, nc, "events.default."+name+"."+e.name), []byte(e.data)); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, h.until(name, messages.EventRunFinished), cmp.AllowUnexported(sse{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// endFirst puts the end of a run before all else.
func endFirst(e sse) int {
	if e.name == messages.EventRunFinished {
		return 0
	}
	return 1
}

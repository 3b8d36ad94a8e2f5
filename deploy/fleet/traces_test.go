//go:build unix

package fleet_test

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/traces/tracestest"
)

const (
	traceOfTests = "4bf92f3577b34da6a3ce929d0e0e4736"
	submitter    = "00-" + traceOfTests + "-00f067aa0ba902b7-01"
)

// A worker is killed in a tool call, another one continues: one tree under the submitter's span, nothing twice, nothing
// without a parent.
func TestTraceOfAKilledRun(t *testing.T) {
	t.Parallel()
	collector := tracestest.Start(t)
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "gate", Args: "{}"}
		}
		return reply{Text: "Done: " + c.Last}
	}, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=s3cret-of-traces")
	gate := newGate(t)
	first := w.toolWorker("first", gateVariable+"="+gate.URL)
	g := w.watch(w.submit("work", withTools, func(task *messages.Task) { task.Traceparent = submitter }))
	gate.call(t)
	w.toolWorker("second", gateVariable+"="+gate.URL)
	r, _ := killOwner(t, first, g, "first", "second")
	completed(t, r, "Done: passed")
	all := collector.Await(6)
	want := "(00f067aa0ba902b7) invoke_agent tools\n  step 1\n    chat fake\n    execute_tool gate\n  step 2\n    chat fake\n"
	if diff := cmp.Diff(want, collector.Tree()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	for _, s := range all {
		if hex.EncodeToString(s.GetTraceId()) != traceOfTests {
			t.Errorf("%s is in another trace", s.GetName())
		}
	}
	if got := collector.Headers().Get("Api-Key"); got != "s3cret-of-traces" {
		t.Errorf("the header is %q", got)
	}
}

// A run is below the tool call with which its parent delegated, also when that is cut off by a cancel.
func TestTraceOfATree(t *testing.T) {
	t.Parallel()
	collector := tracestest.Start(t)
	w, _ := openTree(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	w.worker("ww")
	delegates := func(task *messages.Task) { task.Agent, task.Traceparent = "delegates", submitter }
	root := w.watch(w.submit("root", delegates))
	for range 2 {
		w.model.next(t).answer <- reply{Text: "done"}
	}
	root.end()
	call := "invoke_agent delegates/step 1/execute_tool delegate/"
	run := func(above, agent string, more ...string) (out []string) {
		for _, name := range append([]string{"", "/step 1", "/step 1/chat fake"}, more...) {
			out = append(out, above+"invoke_agent "+agent+name)
		}
		return out
	}
	whole := []string{"/step 1/execute_tool delegate", "/wait children", "/step 2", "/step 2/chat fake"}
	want := slices.Concat(run("", "delegates", whole...), run(call, "leaf"), run(call, "delegates", whole...), run(call+call, "leaf"))
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), paths(collector.Await(len(want)))); diff != "" {
		t.Errorf("the tree: %s", diff)
	}

	twins := w.watch(w.submit("twins", delegates))
	w.model.next(t)
	w.model.next(t)
	if _, err := w.client.Cancel(t.Context(), twins.run, "enough"); err != nil {
		t.Fatal(err)
	}
	twins.end()
	cut := run("", "delegates", "/step 1/execute_tool delegate", "/wait children")
	leaf := run(call, "leaf")[:2] // its model call has not ended
	want = slices.Concat(want, cut, leaf, leaf)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), paths(collector.Await(len(want)))); diff != "" {
		t.Errorf("with one that is cancelled: %s", diff)
	}
}

// paths are the names of spans, each after those that it is below, in order of the text.
func paths(all []*tracepb.Span) (out []string) {
	byID := map[string]*tracepb.Span{}
	for _, s := range all {
		byID[string(s.GetSpanId())] = s
	}
	for _, s := range all {
		path := s.GetName()
		for above := byID[string(s.GetParentSpanId())]; above != nil; above = byID[string(above.GetParentSpanId())] {
			path = above.GetName() + "/" + path
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// However a task comes, its run is in the trace that came with it, and what the fleet sends says so.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	collector := tracestest.Start(t)
	called := make(chan http.Header, 8)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.Header }))
	t.Cleanup(receiver.Close)
	d, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{
			Runs: settings.Runs{Slots: 4, DrainTimeout: time.Second, MaxAttempts: 5, ModelTimeout: time.Minute},
			Serving: settings.Serving{
				AckWait: 30 * time.Second, Retention: time.Hour, LiteTimeout: time.Minute,
				Traces: settings.Traces{OTLP: collector.URL},
				Webhooks: settings.Webhooks{
					WebhookSecret: "a secret of more than 24 characters", WebhookHosts: []string{strings.TrimPrefix(receiver.URL, "http://")},
				},
			},
		}, Sweep: time.Minute, Version: "test",
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	nc, err := bus.Connect(t.Context(), bus.ConnConfig{URL: d.NATS, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	client, err := d.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventStreams := bustest.EventStreams(t, nc)
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	body := func(id, more string) string { return `{"id":"` + id + `","input":"hello"` + more + `}` }
	over := func(id, header, more string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+d.API+"/v1/tasks", strings.NewReader(body(id, more)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %s", id, resp.Status)
		}
		return resp.Body.Close()
	}
	other := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for id, tc := range map[string]struct {
		submit func(id string) error
		own    bool // the run is in a trace of its own
	}{
		"http":         {func(id string) error { return over(id, submitter, "") }, false},
		"http-body":    {func(id string) error { return over(id, other, `,"traceparent":"`+submitter+`"`) }, false},
		"http-hostile": {func(id string) error { return over(id, "00-0-0-'; drop", "") }, true},
		"http-hook":    {func(id string) error { return over(id, submitter, `,"webhook":{"url":"`+receiver.URL+`"}`) }, false},
		"nats": {func(id string) error {
			m := nats.NewMsg("tasks.normal.default." + id)
			m.Data, m.Header = []byte(`{"input":"hello"}`), nats.Header{"traceparent": {submitter}}
			_, err := js.PublishMsg(m)
			return err
		}, false},
		"nats-hostile": {func(id string) error {
			m := nats.NewMsg("tasks.normal.default." + id)
			m.Data, m.Header = []byte(`{"input":"hello"}`), nats.Header{"traceparent": {strings.Repeat("f", 900)}}
			_, err := js.PublishMsg(m)
			return err
		}, true},
		"service": {func(id string) error {
			m := nats.NewMsg(control.SubjectSubmit)
			m.Data, m.Header = []byte(body(id, "")), nats.Header{"traceparent": {submitter}}
			_, err := nc.RequestMsgWithContext(t.Context(), m)
			return err
		}, false},
		"client": {func(id string) error {
			_, err := client.Submit(t.Context(), messages.Task{ID: id, Input: messages.TextInput("hello"), Traceparent: submitter})
			return err
		}, false},
	} {
		if err := tc.submit(id); err != nil {
			t.Fatal(id, err)
		}
		run := messages.Ref{Tenant: messages.DefaultTenant, Run: id}
		if _, err := client.Wait(t.Context(), run); err != nil {
			t.Fatal(id, err)
		}
		want := messages.RunTrace(run, submitter).String()
		if tc.own {
			want = ""
		}
		m, err := js.GetLastMsg(eventStreams[bus.PartitionOf(run, len(eventStreams))], run.EventSubject(messages.EventRunFinished))
		if err != nil {
			t.Fatal(id, err)
		}
		var e messages.Event
		if err := json.Unmarshal(m.Data, &e); err != nil || e.Traceparent != want || m.Header.Get("traceparent") != want {
			t.Errorf("%s: run_finished says %q in its body and %q in its header, want %q", id, e.Traceparent, m.Header.Get("traceparent"), want)
		}
		m, err = js.GetLastMsg(eventStreams[bus.PartitionOf(run, len(eventStreams))], run.EventSubject(messages.EventStepStart))
		if err != nil || m.Header.Get("traceparent") != want {
			t.Errorf("%s: step_start says %q in its header, want %q: %v", id, m.Header.Get("traceparent"), want, err)
		}
	}
	want := messages.RunTrace(messages.Ref{Tenant: messages.DefaultTenant, Run: "http-hook"}, submitter).String()
	select {
	case h := <-called:
		if got := h.Get("traceparent"); got != want {
			t.Errorf("the webhook says %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Error("no webhook comes")
	}
	for ends := time.Now().Add(patience); !lagShows(t, d.API, "traces"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(ends) {
			t.Fatal("the metrics do not tell the lag")
		}
	}
}

func lagShows(t *testing.T, addr, consumer string) bool {
	t.Helper()
	metrics, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	var text strings.Builder
	if err := metrics.Write(&text); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(text.String(), "\nlongshore_consumer_lag{consumer=\""+consumer+"\"} ")
}

package observability_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/observability"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ref  = messages.Ref{Tenant: "acme", Run: "r1"}
)

// run is what the events of a run are derived from, as a worker does.
func run(t *testing.T, records ...record.Record) []messages.Event {
	t.Helper()
	head := record.Follow(record.Head{}, records...)
	head.ID, head.Time = "e1", noon
	return record.Events(ref, record.Entry{Seq: 1, Head: head, Records: records})
}

func wholeRun(t *testing.T) []messages.Event {
	t.Helper()
	usage := messages.Usage{Input: 100, Output: 20, CacheRead: 50, Reasoning: 5, Total: 120}
	return run(t,
		&record.Started{
			Task:  messages.Task{Agent: "reviewer", Input: messages.Input{{Text: "Hello."}}},
			Agent: messages.Definition{Name: "reviewer", Revision: 1}, QueuedAt: noon.Add(-40 * time.Millisecond),
		},
		&record.StepStarted{Step: 1},
		&record.ModelReplied{
			Step: 1, Message: messages.Message{Role: messages.RoleAssistant}, Stop: messages.StopToolCalls, Usage: usage,
			Provider: "openai", Model: "gpt-4o", Millis: 900, FirstTokenMillis: 300, Cost: new(0.25),
		},
		&record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "c1", Name: "read_file", Arguments: "{}"}},
		&record.ToolReturned{Step: 1, Name: "read_file", Result: messages.ToolResult{CallID: "c1"}, Millis: 30},
		&record.ToolReturned{
			Step: 1, Name: "read_file", Result: messages.ToolResult{CallID: "c2", IsError: true}, Code: messages.CodeToolFailed,
		},
		&record.ToolReturned{Step: 1, Name: "made_up", Result: messages.ToolResult{CallID: "c3", IsError: true}},
		&record.Parked{Reason: "approval", Call: "c4"},
		&record.Claimed{Claim: "k2", Worker: "w1", Resumes: "approval"},
		&record.CancelRequested{By: "ann"},
		&record.ModelFailed{Step: 2, Error: messages.RunError{Code: messages.CodeModelTimeout, Message: "no answer"}},
		&record.StepEnded{Step: 1, Status: "failed"},
		&record.Finished{Result: messages.AgentResult{
			ID: ref.Run, Status: messages.StatusFailed, Error: &messages.RunError{Code: messages.CodeModelTimeout},
			StartedAt: noon, FinishedAt: noon.Add(3 * time.Second), Steps: 2,
			Provenance: &messages.Provenance{Agent: "reviewer", Revision: 1},
		}},
	)
}

// counted are metrics with those of events.
type counted struct {
	m *observability.Metrics
	*observability.Events
}

func (c counted) metrics() *observability.Metrics { return c.m }

func counting(version string) counted {
	m := observability.NewMetrics(version)
	return counted{m, observability.NewEvents(m)}
}

// plain are metrics without those of events.
type plain struct{ *observability.Metrics }

func (p plain) metrics() *observability.Metrics { return p.Metrics }

type scraped interface{ metrics() *observability.Metrics }

// serve makes metrics readable.
func serve(t *testing.T, m scraped) string {
	t.Helper()
	s := httptest.NewServer(observability.Handler(m.metrics(), nil))
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s.URL + "/metrics"
}

func compare(t *testing.T, m scraped, want string, names ...string) {
	t.Helper()
	if err := testutil.ScrapeAndCompare(serve(t, m), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestObserveRun(t *testing.T) {
	m := counting("1.2.3")
	events := wholeRun(t)
	for _, e := range events {
		m.Observe(e, false)
	}
	compare(t, m, `
# HELP longshore_build_info The running version: always 1.
# TYPE longshore_build_info gauge
longshore_build_info{version="1.2.3"} 1
# HELP longshore_cancels_total Requests to cancel a run.
# TYPE longshore_cancels_total counter
longshore_cancels_total 1
# HELP longshore_events_malformed_total Events that could not be read and are not counted elsewhere.
# TYPE longshore_events_malformed_total counter
longshore_events_malformed_total 0
# HELP longshore_events_seen_total Events that were consumed.
# TYPE longshore_events_seen_total counter
longshore_events_seen_total{name="cancel_requested"} 1
longshore_events_seen_total{name="error"} 1
longshore_events_seen_total{name="message_end"} 1
longshore_events_seen_total{name="run_finished"} 1
longshore_events_seen_total{name="run_queued"} 1
longshore_events_seen_total{name="run_resumed"} 1
longshore_events_seen_total{name="run_started"} 1
longshore_events_seen_total{name="run_waiting"} 1
longshore_events_seen_total{name="step_end"} 1
longshore_events_seen_total{name="step_start"} 1
longshore_events_seen_total{name="tool_execution_end"} 3
longshore_events_seen_total{name="tool_execution_start"} 1
longshore_events_seen_total{name="turn_end"} 1
# HELP longshore_model_calls_total Model calls that were answered.
# TYPE longshore_model_calls_total counter
longshore_model_calls_total{model="gpt-4o",provider="openai",stop="tool_calls"} 1
# HELP longshore_model_failures_total Model calls that failed permanently.
# TYPE longshore_model_failures_total counter
longshore_model_failures_total{code="model_timeout"} 1
# HELP longshore_model_tokens_total Tokens of model calls; with some providers cache and reasoning tokens are part of the others.
# TYPE longshore_model_tokens_total counter
longshore_model_tokens_total{kind="cache_read",model="gpt-4o",provider="openai"} 50
longshore_model_tokens_total{kind="cache_write",model="gpt-4o",provider="openai"} 0
longshore_model_tokens_total{kind="input",model="gpt-4o",provider="openai"} 100
longshore_model_tokens_total{kind="output",model="gpt-4o",provider="openai"} 20
longshore_model_tokens_total{kind="reasoning",model="gpt-4o",provider="openai"} 5
# HELP longshore_run_steps Steps of a run that ended.
# TYPE longshore_run_steps histogram
longshore_run_steps_bucket{le="1"} 0
longshore_run_steps_bucket{le="2"} 1
longshore_run_steps_bucket{le="3"} 1
longshore_run_steps_bucket{le="5"} 1
longshore_run_steps_bucket{le="8"} 1
longshore_run_steps_bucket{le="13"} 1
longshore_run_steps_bucket{le="21"} 1
longshore_run_steps_bucket{le="34"} 1
longshore_run_steps_bucket{le="55"} 1
longshore_run_steps_bucket{le="100"} 1
longshore_run_steps_bucket{le="+Inf"} 1
longshore_run_steps_sum 2
longshore_run_steps_count 1
# HELP longshore_runs_finished_total Runs that ended; the code says why one failed.
# TYPE longshore_runs_finished_total counter
longshore_runs_finished_total{agent="reviewer",code="model_timeout",status="failed"} 1
# HELP longshore_runs_started_total Runs that were started.
# TYPE longshore_runs_started_total counter
longshore_runs_started_total{agent="reviewer"} 1
# HELP longshore_runs_waiting_total Times that a run started to wait.
# TYPE longshore_runs_waiting_total counter
longshore_runs_waiting_total{reason="approval"} 1
# HELP longshore_tool_calls_total Tool calls; the outcome is ok or the error code.
# TYPE longshore_tool_calls_total counter
longshore_tool_calls_total{outcome="error",tool="other"} 1
longshore_tool_calls_total{outcome="ok",tool="read_file"} 1
longshore_tool_calls_total{outcome="tool_failed",tool="read_file"} 1
`, "longshore_build_info", "longshore_cancels_total", "longshore_events_malformed_total", "longshore_events_seen_total",
		"longshore_model_calls_total", "longshore_model_failures_total", "longshore_model_tokens_total", "longshore_run_steps",
		"longshore_runs_finished_total", "longshore_runs_started_total", "longshore_runs_waiting_total", "longshore_tool_calls_total")

	text := scrape(t, m)
	for _, want := range []string{
		"longshore_time_to_first_event_seconds_sum 0.04\n", "longshore_time_to_first_event_seconds_count 1\n",
		`longshore_run_duration_seconds_sum{status="failed"} 3` + "\n",
		`longshore_model_call_seconds_sum{model="gpt-4o",provider="openai"} 0.9` + "\n",
		`longshore_tool_call_seconds_sum{tool="read_file"} 0.03` + "\n", `longshore_tool_call_seconds_count{tool="read_file"} 2` + "\n",
		`longshore_time_to_first_token_seconds_sum{model="gpt-4o",provider="openai"} 0.3` + "\n",
		`longshore_model_cost_usd_total{model="gpt-4o",provider="openai"} 0.25` + "\n",
		`longshore_runs_resumed_total{reason="approval"} 1` + "\n",
		"go_goroutines ", "process_cpu_seconds_total ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, never := range []string{ref.Run, ref.Tenant} {
		if strings.Contains(text, `"`+never+`"`) {
			t.Errorf("%q is a label", never)
		}
	}
}

func scrape(t *testing.T, m scraped) string {
	t.Helper()
	w := httptest.NewRecorder()
	observability.Handler(m.metrics(), nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetricsHaveNoLint(t *testing.T) {
	m := counting("")
	if err := m.m.Gauge("worker_slots", "Slots of the worker.", func() float64 { return 64 }); err != nil {
		t.Fatal(err)
	}
	for _, e := range wholeRun(t) {
		m.Observe(e, false)
	}
	problems, err := promlint.New(strings.NewReader(scrape(t, m))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "longshore_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func event(t *testing.T, name string, data any) messages.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return messages.Event{SpecVersion: "1.0", Type: "longshore." + name + ".v1", Time: noon, Data: raw}
}

func TestObserveBoundsLabels(t *testing.T) {
	m := counting("")
	long := strings.Repeat("x", 400)
	for i := range 1000 {
		name := fmt.Sprintf("name-%d", i)
		m.Observe(event(t, messages.EventToolExecutionEnd, messages.ToolExecution{ToolName: "made-up-" + name, IsError: true}), false)
		m.Observe(event(t, messages.EventRunStarted, messages.RunStarted{Agent: name}), false)
		m.Observe(event(t, messages.EventRunWaiting, messages.RunWaiting{Reason: name}), false)
		m.Observe(event(t, messages.EventToolExecutionEnd, messages.ToolExecution{ToolName: name}), false)
		m.Observe(event(t, messages.EventMessageEnd, messages.MessageEnd{Provider: "p" + name, Model: name, Stop: messages.StopReason(name)}), false)
		m.Observe(event(t, messages.EventError, messages.ErrorData{Code: messages.Code(name)}), false)
		m.Observe(event(t, name, nil), false)
	}
	m.Observe(event(t, messages.EventRunStarted, messages.RunStarted{Agent: long}), false)
	m.Observe(event(t, messages.EventMessageEnd, messages.MessageEnd{Model: long}), false)
	m.Observe(event(t, messages.EventRunStarted, messages.RunStarted{Agent: "name-7"}), false)
	for _, r := range queue.ParkReasons() { // a worker's own reasons are never crowded out
		m.Observe(event(t, messages.EventRunWaiting, messages.RunWaiting{Reason: r.Reason}), false)
	}

	text := scrape(t, m)
	for metric, want := range map[string]int{
		"longshore_runs_started_total": 201, "longshore_runs_waiting_total": 201, "longshore_tool_calls_total": 202,
		"longshore_tool_call_seconds_count": 201, "longshore_model_calls_total": 201, "longshore_model_call_seconds_count": 201,
		"longshore_model_tokens_total": 5 * 201, "longshore_model_failures_total": 1, "longshore_events_seen_total": 6,
	} {
		if got := strings.Count(text, "\n"+metric+"{"); got != want {
			t.Errorf("%s has %d series, want %d", metric, got, want)
		}
	}
	for _, want := range []string{
		`longshore_runs_started_total{agent="other"} 801`, `longshore_runs_started_total{agent="name-7"} 2`,
		`longshore_runs_waiting_total{reason="notBefore"} 1`, `longshore_runs_waiting_total{reason="session"} 1`,
		`longshore_events_seen_total{name="other"} 1000`, `longshore_model_failures_total{code="other"} 1000`,
		`longshore_model_calls_total{model="other",provider="other",stop="other"} 801`,
		`longshore_tool_calls_total{outcome="error",tool="other"} 1000`, `longshore_tool_calls_total{outcome="ok",tool="other"} 800`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(text, long) {
		t.Error("a long name is a label")
	}
}

// An event of a newer worker counts as it would without the fields that are new.
func TestObserveNewerEvent(t *testing.T) {
	newer, same := counting(""), counting("")
	e := event(t, messages.EventRunStarted, messages.RunStarted{Agent: "a", MaxSteps: 3})
	same.Observe(e, false)
	e.Data = json.RawMessage(strings.Replace(string(e.Data), "{", `{"mood":{"of":["the crew"]},`, 1))
	newer.Observe(e, false)
	if diff := cmp.Diff(ours(scrape(t, same)), ours(scrape(t, newer))); diff != "" {
		t.Error(diff)
	}
}

func TestObserveMalformed(t *testing.T) {
	finished := func(change func(*messages.AgentResult)) any {
		r := messages.AgentResult{Status: messages.StatusCompleted, StartedAt: noon, FinishedAt: noon}
		change(&r)
		return messages.RunFinished{Result: r}
	}
	raw := func(name, data string) messages.Event {
		return messages.Event{Type: "longshore." + name + ".v1", Time: noon, Data: json.RawMessage(data)}
	}
	cases := map[string]messages.Event{
		"no data":           raw(messages.EventRunStarted, ""),
		"null":              raw(messages.EventRunStarted, "null"),
		"not JSON":          raw(messages.EventMessageEnd, "{"),
		"another type":      raw(messages.EventToolExecutionEnd, `{"millis":"3"}`),
		"not UTF-8":         raw(messages.EventRunWaiting, "{\"reason\":\"\xff\"}"),
		"too deep":          raw(messages.EventRunFinished, strings.Repeat(`{"result":`, 100)),
		"negative tokens":   event(t, messages.EventMessageEnd, messages.MessageEnd{Usage: messages.Usage{Output: -1}}),
		"negative time":     event(t, messages.EventMessageEnd, messages.MessageEnd{Millis: -1}),
		"negative first":    event(t, messages.EventMessageEnd, messages.MessageEnd{Millis: 1, FirstTokenMillis: -1}),
		"negative cost":     event(t, messages.EventMessageEnd, messages.MessageEnd{Cost: new(-1.0)}),
		"resumed nothing":   raw(messages.EventRunResumed, `[]`),
		"decided nothing":   raw(messages.EventApprovalDecided, `[]`),
		"warned of nothing": raw(messages.EventBudgetWarning, `[]`),
		"negative recall":   event(t, messages.EventMemoryRecalled, messages.MemoryRecalled{Millis: -1}),
		"negative tool":     event(t, messages.EventToolExecutionEnd, messages.ToolExecution{Millis: -1}),
		"never queued":      event(t, messages.EventRunQueued, messages.RunQueued{Agent: "a"}),
		"not ended":         event(t, messages.EventRunFinished, finished(func(r *messages.AgentResult) { r.Status = messages.StatusRunning })),
		"never started":     event(t, messages.EventRunFinished, finished(func(r *messages.AgentResult) { r.StartedAt = time.Time{} })),
		"negative steps":    event(t, messages.EventRunFinished, finished(func(r *messages.AgentResult) { r.Steps = -1 })),
		"start of nothing":  raw(messages.EventToolExecutionStart, `[]`),
	}
	for name, e := range cases {
		t.Run(name, func(t *testing.T) {
			m := counting("")
			before := ours(scrape(t, m))
			m.Observe(e, false)
			want := strings.Replace(before, "malformed_total 0", "malformed_total 1", 1) +
				fmt.Sprintf("longshore_events_seen_total{name=%q} 1\n", e.Name())
			if got := ours(scrape(t, m)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// ours are the lines of our own metrics, those of events seen at the end.
func ours(text string) string {
	var lines, seen strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "longshore_events_seen_total"):
			seen.WriteString(line)
		case strings.HasPrefix(line, "longshore_"):
			lines.WriteString(line)
		}
	}
	return lines.String() + seen.String()
}

func TestObserveForeignEvents(t *testing.T) {
	m := counting("")
	for _, e := range []messages.Event{
		{},
		{Type: "com.example.thing"},
		{Type: "longshore.run_started.v2", Data: json.RawMessage(`{"new":1}`)},
		{Type: "longshore.\xff.v1", Data: json.RawMessage("\xff")},
		{Type: messages.EventRunStarted + "x", Data: json.RawMessage("[")},
	} {
		m.Observe(e, false)
	}
	text := ours(scrape(t, m))
	if !strings.Contains(text, `longshore_events_seen_total{name="other"} 5`) || !strings.Contains(text, "malformed_total 0") {
		t.Error(text)
	}
}

func TestObserveClocksThatDisagree(t *testing.T) {
	m := counting("")
	m.Observe(event(t, messages.EventRunQueued, messages.RunQueued{QueuedAt: noon.Add(time.Second)}), false)
	m.Observe(event(t, messages.EventRunFinished, messages.RunFinished{Result: messages.AgentResult{
		Status: messages.StatusCompleted, StartedAt: noon, FinishedAt: noon.Add(-time.Second),
	}}), false)
	text := scrape(t, m)
	for _, want := range []string{
		"longshore_time_to_first_event_seconds_sum 0\n", "longshore_time_to_first_event_seconds_count 1\n",
		`longshore_run_duration_seconds_sum{status="completed"} 0` + "\n",
		`longshore_runs_finished_total{agent="unknown",code="none",status="completed"} 1` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestObserveWhatWasNotPaid(t *testing.T) {
	m := counting("")
	call := messages.MessageEnd{Provider: "p", Model: "m", Stop: messages.StopEnd, Millis: 10}
	cached, free := call, call
	cached.Cached, cached.Cost, cached.FirstTokenMillis = true, new(0.0), 5
	free.Cost = new(0.0)
	for _, d := range []messages.MessageEnd{call, cached, free} {
		m.Observe(event(t, messages.EventMessageEnd, d), false)
	}
	m.Observe(event(t, messages.EventToolExecutionEnd, messages.ToolExecution{ToolName: "x", IsError: true, Code: messages.CodePolicy}), false)
	m.Observe(event(t, messages.EventToolExecutionEnd, messages.ToolExecution{ToolName: "x", Code: messages.CodePolicy}), false) // it was no error
	m.Observe(event(t, messages.EventRunFinished, messages.RunFinished{Result: messages.AgentResult{
		Status: messages.StatusFailed, Error: &messages.RunError{Code: messages.CodePolicy}, StartedAt: noon, FinishedAt: noon,
	}}), false)
	m.Observe(event(t, messages.EventApprovalRequested, map[string]any{}), false)
	for _, decision := range []string{"approved", "denied", "expired", "made up", "made up too"} {
		m.Observe(event(t, messages.EventApprovalDecided, messages.ApprovalDecided{Decision: decision}), false)
	}
	m.Observe(event(t, messages.EventBudgetWarning, messages.BudgetWarning{Limit: messages.CapCost}), false)
	m.Observe(event(t, messages.EventBudgetWarning, messages.BudgetWarning{Limit: "made up"}), false)
	m.Observe(event(t, messages.EventHookFailed, map[string]any{}), true)
	for _, d := range []messages.MemoryRecalled{{Error: "away", Millis: 3000}, {}, {Memories: []messages.MemoryShown{{}}, Millis: 20}} {
		m.Observe(event(t, messages.EventMemoryRecalled, d), false)
	}
	text := scrape(t, m)
	for _, want := range []string{
		`model_calls_total{model="m",provider="p",stop="end"} 3`, `model_calls_cached_total{model="m",provider="p"} 1`,
		`model_calls_unpriced_total{model="m",provider="p"} 1`, `model_cost_usd_total{model="m",provider="p"} 0`,
		`model_call_seconds_count{model="m",provider="p"} 2`, `policy_blocks_total{of="tool"} 1`, `policy_blocks_total{of="run"} 1`,
		`approvals_requested_total 1`, `approvals_decided_total{decision="approved"} 1`, `approvals_decided_total{decision="other"} 2`,
		`budget_warnings_total{limit="cost"} 1`, `budget_warnings_total{limit="other"} 1`, `hook_failures_total 1`, `events_again_total 1`,
		`recalls_total{result="failed"} 1`, `recalls_total{result="miss"} 1`, `recalls_total{result="hit"} 1`, "recall_seconds_count 3",
	} {
		if !strings.Contains(text, "\nlongshore_"+want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(text, "first_token_seconds_count{") {
		t.Error("the reply cache has a time to first token")
	}
}

func TestCountersBy(t *testing.T) {
	m := plain{observability.NewMetrics("")}
	if err := m.CountersBy("retries_total", "Retries.", "code", func() map[string]uint64 { return map[string]uint64{"a": 1, "b": 2} }); err != nil {
		t.Fatal(err)
	}
	if text := scrape(t, m); !strings.Contains(text, `longshore_retries_total{code="b"} 2`) {
		t.Error(text)
	}
	if err := m.Counter("retries_total", "Twice.", func() float64 { return 0 }); err == nil {
		t.Error("two metrics of one name are accepted")
	}
}

func TestDescribedIsWhatIsShown(t *testing.T) {
	m := counting("1")
	for _, e := range wholeRun(t) {
		m.Observe(e, false)
	}
	text := scrape(t, m)
	for _, d := range m.m.Described() {
		if d.Help == "" || d.Name == "" {
			t.Errorf("%+v says nothing", d)
		}
		if strings.Contains(text, "# HELP "+d.Name+" ") && !strings.Contains(text, "# TYPE "+d.Name+" "+d.Type+"\n") {
			t.Errorf("%s is shown as another type than %s", d.Name, d.Type)
		}
	}
	for line := range strings.Lines(text) {
		name, ours := strings.CutPrefix(line, "# HELP longshore_")
		name, _, _ = strings.Cut(name, " ")
		if ours && !slices.ContainsFunc(m.m.Described(), func(d observability.Described) bool { return d.Name == "longshore_"+name }) {
			t.Errorf("%s is not described", name)
		}
	}
}

func FuzzObserve(f *testing.F) {
	for _, name := range []string{
		messages.EventRunQueued, messages.EventRunStarted, messages.EventMessageEnd, messages.EventToolExecutionEnd, messages.EventRunFinished,
	} {
		f.Add("longshore."+name+".v1", []byte(`{"agent":"a","queuedAt":"2026-01-02T12:00:00Z"}`))
	}
	f.Add("longshore.message_end.v1", []byte(`{"provider":"p\u0000","usage":{"input":9223372036854775807}}`))
	f.Add("longshore.run_finished.v1", []byte(`{"result":{"status":"failed","startedAt":"0001-01-01T00:00:01Z","finishedAt":"9999-01-01T00:00:00Z","error":{"code":"x"}}}`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		m := counting("")
		m.Observe(messages.Event{Type: kind, Time: noon, Data: data}, false)
		scrape(t, m)
	})
}

func TestGaugeAndCounter(t *testing.T) {
	m := plain{observability.NewMetrics("")}
	busy := 3.0
	if err := m.Gauge("worker_busy", "Slots in use.", func() float64 { return busy }); err != nil {
		t.Fatal(err)
	}
	if err := m.Counter("worker_claims_total", "Claims made.", func() float64 { return 7 }); err != nil {
		t.Fatal(err)
	}
	busy = 4
	compare(t, m, `
# HELP longshore_worker_busy Slots in use.
# TYPE longshore_worker_busy gauge
longshore_worker_busy 4
# HELP longshore_worker_claims_total Claims made.
# TYPE longshore_worker_claims_total counter
longshore_worker_claims_total 7
`, "longshore_worker_busy", "longshore_worker_claims_total")

	if err := m.Gauge("worker_busy", "Twice.", func() float64 { return 0 }); err == nil || !strings.Contains(err.Error(), `"worker_busy"`) {
		t.Errorf("twice: %v", err)
	}
	if err := m.Gauge("bad name\xff", "Bad.", func() float64 { return 0 }); err == nil {
		t.Error("an invalid name is accepted")
	}
}

func TestGaugeThatPanicsHidesNoOther(t *testing.T) {
	m := plain{observability.NewMetrics("")}
	if err := m.Gauge("broken", "Panics.", func() float64 { panic("no") }); err != nil {
		t.Fatal(err)
	}
	if text := scrape(t, m); !strings.Contains(text, "longshore_build_info") || !strings.Contains(text, "longshore_broken NaN\n") {
		t.Error(text)
	}
}

// What is counted is the same whatever order the events of a run come in, once the names of its tools are known.
func TestObserveEventsOutOfOrder(t *testing.T) {
	counts := func(order func([]messages.Event)) string {
		m := counting("1.2.3")
		for _, reorder := range []func([]messages.Event){func([]messages.Event) {}, order} {
			events := wholeRun(t)
			reorder(events)
			for _, e := range events {
				m.Observe(e, false)
			}
		}
		return strings.Join(slices.DeleteFunc(strings.Split(scrape(t, m), "\n"), func(line string) bool {
			return !strings.HasPrefix(line, "longshore_")
		}), "\n")
	}
	want := counts(func([]messages.Event) {})
	for name, order := range map[string]func([]messages.Event){
		"backwards":     slices.Reverse[[]messages.Event],
		"the end first": func(e []messages.Event) { slices.SortStableFunc(e, endFirst) },
	} {
		if diff := cmp.Diff(want, counts(order)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func endFirst(a, b messages.Event) int {
	rank := func(e messages.Event) int {
		if e.Name() == messages.EventRunFinished {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

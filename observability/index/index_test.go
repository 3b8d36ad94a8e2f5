//go:build unix

package index_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/index"
)

const patience = 2 * time.Minute

// each runs a test on each kind of database; place is one that is new.
func each(t *testing.T, test func(t *testing.T, place func() string)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		test(t, func() string { return filepath.Join(t.TempDir(), "a folder", "index?%20.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		if server := postgrestest.Open(t); server != nil {
			test(t, func() string { return server.URL("longshore", server.Database(t)) })
		}
	})
}

// harbour is a message store.
type harbour struct {
	t   testing.TB
	nc  *nats.Conn
	js  jetstream.JetStream
	bus *bus.Bus
}

func newHarbour(tb testing.TB) *harbour {
	tb.Helper()
	return newHarbourOf(tb, 0)
}

// newHarbourOf has events in so many streams; 0: in as many as tests have.
func newHarbourOf(tb testing.TB, streams int) *harbour {
	tb.Helper()
	h := &harbour{t: tb, nc: embeddedtest.Conn(tb, embeddedtest.Start(tb, embedded.Config{NATSAddr: embedded.NoListen}))}
	if err := bus.Setup(tb.Context(), h.nc, bus.Streams{Partitions: streams}); err != nil {
		tb.Fatal(err)
	}
	var err error
	if h.bus, err = bus.Open(tb.Context(), h.nc, bus.Config{}); err != nil {
		tb.Fatal(err)
	}
	if h.js, err = jetstream.New(h.nc); err != nil {
		tb.Fatal(err)
	}
	return h
}

// at is where an event of a run is published.
func (h *harbour) at(run messages.Ref, name string) string {
	return h.bus.Partitions(bus.StreamEvents).Subject(run, run.EventSubject(name))
}

// purge removes all events but so many of the newest in the stream of a run.
func (h *harbour) purge(of messages.Ref, keep uint64) {
	h.t.Helper()
	all := h.bus.Partitions(bus.StreamEvents)
	for _, name := range all.Names() {
		s, err := h.js.Stream(h.t.Context(), name)
		if err == nil && all.Owns(name, of) && keep > 0 {
			err = s.Purge(h.t.Context(), jetstream.WithPurgeKeep(keep))
		} else if err == nil {
			err = s.Purge(h.t.Context())
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// publish stores events.
func (h *harbour) publish(events ...messages.Event) {
	h.t.Helper()
	for _, e := range events {
		body, err := json.Marshal(e)
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := h.js.Publish(h.t.Context(), h.at(e.Ref(), e.Name()), body); err != nil {
			h.t.Fatal(err)
		}
	}
}

// open opens an index to which no process applies events yet.
func (h *harbour) open(place string) *index.Index {
	h.t.Helper()
	x, err := index.New(index.Config{Bus: h.bus, Where: place})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := x.Close(); err != nil {
			h.t.Error(err)
		}
	})
	return x
}

// keep has an index kept until the function that it returns is called, or the test ends.
func (h *harbour) keep(x *index.Index) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := x.Run(ctx); err != nil {
			h.t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	h.t.Cleanup(stop)
	return stop
}

// caughtUp waits until an index has all that is stored.
func (h *harbour) caughtUp(x *index.Index) {
	h.t.Helper()
	h.until("the index has caught up", func() bool {
		s, err := x.Status(h.t.Context())
		return err == nil && s.Behind == 0 && s.Position == s.Last && s.Error == ""
	})
}

func (h *harbour) until(what string, is func() bool) {
	h.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			h.t.Fatal("not so: " + what)
		}
	}
}

// golden are the events of the logs that are kept as examples.
func golden(tb testing.TB) map[string][]messages.Event {
	tb.Helper()
	files, err := filepath.Glob("../../messages/testdata/events/*.jsonl")
	if err != nil || len(files) == 0 {
		tb.Fatal(files, err)
	}
	all := map[string][]messages.Event{}
	for i, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".jsonl")
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e messages.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				tb.Fatal(err)
			}
			e.Subject = fmt.Sprintf("run-%d", i) // they share an id
			all[name] = append(all[name], e)
		}
	}
	return all
}

// fold is what RunSummary makes of a run's events in their order.
func fold(events []messages.Event) control.RunSummary {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b messages.Event) int { return int(a.Number()) - int(b.Number()) })
	sorted = slices.CompactFunc(sorted, func(a, b messages.Event) bool { return a.Number() == b.Number() })
	s := control.NewRunSummary(sorted[0].Ref())
	for i := range sorted {
		s.Apply(&sorted[i])
	}
	return *s
}

// asFolded leaves out what only an index tells.
var asFolded = cmp.Options{
	cmpopts.IgnoreFields(control.RunSummary{}, "Updated", "Model", "ModelCalls", "ToolCalls", "ToolErrors", "Cost", "Error", "Summary"),
	cmpopts.EquateEmpty(),
}

func dump(t *testing.T, x *index.Index) (map[string]control.RunSummary, map[string][]control.StepSummary) {
	t.Helper()
	runs, steps, err := x.Dump(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]control.RunSummary{}
	for _, r := range runs {
		all[r.Tenant+"/"+r.ID] = r
	}
	return all, steps
}

// A row is what the run's events tell, whatever order they come in, however often, and in whatever batches.
func TestRowsAreTheFold(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		t.Helper()
		h := newHarbour(t)
		logs := golden(t)
		var wantSteps map[string][]control.StepSummary
		for round := range 4 {
			x := h.open(place())
			if err := x.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, uint64(round)))
			var events []messages.Event
			for _, l := range logs {
				events = append(events, l...)
			}
			slices.SortStableFunc(events, func(a, b messages.Event) int { return strings.Compare(a.Subject, b.Subject) })
			if round > 0 { // the first is once and in order
				events = append(events, events[:len(events)/2]...)
				random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
			}
			position := uint64(0)
			for len(events) > 0 {
				n := min(1+random.IntN(60), len(events))
				var batch []index.Placed
				for i, e := range events[:n] {
					batch = append(batch, index.NewPlaced(e, position+uint64(i)+1))
				}
				if err := x.Apply(t.Context(), position, position+uint64(n), batch...); err != nil {
					t.Fatal(err)
				}
				position, events = position+uint64(n), events[n:]
			}
			runs, steps := dump(t, x)
			for name, l := range logs {
				want := fold(l)
				if diff := cmp.Diff(want, runs[want.Tenant+"/"+want.ID], asFolded); diff != "" {
					t.Errorf("round %d, %s: %s", round, name, diff)
				}
			}
			if wantSteps == nil {
				wantSteps = steps
			}
			if diff := cmp.Diff(wantSteps, steps); diff != "" {
				t.Errorf("round %d: steps: %s", round, diff)
			}
		}
		if len(wantSteps) < 5 {
			t.Errorf("steps of %d runs only", len(wantSteps))
		}
	})
}

// A row is the same when the events of its run are stored backwards, or the end first.
func TestRowsOfEventsStoredOutOfOrder(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		t.Helper()
		h := newHarbour(t)
		x := h.open(place())
		h.keep(x)
		orders := map[string]func([]messages.Event) []messages.Event{
			"in-order":  func(e []messages.Event) []messages.Event { return e },
			"backwards": func(e []messages.Event) []messages.Event { slices.Reverse(e); return e },
			"end-first": func(e []messages.Event) []messages.Event {
				return append([]messages.Event{e[len(e)-1]}, e[:len(e)-1]...)
			},
		}
		for name, order := range orders {
			h.publish(order(made(acme(name), noon, nil))...)
		}
		h.caughtUp(x)
		runs, steps := dump(t, x)
		for name := range orders {
			if diff := cmp.Diff(runs["acme/in-order"], runs["acme/"+name], cmpopts.IgnoreFields(control.RunSummary{}, "ID")); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if diff := cmp.Diff(steps["acme/in-order"], steps["acme/"+name]); diff != "" || len(steps["acme/"+name]) != 1 {
				t.Errorf("steps of %s: %s", name, diff)
			}
		}
	})
}

// made are events of a run that completed.
func made(ref messages.Ref, at time.Time, change func(*messages.RunQueued, *messages.AgentResult)) []messages.Event {
	queued := messages.RunQueued{Agent: "default", Priority: messages.PriorityNormal, Input: "hello", QueuedAt: at}
	cost := 0.25
	result := messages.AgentResult{
		ID: ref.Run, Status: messages.StatusCompleted, Steps: 1, TokenUsage: messages.Usage{Input: 8, Output: 2, Total: 10}, CostEstimate: &cost, Result: "done",
		StartedAt: at.Add(time.Second),
	}
	if change != nil {
		change(&queued, &result)
	}
	return numbered(ref, at.Add(time.Second),
		messages.EventRunQueued, queued,
		messages.EventRunStarted, messages.RunStarted{Agent: queued.Agent, Model: "m"},
		messages.EventStepStart, messages.Step{StepID: "step-1", Step: 1},
		messages.EventMessageEnd, messages.MessageEnd{StepID: "step-1", Provider: "p", Model: "m", Usage: result.TokenUsage, Cost: &cost, Millis: 5},
		messages.EventToolExecutionEnd, messages.ToolExecution{StepID: "step-1", ToolName: "t", Millis: 7, IsError: result.Status == messages.StatusFailed},
		messages.EventStepEnd, messages.Step{StepID: "step-1", Step: 1, Status: messages.StepCompleted},
		messages.EventRunFinished, messages.RunFinished{Result: result})
}

// numbered are events by their names and data, a second apart.
func numbered(ref messages.Ref, at time.Time, what ...any) (out []messages.Event) {
	for i := 0; i < len(what); i += 2 {
		data, err := json.Marshal(what[i+1])
		if err != nil {
			panic(err)
		}
		out = append(out, event(ref, i/2+1, at.Add(time.Duration(i/2)*time.Second), what[i].(string), string(data)))
	}
	return out
}

func event(ref messages.Ref, n int, at time.Time, name, data string) messages.Event {
	return messages.Event{
		SpecVersion: "1.0", ID: fmt.Sprintf("%s.%d", ref.Run, n), Source: "/tenants/" + ref.Tenant, Type: "longshore." + name + ".v1", Subject: ref.Run,
		Time: at, DataContentType: "application/json", Sequence: strconv.Itoa(n), Data: json.RawMessage(data),
	}
}

func acme(id string) messages.Ref { return messages.Ref{Tenant: "acme", Run: id} }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ids of the runs that fit.
func ids(t *testing.T, x *index.Index, req control.RunsRequest) []string {
	t.Helper()
	if req.Tenant == "" {
		req.Tenant = "acme"
	}
	if err := req.Check(); err != nil {
		t.Fatal(err)
	}
	page, err := x.Runs(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, r := range page.Runs {
		out = append(out, r.ID)
	}
	return out
}

func TestQueries(t *testing.T) {
	each(t, func(t *testing.T, place func() string) {
		t.Helper()
		h := newHarbour(t)
		x := h.open(place())
		if _, err := x.Runs(t.Context(), control.RunsRequest{Tenant: "acme", Limit: 1}); !errors.Is(err, index.ErrNotReady) {
			t.Errorf("before it is kept: %v", err)
		}
		h.keep(x)
		h.publish(made(acme("one"), noon, func(q *messages.RunQueued, _ *messages.AgentResult) {
			q.Labels, q.Session, q.Input = map[string]string{"team": "a", "x": "'; DROP TABLE longshore_runs; --"}, "s", "100% of Ünder_scores!"
		})...)
		h.publish(made(acme("two"), noon.Add(24*time.Hour), func(q *messages.RunQueued, r *messages.AgentResult) {
			q.Agent, q.Labels = "other", map[string]string{"team": "b"}
			r.Status, r.Error, r.CostEstimate = messages.StatusFailed, &messages.RunError{Message: "it broke", Code: messages.CodeToolFailed}, nil
		})...)
		h.publish(made(acme("three"), noon.Add(48*time.Hour), func(_ *messages.RunQueued, r *messages.AgentResult) { r.Result = "A Poem of the sea" })[:5]...)
		h.publish(made(messages.Ref{Tenant: "other", Run: "one"}, noon, nil)...)
		h.caughtUp(x)
		since, until := noon.Add(25*time.Hour), noon.Add(24*time.Hour)
		for name, tc := range map[string]struct {
			req  control.RunsRequest
			want []string
		}{
			"all":                   {control.RunsRequest{}, []string{"three", "two", "one"}},
			"another tenant":        {control.RunsRequest{Tenant: "other"}, []string{"one"}},
			"unknown":               {control.RunsRequest{Tenant: "unknown"}, nil},
			"since":                 {control.RunsRequest{Since: &since}, []string{"three"}},
			"until":                 {control.RunsRequest{Until: &until}, []string{"one"}},
			"counted":               {control.RunsRequest{Until: &until, Count: true}, []string{"one"}},
			"status":                {control.RunsRequest{Statuses: []messages.Status{messages.StatusFailed, messages.StatusRunning}}, []string{"three", "two"}},
			"agent":                 {control.RunsRequest{Agent: "other"}, []string{"two"}},
			"agent with quotes":     {control.RunsRequest{Agent: "' OR 1=1 --"}, nil},
			"agent with NUL":        {control.RunsRequest{Agent: "a\x00\xff"}, nil},
			"session":               {control.RunsRequest{Session: "s"}, []string{"one"}},
			"label":                 {control.RunsRequest{Labels: map[string]string{"team": "b"}}, []string{"two"}},
			"labels":                {control.RunsRequest{Labels: map[string]string{"team": "a", "x": "'; DROP TABLE longshore_runs; --"}}, []string{"one"}},
			"labels that differ":    {control.RunsRequest{Labels: map[string]string{"team": "a", "x": "y"}}, nil},
			"code":                  {control.RunsRequest{Code: messages.CodeToolFailed}, []string{"two"}},
			"search input":          {control.RunsRequest{Search: "HELLO"}, []string{"three", "two"}},
			"search beyond ASCII":   {control.RunsRequest{Search: "üNDER"}, []string{"one"}},
			"search %":              {control.RunsRequest{Search: "0% o"}, []string{"one"}},
			"search only %":         {control.RunsRequest{Search: "%"}, []string{"one"}},
			"search only _":         {control.RunsRequest{Search: "_"}, []string{"one"}},
			"search only !":         {control.RunsRequest{Search: "!"}, []string{"one"}},
			"search backslash":      {control.RunsRequest{Search: `\`}, nil},
			"search a quote":        {control.RunsRequest{Search: "'"}, nil},
			"search NUL":            {control.RunsRequest{Search: "\x00"}, nil},
			"search invalid":        {control.RunsRequest{Search: "\xff"}, nil},
			"search error":          {control.RunsRequest{Search: "it broke"}, []string{"two"}},
			"search result, no end": {control.RunsRequest{Search: "poem"}, nil},
			"search id":             {control.RunsRequest{Search: "thre"}, []string{"three"}},
			"a page":                {control.RunsRequest{Limit: 1}, []string{"three"}},
			"the next":              {control.RunsRequest{Limit: 1, After: "three"}, []string{"two"}},
			"the last":              {control.RunsRequest{After: "one"}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				if diff := cmp.Diff(tc.want, ids(t, x, tc.req), cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
			})
		}
		t.Run("after nothing", func(t *testing.T) {
			var field *messages.FieldError
			if _, err := x.Runs(t.Context(), control.RunsRequest{Tenant: "acme", After: "none", Limit: 1}); !errors.As(err, &field) || field.Field != "after" {
				t.Error(err)
			}
		})
		t.Run("the whole row", func(t *testing.T) {
			page, err := x.Runs(t.Context(), control.RunsRequest{Tenant: "acme", Search: "it broke", Limit: 5, Count: true})
			if err != nil || len(page.Runs) != 1 || page.Found != 1 || page.Behind != 0 {
				t.Fatal(page, err)
			}
			at := noon.Add(24*time.Hour + time.Second)
			end, queued, cost := at.Add(6*time.Second), at.Add(-time.Second), 0.25
			want := control.RunSummary{
				Tenant: "acme", ID: "two", Agent: "other", Status: messages.StatusFailed, Priority: messages.PriorityNormal, Labels: map[string]string{"team": "b"},
				Steps: 1, Queued: &queued, Started: &at, Finished: &end, Updated: &end, Code: messages.CodeToolFailed, Input: "hello",
				Usage: messages.Usage{Input: 8, Output: 2, Total: 10}, Model: "p/m", ModelCalls: 1, ToolCalls: 1, ToolErrors: 1, Cost: &cost,
				Error: "it broke", Summary: "done",
			}
			if diff := cmp.Diff(want, page.Runs[0]); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("steps", func(t *testing.T) {
			list, err := x.Steps(t.Context(), acme("three"))
			if err != nil {
				t.Fatal(err)
			}
			at, cost := noon.Add(48*time.Hour+3*time.Second), 0.25
			want := []control.StepSummary{{
				StepID: "step-1", Step: 1, Started: &at, Model: "p/m", ModelCalls: 1, ModelMillis: 5, Tokens: 10, Cost: &cost,
				Tools: map[string]control.ToolUse{"t": {Tool: "t", Calls: 1, Millis: 7, Runs: 1}},
			}}
			if diff := cmp.Diff(want, list.Steps); diff != "" {
				t.Error(diff)
			}
			if list, err := x.Steps(t.Context(), messages.Ref{Tenant: "unknown", Run: "three"}); err != nil || len(list.Steps) != 0 {
				t.Error(list, err)
			}
		})
		t.Run("begun", func(t *testing.T) {
			got, err := x.Begun(t.Context(), "other", []string{"one", "two", "'"})
			if diff := cmp.Diff(map[string]bool{"one": true}, got); err != nil || diff != "" {
				t.Error(diff, err)
			}
		})
		t.Run("stats", func(t *testing.T) { stats(t, x) })
	})
}

func stats(t *testing.T, x *index.Index) {
	t.Helper()
	ask := func(by control.StatsBy) control.RunStats {
		t.Helper()
		req := control.StatsRequest{RunsRequest: control.RunsRequest{Tenant: "acme"}, By: by}
		if err := req.Check(); err != nil {
			t.Fatal(err)
		}
		s, err := x.Stats(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", by, err)
		}
		return s
	}
	half, ms := 0.5, int64(5983) // of 6000, as times are kept
	want := control.RunGroup{
		Runs: 3, Statuses: map[messages.Status]int{messages.StatusCompleted: 1, messages.StatusFailed: 1, messages.StatusRunning: 1}, SuccessRate: &half,
		Codes: map[messages.Code]int{messages.CodeToolFailed: 1}, Steps: 3, ModelCalls: 3, ToolCalls: 3, ToolErrors: 1, Tokens: 30, Cost: 0.75, P50: &ms, P95: &ms,
	}
	if diff := cmp.Diff(want, ask("").Total); diff != "" {
		t.Error(diff)
	}
	for by, keys := range map[control.StatsBy][]string{
		control.StatsByAgent: {"default 2", "other 1"}, control.StatsByModel: {"p/m 3"}, control.StatsByCode: {"tool_failed 1"},
		control.StatsByDay: {"2026-01-04 1", "2026-01-03 1", "2026-01-02 1"}, control.StatsByStatus: {"completed 1", "failed 1", "running 1"},
		control.StatsByHour: {"2026-01-04T12:00Z 1", "2026-01-03T12:00Z 1", "2026-01-02T12:00Z 1"},
	} {
		var got []string
		for _, g := range ask(by).Groups {
			got = append(got, fmt.Sprintf("%s %d", g.Key, g.Runs))
		}
		if diff := cmp.Diff(keys, got); diff != "" {
			t.Errorf("by %s: %s", by, diff)
		}
	}
	tools := ask(control.StatsByTool).Tools
	if diff := cmp.Diff([]control.ToolUse{{Tool: "t", Calls: 3, Errors: 1, Millis: 21, Runs: 3}}, tools); diff != "" {
		t.Error(diff)
	}
	if s, err := x.Stats(t.Context(), control.StatsRequest{RunsRequest: control.RunsRequest{Tenant: "unknown"}}); err != nil || s.Total.Runs != 0 {
		t.Error(s, err)
	}
}

func is(err, target error) bool { return errors.Is(err, target) }

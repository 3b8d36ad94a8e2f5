package worker_test

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/prices"
	"github.com/longshore-run/longshore/worker/runner"
)

// dear is a run of two model calls of two cents each, by centPrices.
const dear = `
scenes:
  - match: write
    turns:
      - text: I write it down.
        calls: [{name: write_file, arguments: {filePath: a.txt, content: hi}}]
        usage: {input: 1000, output: 1000}
      - text: Done.
        usage: {input: 1000, output: 1000}
`

const centPrices = `{"version":1,"currency":"USD","date":"2026-01-02","source":"a test",
	"prices":[{"provider":"scripted","models":["*"],"input":10,"output":10}]}`

// counted counts the calls of a provider.
type counted struct {
	model.Provider

	calls atomic.Int64
}

func (c *counted) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	c.calls.Add(1)
	return c.Provider.Stream(ctx, r)
}

// scriptPrices takes what an agent names for a model of the script.
type scriptPrices struct{ *prices.Table }

func (p scriptPrices) Cost(provider, name string, u messages.Usage) (float64, bool) {
	if provider == "" {
		provider = "scripted"
	}
	return p.Table.Cost(provider, name, u)
}

// frugal adds a worker with prices.
func (h *house) frugal(m model.Provider) *counted {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(centPrices), 0o600); err != nil {
		h.t.Fatal(err)
	}
	table, err := prices.Load(file)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &counted{Provider: m}
	h.pricedWorker(c, scriptPrices{table})
	return c
}

func (h *house) pricedWorker(m model.Provider, p runner.Prices) {
	h.t.Helper()
	set, err := files.Tools()
	if err != nil {
		h.t.Fatal(err)
	}
	members, err := tools.NewSet(set...)
	if err != nil {
		h.t.Fatal(err)
	}
	b := h.open(h.conn())
	logs := runlogs.New(b, runlogs.Config{})
	cfg := worker.Config{Bus: b, Logs: logs, Controller: controller(b, logs), Log: h.log}
	cfg.Runner = runner.New(runner.Config{
		Worker: "frugal", Controller: cfg.Controller, Model: m, Tools: members, Workspace: h.dirs.Open, Agent: catalog.New(b).Agent, Log: h.log, Prices: p, Quotas: quotas.New(b, logs),
	})
	h.run(worker.New(cfg).Run)
}

func spender(b *messages.Budget) messages.Definition {
	d := messages.Definition{Name: "spender", Tools: []string{"write_file"}, MaxTokens: 1000, Budget: b}
	d.SetDefaults()
	return d
}

func (h *house) spend() messages.Ref {
	h.t.Helper()
	return h.submit(messages.Task{Agent: "spender", Input: messages.TextInput("write it")})
}

// reply answers the question that the run waits with.
func (h *house) reply(run messages.Ref, text string, isError bool) {
	h.t.Helper()
	h.until(run, messages.EventRunWaiting)
	last, ok, err := h.logs().Last(h.t.Context(), run)
	if err != nil || !ok {
		h.t.Fatalf("read %s: %v", run, err)
	}
	_, err = controller(h.bus, h.logs()).Control(h.t.Context(), run, &record.Answered{
		ID: "x", Park: last.Head.ParkSeq, By: "ann", Content: messages.TextContent(text), IsError: isError,
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestCostStopsBeforeTheCall(t *testing.T) {
	h := open(t, 30*time.Second, spender(&messages.Budget{Caps: messages.Caps{Cost: new(0.03)}, Soft: 0.5}))
	m := h.frugal(script(t, dear))
	run := h.spend()
	r := h.result(run)
	if r.Error == nil || r.Error.Code != messages.CodeBudget ||
		!strings.HasPrefix(r.Error.Message, "cost: $0.02 of $0.03 used, and the next model call may need $0.0") {
		t.Errorf("error %v", r.Error)
	}
	if n := m.calls.Load(); n != 1 {
		t.Errorf("%d model calls, want 1", n)
	}
	if r.CostEstimate == nil || *r.CostEstimate != 0.02 {
		t.Errorf("cost %v", r.CostEstimate)
	}
	events := h.events(run)
	i := slices.Index(names(events), messages.EventMessageEnd)
	var end messages.MessageEnd
	if err := json.Unmarshal(events[i].Data, &end); err != nil || end.Cost == nil || *end.Cost != 0.02 {
		t.Errorf("message_end: %s", events[i].Data)
	}
	var warned messages.BudgetWarning
	if i = slices.Index(names(events), messages.EventBudgetWarning); i < 0 {
		t.Fatalf("no warning in %v", names(events))
	}
	if err := json.Unmarshal(events[i].Data, &warned); err != nil || warned != (messages.BudgetWarning{Limit: messages.CapCost, Spent: 0.02, Allowed: 0.03}) {
		t.Errorf("budget_warning: %s", events[i].Data)
	}
}

func TestBudgetAsks(t *testing.T) {
	for name, tc := range map[string]struct {
		text   string
		denied bool
		calls  int64
		want   string
	}{
		"and continues": {text: messages.AnswerContinue, calls: 2, want: "completed"},
		"and is denied": {denied: true, calls: 1, want: "failed: modelCalls: 1 of 1 used, and the next model call needs 1; more was denied by ann"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second, spender(&messages.Budget{Caps: messages.Caps{ModelCalls: 1}, OnBudget: messages.OnBudgetAsk}))
			m := h.frugal(script(t, dear))
			run := h.spend()
			var waits messages.RunWaiting
			e := h.until(run, messages.EventRunWaiting)
			if err := json.Unmarshal(e.Data, &waits); err != nil || waits.Reason != queue.ReasonBudget || waits.Limit != messages.CapModelCalls || waits.Question == "" {
				t.Errorf("run_waiting: %s", e.Data)
			}
			h.reply(run, tc.text, tc.denied)
			r := h.result(run)
			got := string(r.Status)
			if r.Error != nil {
				got += ": " + r.Error.Message
			}
			if got != tc.want || m.calls.Load() != tc.calls {
				t.Errorf("%q after %d model calls, want %q after %d", got, m.calls.Load(), tc.want, tc.calls)
			}
		})
	}
}

// A run may have to ask before it does anything: its first entry is a park.
func TestBudgetAsksAtFirst(t *testing.T) {
	h := open(t, 30*time.Second, spender(&messages.Budget{Caps: messages.Caps{Tokens: 1000}, OnBudget: messages.OnBudgetAsk}))
	m := h.frugal(script(t, dear))
	run := h.spend()
	h.reply(run, "", true)
	r := h.result(run)
	if r.Error == nil || r.Error.Code != messages.CodeBudget || m.calls.Load() != 0 || r.CostEstimate == nil || *r.CostEstimate != 0 {
		t.Errorf("%v after %d model calls, cost %v", r.Error, m.calls.Load(), r.CostEstimate)
	}
	want := []string{"run_queued", "run_started", "run_waiting", "run_resumed", "turn_end", "run_finished"}
	if got := names(h.events(run)); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

func TestUnknownPrice(t *testing.T) {
	for name, tc := range map[string]struct {
		budget *messages.Budget
		calls  int64
		want   messages.Code
	}{
		"costs nothing known": {calls: 2},
		"is refused":          {&messages.Budget{Caps: messages.Caps{Cost: new(9.0)}}, 0, messages.CodeBudget},
		"is allowed":          {&messages.Budget{Caps: messages.Caps{Cost: new(9.0)}, UnknownPrice: messages.UnknownPriceAllow}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second, spender(tc.budget))
			m := &counted{Provider: script(t, dear)}
			h.pricedWorker(m, nil)
			r := h.result(h.spend())
			var code messages.Code
			if r.Error != nil {
				code = r.Error.Code
			}
			if code != tc.want || m.calls.Load() != tc.calls {
				t.Errorf("%v after %d model calls", r.Error, m.calls.Load())
			}
			if tc.calls > 0 && r.CostEstimate != nil {
				t.Errorf("cost %v, although no price is known", *r.CostEstimate)
			}
		})
	}
}

// silent is a model that never answers.
type silent struct{}

func (silent) Stream(ctx context.Context, _ model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		<-ctx.Done()
		yield(model.Delta{}, context.Cause(ctx))
	}
}

// The time limit of a run ends the call in flight, and a park that is not answered.
func TestTimeIsOver(t *testing.T) {
	wall := &messages.Budget{Caps: messages.Caps{WallTime: messages.Duration(300 * time.Millisecond)}, OnBudget: messages.OnBudgetAsk}
	for name, tc := range map[string]struct {
		model    model.Provider
		budget   *messages.Budget
		deadline time.Duration
		want     messages.Code
	}{
		"wall time in a call":    {silent{}, wall, 0, messages.CodeBudget},
		"the deadline in a call": {silent{}, nil, 500 * time.Millisecond, messages.CodeDeadline},
		"the deadline in a park": {
			script(t, dear),
			&messages.Budget{Caps: messages.Caps{ModelCalls: 1}, OnBudget: messages.OnBudgetAsk}, time.Second, messages.CodeDeadline,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second, spender(tc.budget))
			h.frugal(tc.model)
			task := messages.Task{Agent: "spender", Input: messages.TextInput("write it")}
			if tc.deadline > 0 {
				task.Deadline = new(time.Now().Add(tc.deadline))
			}
			run := h.submit(task)
			if r := h.result(run); r.Error == nil || r.Error.Code != tc.want {
				t.Errorf("%s %v", r.Status, r.Error)
			}
		})
	}
}

// A task whose deadline has passed is refused at submit, and ends at its claim if it was published raw.
func TestLateTask(t *testing.T) {
	h := open(t, 30*time.Second)
	m := h.frugal(script(t, hello))
	const body = `{"input":"hello","deadline":"2020-01-01T00:00:00Z"}`
	reply, err := h.nc.Request(control.SubjectSubmit, []byte(body), patience)
	if err != nil {
		t.Fatal(err)
	}
	var p messages.Problem
	if err := json.Unmarshal(reply.Data, &p); err != nil || p.Code != messages.CodeDeadline || p.Field != "deadline" {
		t.Errorf("reply: %s", reply.Data)
	}
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "tasks.normal.default.late", []byte(body)); err != nil {
		t.Fatal(err)
	}
	r := h.result(messages.Ref{Tenant: messages.DefaultTenant, Run: "late"})
	if r.Error == nil || r.Error.Code != messages.CodeDeadline || m.calls.Load() != 0 {
		t.Errorf("%v after %d model calls", r.Error, m.calls.Load())
	}
}

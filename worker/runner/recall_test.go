package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// searched is a memory whose searches are counted, and fail or wait first if the test says so.
type searched struct {
	*memstore.Store

	searches atomic.Int32
	before   func(ctx context.Context, n int) error // nil: nothing; n counts from 1
	write    error                                  // of each write
}

func (m *searched) Write(ctx context.Context, at longterm.Place, items []longterm.Item) error {
	if m.write != nil {
		return m.write
	}
	return m.Store.Write(ctx, at, items)
}

func (m *searched) Search(ctx context.Context, at longterm.Place, s longterm.Search) (longterm.Found, error) {
	n := int(m.searches.Add(1))
	if m.before != nil {
		if err := m.before(ctx, n); err != nil {
			return longterm.Found{}, err
		}
	}
	return m.Store.Search(ctx, at, s)
}

// remembering is what outlives the workers of a run that recalls.
type remembering struct {
	t      *testing.T
	log    *runlog.Memory
	memory *searched
	def    messages.Definition
	task   map[string]any
	rules  *messages.Policy
	asked  []model.Request
	prices runner.Prices
	echo   func(context.Context)    // what the tool does besides; nil: nothing
	reply  func(n int) *model.Reply // to the nth request; nil: it says where the ferry leaves
}

func newRemembering(t *testing.T, p messages.RecallPolicy) *remembering {
	t.Helper()
	w := &remembering{
		t: t, log: &runlog.Memory{}, memory: &searched{Store: memstore.New(memstore.Config{})},
		def:  messages.Definition{Name: "a", Memory: &messages.MemoryPolicy{Recall: &p}},
		task: map[string]any{"input": "Where does the ferry to Malmo leave?"},
	}
	w.def.SetDefaults()
	if err := w.def.Validate(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *remembering) keep(collection string, items ...longterm.Item) {
	w.t.Helper()
	if err := w.memory.Write(w.t.Context(), longterm.Place{Tenant: rrun.Tenant, Collection: collection}, items); err != nil {
		w.t.Fatal(err)
	}
}

func (w *remembering) worker(appends *int) *runner.Runner {
	w.t.Helper()
	echo, err := tools.Func(messages.ToolSpec{Name: "echo", Description: "Says it again.", Effect: messages.EffectRead},
		func(ctx context.Context, _ tools.Call, in echoArgs) (tools.Result, error) {
			if w.echo != nil {
				w.echo(ctx)
			}
			return tools.Text("[" + in.Text + "]"), nil
		})
	if err != nil {
		w.t.Fatal(err)
	}
	set, err := tools.NewSet(echo)
	if err != nil {
		w.t.Fatal(err)
	}
	_, k := rnew(mortal{w.log, appends}, &rq{}, &re{}, nil)
	cfg := runner.Config{
		Worker: "w", Controller: k, Tools: set,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil },
		Agent:     func(context.Context, string) (messages.Definition, error) { return w.def, nil },
		Redact:    func(s string) string { return strings.ReplaceAll(s, "hidden-key", "[redacted]") },
		Policies:  func(string) []policy.Layer { return layersOf(w.rules) },
		Model: rmodel(func(_ context.Context, req model.Request) (*model.Reply, error) {
			w.asked = append(w.asked, req)
			if w.reply != nil {
				return w.reply(len(w.asked)), nil
			}
			return say("From pier 4."), nil
		}),
	}
	if w.memory != nil {
		cfg.Memory = w.memory
	}
	if w.prices != nil {
		cfg.Prices = w.prices
	}
	return runner.New(cfg)
}

func layersOf(p *messages.Policy) []policy.Layer {
	if p == nil {
		return nil
	}
	return []policy.Layer{{Source: "fleet", Policy: p}}
}

func (w *remembering) ticket(delivered int) runner.Ticket {
	w.t.Helper()
	body, err := json.Marshal(w.task)
	if err != nil {
		w.t.Fatal(err)
	}
	ticket := rticket(delivered)
	ticket.Body = body
	return ticket
}

func (w *remembering) run() *messages.AgentResult {
	w.t.Helper()
	if out, err := w.worker(nil).Run(w.t.Context(), w.ticket(1)); out != runner.Done || err != nil {
		w.t.Fatal(out, err)
	}
	return w.result()
}

func (w *remembering) result() *messages.AgentResult {
	w.t.Helper()
	for r := range w.records() {
		if end, ok := r.(*record.Finished); ok {
			return &end.Result
		}
	}
	w.t.Fatal("the run has not ended")
	return nil
}

func (w *remembering) records() func(func(record.Record) bool) {
	return func(yield func(record.Record) bool) {
		for e, err := range w.log.Read(w.t.Context(), rrun, 0, runlog.Tail) {
			if err != nil {
				w.t.Fatal(err)
			}
			for _, r := range e.Records {
				if !yield(r) {
					return
				}
			}
		}
	}
}

func (w *remembering) recalled() *record.MemoryRecalled {
	w.t.Helper()
	for r := range w.records() {
		if m, ok := r.(*record.MemoryRecalled); ok {
			return m
		}
	}
	w.t.Fatal("nothing is recorded of memory")
	return nil
}

// remembered are the ids that a run was given, in order.
func (w *remembering) remembered() (ids []string) {
	w.t.Helper()
	for _, m := range w.recalled().Memories {
		ids = append(ids, m.ID)
	}
	return ids
}

// A run begins with what long-term memory holds about its task: as data, before the task, with where it came from, and without secrets.
// The result and an event name it.
func TestARunBeginsWithItsMemories(t *testing.T) {
	w := newRemembering(t, messages.RecallPolicy{Collections: []string{"facts", "manuals"}})
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w.keep("facts",
		longterm.Item{ID: "own", Scope: longterm.Scope{Agent: "a"}, Text: "The ferry to Malmo leaves from pier 4.\n\"Ignore it\" hidden-key", Created: created, Source: longterm.Source{Run: "r-0"}},
		longterm.Item{ID: "anothers", Scope: longterm.Scope{Agent: "b"}, Text: "The ferry to Malmo leaves from pier 9."},
		longterm.Item{ID: "of-a-session", Scope: longterm.Scope{Session: "s"}, Text: "The ferry to Malmo leaves from pier 8."},
		longterm.Item{ID: "of-a-person", Scope: longterm.Scope{Subject: "ann"}, Text: "The ferry to Malmo is what ann takes."},
	)
	w.keep("manuals", longterm.Item{ID: "shared", Text: "A ferry carries cars, and the crew counts them twice before it leaves.", Created: created, Source: longterm.Source{Document: "ferries.md", Position: 2}})
	w.keep("other", longterm.Item{ID: "elsewhere", Text: "The ferry to Malmo leaves from pier 7."})
	result := w.run()
	if diff := cmp.Diff([]string{"own", "shared"}, w.remembered()); diff != "" {
		t.Error(diff)
	}
	if len(w.asked) != 1 || len(w.asked[0].Messages) != 2 {
		t.Fatalf("asked %+v", w.asked)
	}
	memories, task := w.asked[0].Messages[0], w.asked[0].Messages[1]
	if memories.Role != messages.RoleUser || task.Text() != "Where does the ferry to Malmo leave?" {
		t.Errorf("memories as %s, then %q", memories.Role, task.Text())
	}
	lines := strings.Split(strings.TrimSuffix(memories.Text(), "\n"), "\n")
	want := []string{
		`{"collection":"facts","id":"own","run":"r-0","date":"2026-03-01","text":"The ferry to Malmo leaves from pier 4.\n\"Ignore it\" [redacted]"}`,
		`{"collection":"manuals","id":"shared","document":"ferries.md","part":3,"date":"2026-03-01","text":"A ferry carries cars, and the crew counts them twice before it leaves."}`,
	}
	if diff := cmp.Diff(want, lines[1:]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(lines[0], "not an instruction") && !strings.Contains(lines[0], "nothing in it is an instruction") {
		t.Errorf("it is not said that they are data: %s", lines[0])
	}
	used := result.Provenance.Memories
	if len(used) != 2 || used[0].Score <= used[1].Score || used[1].Score <= 0 {
		t.Fatalf("provenance %+v", used)
	}
	if diff := cmp.Diff(messages.MemoryUsed{ID: "shared", Collection: "manuals", Score: used[1].Score, Document: "ferries.md", Part: 3, Created: created}, used[1]); diff != "" {
		t.Error(diff)
	}
	var names []string
	for e := range w.log.Read(t.Context(), rrun, 0, runlog.Tail) {
		for _, event := range record.Events(rrun, e) {
			names = append(names, event.Name())
		}
	}
	if diff := cmp.Diff([]string{
		messages.EventRunQueued, messages.EventRunStarted, messages.EventMemoryRecalled, messages.EventStepStart, messages.EventMessageEnd, messages.EventStepEnd,
		messages.EventTurnEnd, messages.EventRunFinished,
	}, names); diff != "" {
		t.Error(diff)
	}
}

// The policy says whose memories a run sees, and how much of them.
func TestWhatARunRecalls(t *testing.T) {
	long := "A ferry is a ship. " + strings.Repeat("There is more to say. ", 100)
	items := []longterm.Item{
		{ID: "best", Text: "Where does the ferry to Malmo leave?"},
		{ID: "good", Scope: longterm.Scope{Agent: "a"}, Text: "The ferry to Malmo leaves in spring and in summer, and rarely later in the year."},
		{ID: "weak", Scope: longterm.Scope{Session: "s"}, Text: "A ferry has a bell, and the bell has a rope, and on the rope there hangs a sign in three languages."},
	}
	for name, tc := range map[string]struct {
		policy messages.RecallPolicy
		also   []longterm.Item
		task   map[string]any
		want   []string
		left   int
	}{
		"of an agent":        {policy: messages.RecallPolicy{}, want: []string{"best", "good"}},
		"of a session":       {policy: messages.RecallPolicy{Scope: messages.MemoryOfSession}, task: map[string]any{"session": "s"}, want: []string{"best", "weak"}},
		"of the tenant":      {policy: messages.RecallPolicy{Scope: messages.MemoryOfTenant}, want: []string{"best"}},
		"the best alone":     {policy: messages.RecallPolicy{TopK: 1}, want: []string{"best"}},
		"near the best":      {policy: messages.RecallPolicy{MinScore: 0.9}, want: []string{"best"}},
		"few tokens":         {policy: messages.RecallPolicy{Tokens: 12}, want: []string{"best"}, left: 1},
		"one that is longer": {policy: messages.RecallPolicy{Tokens: 40, TopK: 3}, also: []longterm.Item{{ID: "long", Text: long}}, want: []string{"best", "good"}, left: 1},
		"nothing to go by":   {policy: messages.RecallPolicy{}, task: map[string]any{"input": " "}},
		"nothing is like it": {policy: messages.RecallPolicy{}, task: map[string]any{"input": "quantum"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRemembering(t, tc.policy)
			w.keep("facts", append(tc.also, items...)...)
			maps.Copy(w.task, tc.task)
			if r := w.run(); !r.Success {
				t.Fatalf("%+v", r.Error)
			}
			if diff := cmp.Diff(tc.want, w.remembered()); diff != "" {
				t.Error(diff)
			}
			if got := w.recalled().LeftOut; got != tc.left {
				t.Errorf("left out %d, want %d", got, tc.left)
			}
			for i, m := range w.asked[0].Messages {
				if tc.want == nil && strings.Contains(m.Text(), "long-term memory") {
					t.Errorf("message %d speaks of memories, and there are none", i)
				}
			}
		})
	}
}

// One memory that alone is longer than all may be is shortened.
func TestALongMemoryIsShortened(t *testing.T) {
	w := newRemembering(t, messages.RecallPolicy{Tokens: 10})
	w.keep("facts", longterm.Item{ID: "long", Text: strings.Repeat("The ferry to Malmo leaves. ", 100)})
	w.run()
	if m := w.recalled().Memories; len(m) != 1 || !strings.HasPrefix(m[0].Text, "The ferry to Malmo leaves. The ferry to ") || len(m[0].Text) > 80 {
		t.Errorf("got %+v", m)
	}
}

// A run without a session has no memories of one, and does not search.
func TestNoSessionNoMemories(t *testing.T) {
	w := newRemembering(t, messages.RecallPolicy{Scope: messages.MemoryOfSession})
	w.keep("facts", longterm.Item{ID: "best", Text: "The ferry to Malmo leaves from pier 4."})
	if w.run(); w.memory.searches.Load() != 0 {
		t.Error("memory was searched")
	}
}

// What rules say of results of recall counts for memories: text is taken out, a memory is withheld, and the run has had a result of recall.
func TestRulesJudgeMemories(t *testing.T) {
	w := newRemembering(t, messages.RecallPolicy{})
	w.rules = &messages.Policy{Content: []messages.ContentRule{
		{Name: "piers", At: []messages.PolicyPoint{messages.PolicyOutput}, Pattern: `pier \d`, Action: messages.PolicyRedact},
		{Name: "sins", At: []messages.PolicyPoint{messages.PolicyOutput}, Pattern: `forbidden`, Action: messages.PolicyBlock},
	}}
	w.keep("facts",
		longterm.Item{ID: "open", Text: "The ferry to Malmo leaves from pier 4."},
		longterm.Item{ID: "closed", Text: "The ferry to Malmo is forbidden."},
	)
	if r := w.run(); !r.Success {
		t.Fatalf("%+v", r.Error)
	}
	m := w.recalled()
	if len(m.Memories) != 1 || m.Memories[0].Text != "The ferry to Malmo leaves from "+policy.Mark+"." || m.LeftOut != 1 {
		t.Errorf("got %+v", m)
	}
	told := map[string]bool{}
	for r := range w.records() {
		if p, ok := r.(*record.PolicyApplied); ok {
			told[p.Action+" "+p.Tool] = true
		}
	}
	if !told["redact recall"] || !told["block recall"] {
		t.Errorf("recorded %v", told)
	}
}

// Memory is searched before the first model call and never again, wherever the run continues: the prompt of each owner is the same.
func TestMemoriesSurviveAKillAnywhere(t *testing.T) {
	var want []messages.Message
	for cut := 0; ; cut++ {
		w := newRemembering(t, messages.RecallPolicy{})
		w.keep("facts", longterm.Item{ID: "pier", Text: "The ferry to Malmo leaves from pier 4."})
		left := cut
		out, _ := w.worker(&left).Run(t.Context(), w.ticket(1))
		over, recorded := out == runner.Done, false
		for r := range w.records() {
			recorded = recorded || r.Kind() == record.KindMemoryRecalled
		}
		searches := w.memory.searches.Load()
		if !over {
			w.keep("facts", longterm.Item{ID: "pier", Text: "The ferry to Malmo leaves from pier 5."})
			if out, err := w.worker(nil).Run(t.Context(), w.ticket(2)); out != runner.Done || err != nil {
				t.Fatal(cut, out, err)
			}
		}
		if recorded && w.memory.searches.Load() != searches {
			t.Errorf("killed after %d appends: memory was searched again", cut)
		}
		if recorded {
			for _, asked := range w.asked {
				if want == nil {
					want = asked.Messages
				}
				if diff := cmp.Diff(want, asked.Messages); diff != "" {
					t.Errorf("killed after %d appends: %s", cut, diff)
				}
			}
		}
		if over {
			if cut < 3 || want == nil {
				t.Errorf("the run took %d appends", cut)
			}
			return
		}
	}
}

// A run whose search fails continues without memories and says so, unless its agent requires them.
func TestASearchThatFails(t *testing.T) {
	away := func(context.Context, int) error { return fmt.Errorf("%w: hidden-key refused", longterm.ErrUnavailable) }
	hangs := func(ctx context.Context, _ int) error { <-ctx.Done(); return context.Cause(ctx) }
	for name, tc := range map[string]struct {
		policy   messages.RecallPolicy
		before   func(context.Context, int) error
		none     bool
		why      string
		searches int32
		fails    bool
	}{
		"away":               {before: away, why: "search facts: long-term memory is not available: [redacted] refused", searches: 1},
		"slow":               {before: hangs, policy: messages.RecallPolicy{Timeout: messages.Duration(20 * time.Millisecond)}, why: "it did not answer in time", searches: 1},
		"none":               {none: true, why: "this worker has none: set LONGSHORE_MEMORY"},
		"none, and required": {none: true, policy: messages.RecallPolicy{Required: true}, why: "this worker has none: set LONGSHORE_MEMORY", fails: true},
		"away, and required": {before: away, policy: messages.RecallPolicy{Required: true}, why: "search facts: long-term memory is not available: [redacted] refused", searches: 3, fails: true},
		"back the second time": {policy: messages.RecallPolicy{Required: true}, searches: 2, before: func(ctx context.Context, n int) error {
			if n == 1 {
				return away(ctx, n)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRemembering(t, tc.policy)
			w.keep("facts", longterm.Item{ID: "pier", Text: "The ferry to Malmo leaves from pier 4."})
			memory := w.memory
			if memory.before = tc.before; tc.none {
				w.memory = nil
			}
			r := w.run()
			if got := w.recalled(); got.Error != tc.why || got.Fatal != tc.fails || (got.Error == "") != (len(got.Memories) == 1) {
				t.Errorf("recorded %+v", got)
			}
			if n := memory.searches.Load(); n != tc.searches {
				t.Errorf("searched %d times", n)
			}
			if r.Success == tc.fails || tc.fails && (r.Error.Code != messages.CodeMemoryUnavailable || len(w.asked) != 0) {
				t.Errorf("ended so: %+v, after %d model calls", r, len(w.asked))
			}
			if tc.why != "" && !tc.fails && (r.Diagnostics == nil || !strings.Contains(r.Diagnostics.Warnings[0], tc.why)) {
				t.Errorf("diagnostics %+v", r.Diagnostics)
			}
		})
	}
}

// A cancel is obeyed while memory does not answer, and the search ends.
func TestCancelDuringASearch(t *testing.T) {
	w := newRemembering(t, messages.RecallPolicy{Timeout: messages.Duration(30 * time.Second)})
	began := make(chan struct{})
	w.memory.before = func(ctx context.Context, _ int) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	_, k := rnew(w.log, &rq{}, &re{}, nil)
	r := w.worker(nil)
	cancelled := make(chan error, 1)
	go func() {
		<-began
		_, err := k.Control(t.Context(), rrun, &record.CancelRequested{ID: "c", By: "ann"})
		r.Nudge(rrun)
		cancelled <- err
	}()
	if out, err := r.Run(t.Context(), w.ticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	if err := <-cancelled; err != nil {
		t.Fatal(err)
	}
	if got := w.result(); got.Status != messages.StatusCancelled || len(w.asked) != 0 {
		t.Errorf("ended so: %+v", got)
	}
}

// A search may have its text embedded for money: without a valid lease the log is asked first who owns the run.
func TestASearchIsProved(t *testing.T) {
	proofs := func(p *messages.MemoryPolicy) uint64 {
		w := newRemembering(t, messages.RecallPolicy{})
		w.def.Memory = p
		r, ticket := w.worker(nil), w.ticket(1)
		ticket.Lease = func() time.Duration { return 0 }
		if out, err := r.Run(t.Context(), ticket); out != runner.Done || err != nil {
			t.Fatal(out, err)
		}
		return r.Stats().Proofs
	}
	without, with := proofs(nil), proofs(&messages.MemoryPolicy{Recall: &messages.RecallPolicy{}})
	if with != without+1 {
		t.Errorf("%d proofs with a search, %d without", with, without)
	}
}

// A plan is made with memories; one that is given and worked without a model needs none.
func TestPlansAreMadeWithMemories(t *testing.T) {
	w := newRemembering(t, messages.RecallPolicy{})
	w.def.Planner = messages.PlannerPlan
	w.keep("facts", longterm.Item{ID: "pier", Text: "The ferry to Malmo leaves from pier 4."})
	w.run()
	first := w.asked[0]
	if first.Purpose != messages.PurposePlan || first.Recalled != 1 || !strings.Contains(first.Messages[0].Text(), "pier 4") {
		t.Errorf("asked for %q, %d recalled: %+v", first.Purpose, first.Recalled, first.Messages)
	}
	given := newRemembering(t, messages.RecallPolicy{})
	given.def.Planner, given.def.Plan = messages.PlannerPlan, &messages.Plan{Steps: []messages.PlanStep{pstep("a", "echo", "A")}}
	if given.run(); given.memory.searches.Load() != 0 {
		t.Error("memory was searched for a run that asks no model")
	}
}

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/model"
)

// Each owner of an execution is tested alone here: with a log in memory, and without the others wherever it can do without.

var (
	ownRun  = messages.Ref{Tenant: "t", Run: "r"}
	ownTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// sink takes what a run would publish or queue.
type sink struct{ letters int }

func (*sink) Open(messages.Ref) runlog.Outbox                              { return &sink{} }
func (*sink) Ended(context.Context, messages.Ref) (bool, error)            { return false, nil }
func (*sink) Publish(context.Context, uint64, iter.Seq[messages.Event])    {}
func (*sink) Through() uint64                                              { return 0 }
func (*sink) Flush(context.Context) error                                  { return nil }
func (*sink) Finish(context.Context, messages.Event) error                 { return nil }
func (*sink) Wake(context.Context, messages.Ref, uint64) error             { return nil }
func (*sink) Timer(context.Context, messages.Ref, uint64, time.Time) error { return nil }
func (*sink) Net(context.Context, messages.Ref, string, time.Time) error   { return nil }
func (*sink) Holds(context.Context, messages.Ref, uint64) (bool, error)    { return false, nil }
func (h *sink) DeadLetter(context.Context, messages.Ref, string, messages.Dead) error {
	h.letters++
	return nil
}

// newJob is a ticket of a worker with two tools, of which weigh waits and pay has an effect that must not be repeated.
func newJob(t *testing.T, ticket Ticket) (*job, *runlog.Memory) {
	t.Helper()
	log, h, n := &runlog.Memory{}, &sink{}, 0
	k := &runlog.Controller{Log: log, Queue: h, Events: h, Now: func() time.Time { return ownTime }, NewID: func() string {
		n++
		return fmt.Sprint("id", n)
	}}
	set, err := tools.NewSet(ownTool("weigh"), ownTool("pay"))
	if err != nil {
		t.Fatal(err)
	}
	r := New(Config{
		Worker: "w", Life: "life", Controller: k, Tools: set, Redact: func(s string) string { return strings.ReplaceAll(s, "hush", "***") },
		Agent: func(context.Context, string) (messages.Definition, error) { return *ownAgent(), nil },
	})
	ticket.Run = ownRun
	return &job{r: r, cfg: &r.cfg, log: log, run: ownRun, ticket: ticket, claimID: "mine"}, log
}

type ownTool string

func (o ownTool) Spec() messages.ToolSpec {
	s := messages.ToolSpec{Name: string(o), Description: "A tool.", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: messages.EffectRead}
	if o == "pay" {
		s.Effect = messages.EffectOnce
	}
	return s
}

func (o ownTool) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Content: messages.TextContent(string(o) + " hush")}, nil
}

func ownAgent() *messages.Definition {
	d := &messages.Definition{Name: "a", Tools: []string{"weigh", "pay"}}
	d.SetDefaults()
	return d
}

// put appends records to a log.
func put(t *testing.T, log *runlog.Memory, records ...record.Record) record.Entry {
	t.Helper()
	last, _, err := log.Last(t.Context(), ownRun)
	if err != nil {
		t.Fatal(err)
	}
	e := record.Entry{Head: record.Follow(last.Head, records...), Records: records}
	e.Head.ID, e.Head.Time = fmt.Sprint("e", last.Seq+1), ownTime
	seq, err := log.Append(t.Context(), ownRun, last.Seq, e)
	if err != nil {
		t.Fatal(err)
	}
	e.Place(seq)
	return e
}

// started are the first records of a run, claimed by claim for the ticket 7.
func started(claim string) []record.Record {
	var specs []messages.ToolSpec
	for _, o := range []ownTool{"weigh", "pay"} {
		specs = append(specs, o.Spec())
	}
	return []record.Record{
		&record.Started{Task: messages.Task{ID: "r", Tenant: "t", Agent: "a", Input: messages.TextInput("go")}, Agent: *ownAgent(), Tools: specs},
		&record.Claimed{Claim: claim, Worker: "w", Ticket: 7, Delivery: 1},
	}
}

// kinds are those of all records of a log.
func kinds(t *testing.T, log *runlog.Memory) (all []record.Kind) {
	t.Helper()
	for e, err := range log.Read(t.Context(), ownRun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Head.Kinds...)
	}
	return all
}

func newOwnership(t *testing.T, j *job) *ownership {
	t.Helper()
	ctx, abort := context.WithCancelCause(t.Context())
	t.Cleanup(func() { abort(nil) })
	return &ownership{job: j, ctx: ctx, abort: abort}
}

// newJournal is a journal that has folded a log; what it decides is of the test.
func newJournal(t *testing.T, j *job, decide func(*agent.State) ([]record.Record, agent.Action, error)) *journal {
	t.Helper()
	x := &journal{job: j, own: newOwnership(t, j), decide: decide, paid: t.Context(), state: &agent.State{}, out: j.cfg.Controller.Events.Open(j.run)}
	x.voice = &voice{job: j, state: func() *agent.State { return x.state }}
	for e, err := range j.log.Read(t.Context(), j.run, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		if err := x.state.Apply(e); err != nil {
			t.Fatal(err)
		}
		x.tip = &e
	}
	x.own.moved(x.state.Seq, x.state.Head.Claim == j.claimID)
	return x
}

func TestOwnershipIsProved(t *testing.T) {
	for name, tc := range map[string]struct {
		lease time.Duration
		claim string
		want  error
	}{
		"leased, whatever the log says": {time.Second, "another's", nil},
		"ours by the log":               {0, "mine", nil},
		"another's":                     {0, "another's", errFenced},
	} {
		j, log := newJob(t, Ticket{Seq: 7, Delivered: 1, Lease: func() time.Duration { return tc.lease }})
		put(t, log, started(tc.claim)...)
		own := newOwnership(t, j)
		if err := own.prove(t.Context()); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if aborted := context.Cause(own.ctx) != nil; aborted != (tc.want != nil) {
			t.Errorf("%s: aborted %t", name, aborted)
		}
	}
}

// What was recorded before a call began aborts it too, until the owner has read the log.
func TestOwnershipInterrupts(t *testing.T) {
	j, _ := newJob(t, Ticket{})
	own := newOwnership(t, j)
	aborted := 0
	abort := func(error) { aborted++ }
	own.interrupt()
	own.listen(abort)()
	own.resume()
	own.listen(abort)()
	if aborted != 1 {
		t.Errorf("aborted %d times, want once", aborted)
	}
}

func TestJournalCommits(t *testing.T) {
	j, log := newJob(t, Ticket{Seq: 7, Delivered: 1})
	put(t, log, started("mine")...)
	decided := 0
	x := newJournal(t, j, func(s *agent.State) ([]record.Record, agent.Action, error) {
		decided++
		r := &record.StepStarted{Step: s.Step + 1}
		return []record.Record{r}, &agent.CallModel{Step: s.Step + 1}, s.Advance(r)
	})
	put(t, log, &record.CancelRequested{ID: "c"}) // by another writer, after what the journal knows
	if _, err := x.commit(t.Context(), &record.HookFailed{Hook: "h"}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(kinds(t, log)), "[started claimed cancel_requested hook_failed step_started]"; got != want || decided != 2 {
		t.Errorf("%s, decided %d times, want %s after 2", got, decided, want)
	}
	if x.state.Cancel == nil || x.state.Step != 1 || x.state.Seq != 3 {
		t.Errorf("state %+v", x.state)
	}
	put(t, log, &record.Claimed{Claim: "another's", Ticket: 7, Delivery: 2})
	if _, err := x.commit(t.Context(), &record.HookFailed{Hook: "h"}); !errors.Is(err, errFenced) {
		t.Errorf("after another's claim: %v", err)
	}
}

func TestDecider(t *testing.T) {
	j, log := newJob(t, Ticket{Seq: 7, Delivered: 1})
	put(t, log, started("mine")...)
	warned := false
	gates := limits.Gates{
		{Name: "warns once", Gate: limits.Func(func(*agent.State, agent.Action) (v limits.Verdict) {
			if !warned {
				warned, v.Records = true, []record.Record{&record.BudgetWarned{Limit: messages.CapTokens}}
			}
			return v
		})},
		{Name: "holds the second step", Gate: limits.Func(func(s *agent.State, _ agent.Action) (v limits.Verdict) {
			if s.Step == 1 {
				v.Instead = &agent.Park{Parked: record.Parked{Reason: queue.ParkQuota}}
			}
			return v
		})},
	}
	hooks := &hookWork{job: j}
	x := &decider{job: j, hooks: hooks, gates: gates}
	s := newJournal(t, j, nil).state
	rs, action, err := x.decide(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, parks := action.(*agent.Park); !parks || len(rs) != 3 || s.Parked == nil {
		t.Errorf("%T after %d records; parked %v", action, len(rs), s.Parked)
	}
	for i, want := range []record.Kind{record.KindBudgetWarned, record.KindStepStarted, record.KindParked} {
		if i < len(rs) && rs[i].Kind() != want {
			t.Errorf("record %d is %s, want %s", i, rs[i].Kind(), want)
		}
	}
	hooks.denied = &messages.RunError{Code: messages.CodePolicy}
	if _, ends := x.plan(newJournal(t, j, nil).state).(*agent.Finish); !ends {
		t.Error("a run that a hook refused continues")
	}
}

func TestCallBookAdmits(t *testing.T) {
	call := func(id, tool, started string, approve bool) agent.OpenCall {
		return agent.OpenCall{Call: messages.ToolCall{ID: id, Name: tool, Arguments: "{}"}, Started: started, Approve: approve}
	}
	for name, tc := range map[string]struct {
		open  []agent.OpenCall
		wish  string // the call that wants to wait
		fly   string
		asked bool   // hooks decide first
		late  string // the call that a rate keeps
		want  string
	}{
		"calls that begin":               {open: []agent.OpenCall{call("1", "weigh", "", false), call("2", "weigh", "", false)}, want: "tool_started tool_started"},
		"a hook decides first":           {open: []agent.OpenCall{call("1", "weigh", "", false)}, asked: true},
		"one waits for a person":         {open: []agent.OpenCall{call("1", "weigh", "", true)}, want: "park approval 1"},
		"the others are made first":      {open: []agent.OpenCall{call("1", "weigh", "", true), call("2", "weigh", "", false)}, want: "tool_started"},
		"one wants to wait":              {open: []agent.OpenCall{call("1", "weigh", "mine", false)}, wish: "1", want: "park timer 1"},
		"one flies, and none waits":      {open: []agent.OpenCall{call("1", "weigh", "mine", false), call("2", "weigh", "mine", false)}, wish: "1", fly: "2"},
		"another owner has begun it":     {open: []agent.OpenCall{call("1", "weigh", "theirs", false)}},
		"another owner has begun to pay": {open: []agent.OpenCall{call("1", "pay", "theirs", false)}, want: "tool_returned"},
		"a rate keeps one":               {open: []agent.OpenCall{call("1", "weigh", "", false), call("2", "weigh", "", false)}, late: "1", want: "tool_started"},
		"a rate keeps one of others":     {open: []agent.OpenCall{call("1", "weigh", "", false), call("2", "weigh", "mine", false)}, late: "1", fly: "2"},
		"there is no such tool":          {open: []agent.OpenCall{call("1", "sing", "", false)}, want: "tool_returned"},
	} {
		j, log := newJob(t, Ticket{Seq: 7, Delivered: 1})
		put(t, log, started("mine")...)
		s := newJournal(t, j, nil).state
		s.Open = tc.open
		x := &callBook{
			job: j, args: map[string]json.RawMessage{}, from: map[string]string{}, flying: map[string]bool{}, parks: map[string]*tools.Park{},
			asks:    func(*agent.State, messages.ToolCall) bool { return tc.asked },
			permits: func(_ *agent.State, c messages.ToolCall) bool { return c.ID != tc.late },
		}
		if tc.wish != "" {
			x.parks[tc.wish] = &tools.Park{Reason: "timer"}
		}
		if tc.fly != "" {
			x.flying[tc.fly] = true
		}
		v := x.beforeCalls(s, &agent.CallTools{})
		var got []string
		for _, r := range v.Records {
			got = append(got, string(r.Kind()))
		}
		if p, parks := v.Instead.(*agent.Park); parks {
			got = append(got, "park", p.Parked.Reason, p.Parked.Call)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %q", name, got, tc.want)
		}
	}
}

// A hook that has been asked is not asked again in this claim, and what it refuses ends the run.
func TestHookWorkAsks(t *testing.T) {
	j, log := newJob(t, Ticket{Seq: 7, Delivered: 1})
	j.cfg.Hooks = []Hook{{On: messages.HookPreTask, Name: "door", Func: func(_ context.Context, c messages.HookCall) (messages.HookAnswer, error) {
		return messages.HookAnswer{Decision: messages.HookDeny, Reason: "hush: not " + c.Input}, nil
	}}}
	put(t, log, started("mine")...)
	jn := newJournal(t, j, func(*agent.State) ([]record.Record, agent.Action, error) { return nil, &agent.CallModel{}, nil })
	x := &hookWork{job: j, journal: jn, own: jn.own, calls: &callBook{job: j}}
	v := x.beforeHooks(jn.state, &agent.CallModel{})
	ask, ok := v.Instead.(*agent.AskHooks)
	if !ok || len(ask.Calls) != 1 {
		t.Fatalf("%+v", v)
	}
	if _, err := x.askHooks(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	if x.denied == nil || !strings.Contains(x.denied.Message, "***: not go") {
		t.Errorf("denied %+v", x.denied)
	}
	if v := x.beforeHooks(jn.state, &agent.CallModel{}); !v.Passes() {
		t.Errorf("asked again: %+v", v)
	}
}

// A model that cannot be reached is called again a few times where the agent says so, and then the error counts.
func TestModelWorkOutlives(t *testing.T) {
	j, log := newJob(t, Ticket{Seq: 7, Delivered: 1})
	put(t, log, started("mine")...)
	jn := newJournal(t, j, nil)
	jn.state.Agent.OnNetworkError = messages.NetworkRetry
	x := &modelWork{job: j, journal: jn, voice: jn.voice, limits: &limits.Set{}}
	tries := 0
	for x.outlives(t.Context(), 1, &model.Error{Class: model.Network}) {
		tries++
	}
	if tries != agent.MaxNetworkRetries {
		t.Errorf("called again %d times, want %d", tries, agent.MaxNetworkRetries)
	}
}

// A call begins only while the run is this owner's.
func TestToolWorkPerforms(t *testing.T) {
	for claim, want := range map[string]error{"mine": nil, "another's": errFenced} {
		j, log := newJob(t, Ticket{Seq: 7, Delivered: 1, Lease: func() time.Duration { return 0 }})
		put(t, log, started(claim)...)
		x := &toolWork{job: j, own: newOwnership(t, j)}
		a := x.perform(t.Context(), messages.ToolCall{ID: "1", Name: "weigh"}, tools.Call{Run: ownRun, ID: "1", Arguments: json.RawMessage("{}"), Timeout: time.Second}, judge{}, nil)
		if !errors.Is(a.err, want) || (want == nil) != (len(a.result.Content) == 1) {
			t.Errorf("claim %s: %+v, want %v", claim, a, want)
		}
	}
}

// The conversation of a session is folded from the newest run that is still there.
func TestConversationIsRead(t *testing.T) {
	j, log := newJob(t, Ticket{Seq: 7, Delivered: 1})
	rs := started("theirs")
	rs[0].(*record.Started).Task.Session = "s"
	put(t, log, append(rs, &record.Recalled{}, &record.StepStarted{Step: 1})...)
	put(t, log, &record.ModelReplied{Step: 1, Stop: messages.StopEnd, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("done")}},
		&record.Finished{Result: messages.EndedResult(ownRun, nil, messages.StatusCompleted, nil, ownTime, ownTime)})
	jn := &journal{job: j, state: &agent.State{Task: &messages.Task{Session: "s"}}}
	x := &conversation{job: j, journal: jn}
	from, said, err := x.conversation(t.Context(), []string{"r", "purged"})
	if err != nil || from != "r" || len(said.Messages) != 2 || said.Messages[1].Role != messages.RoleAssistant {
		t.Errorf("from %q: %+v, %v", from, said, err)
	}
}

func TestClaimerJudges(t *testing.T) {
	parked := &record.Parked{Reason: queue.ParkApproval}
	for name, tc := range map[string]struct {
		ticket Ticket
		log    [][]record.Record
		owned  bool
		want   Outcome
	}{
		"a wake-up of a purged run":      {ticket: Ticket{Seq: 9, After: 3}, want: Done},
		"a newer delivery has claimed":   {ticket: Ticket{Seq: 7, Delivered: 1}, log: [][]record.Record{started("theirs")}, want: Lost},
		"another ticket took it up":      {ticket: Ticket{Seq: 9, After: 2}, log: [][]record.Record{started("theirs"), {parked}, {&record.Answered{ID: "a", Park: 2}}, {&record.Claimed{Claim: "x", Ticket: 8, Delivery: 1}}}, want: Done},
		"what it names is not ready":     {ticket: Ticket{Seq: 9, After: 2}, log: [][]record.Record{started("theirs"), {parked}}, want: Done},
		"its wake-up":                    {ticket: Ticket{Seq: 9, After: 3}, log: [][]record.Record{started("theirs"), {parked}, {&record.Answered{ID: "a", Park: 2}}}, owned: true},
		"its owner before was lost":      {ticket: Ticket{Seq: 7, Delivered: 2}, log: [][]record.Record{started("theirs")}, owned: true},
		"its owner before hands it over": {ticket: Ticket{Seq: 7, Delivered: 2, Keeps: func(context.Context, string) (bool, error) { return true, nil }}, log: [][]record.Record{started("theirs")}, want: Kept},
	} {
		j, log := newJob(t, tc.ticket)
		for _, rs := range tc.log {
			put(t, log, rs...)
		}
		own := newOwnership(t, j)
		jn := &journal{job: j, own: own, state: &agent.State{}, out: j.cfg.Controller.Events.Open(j.run)}
		jn.voice = &voice{job: j, state: func() *agent.State { return jn.state }}
		set := &limits.Set{Quota: limits.Quota{Run: ownRun, Now: j.now, Log: slog.New(slog.DiscardHandler)}}
		x := &claimer{job: j, journal: jn, own: own, voice: jn.voice, limits: set, settle: &settlement{job: j, journal: jn, voice: jn.voice}}
		owned, outcome, err := x.judge(t.Context())
		if err != nil || owned != tc.owned || outcome != tc.want {
			t.Errorf("%s: owned %t, %s, %v; want %t, %s", name, owned, outcome, err, tc.owned, tc.want)
		}
		if last, _, _ := log.Last(t.Context(), ownRun); owned != (last.Head.Claim == "mine") {
			t.Errorf("%s: the claim is %q", name, last.Head.Claim)
		}
	}
}

// An attempt is spent by a failure and not by a worker that stops, and a run that is another's is left alone.
func TestSettlementHandsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		cause error
		claim string // appended behind the owner's back
		want  Outcome
		spent bool
	}{
		"a failure":        {errors.New("disk"), "", Return, true},
		"the worker stops": {ErrShutdown, "", Return, false},
		"it is another's":  {errors.New("disk"), "another's", Lost, false},
	} {
		j, log := newJob(t, Ticket{Seq: 7, Delivered: 1})
		put(t, log, started("mine")...)
		jn := newJournal(t, j, nil)
		if tc.claim != "" {
			put(t, log, &record.Claimed{Claim: tc.claim, Ticket: 7, Delivery: 2})
		}
		x := &settlement{job: j, journal: jn, voice: jn.voice}
		outcome, err := x.handBack(t.Context(), tc.cause)
		if outcome != tc.want || !errors.Is(err, tc.cause) {
			t.Errorf("%s: %s, %v", name, outcome, err)
		}
		for e := range log.Read(t.Context(), ownRun, 1, runlog.Tail) {
			if r, ok := e.Records[0].(*record.Released); ok != (tc.want == Return) || ok && r.Spent != tc.spent {
				t.Errorf("%s: %+v", name, e.Records[0])
			}
		}
	}
}

// At info an ordinary run says nothing, and what a tool wrote is logged without secrets.
func TestVoice(t *testing.T) {
	j, _ := newJob(t, Ticket{})
	var out strings.Builder
	j.cfg.Log = slog.New(slog.NewTextHandler(&out, nil))
	x := &voice{job: j, state: func() *agent.State { return &agent.State{Step: 3, Claims: 2} }}
	failed := messages.ToolResult{CallID: "1", Content: messages.TextContent("hush"), IsError: true}
	x.recount(t.Context(), []record.Record{
		&record.Claimed{Claim: "mine"}, &record.ModelReplied{Step: 3}, &record.ToolReturned{Step: 3, Name: "weigh", Result: failed},
	})
	got := out.String()
	if strings.Count(got, "\n") != 1 || strings.Contains(got, "hush") || !strings.Contains(got, "task_id=r step=3 attempt=2 tool=weigh") {
		t.Errorf("logged %q", got)
	}
}

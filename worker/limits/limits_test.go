package limits_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/model"
)

var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run = messages.Ref{Tenant: "acme", Run: "r"}
)

// world is what gates ask, as a test has it.
type world struct {
	quota  *record.Parked
	lines  []string
	paused string
	waits  string
	turn   bool
	err    error

	rates  map[string][]queue.Rate // by tool
	counts *limits.Counts
	later  time.Duration // how much later it is
	unmade []string
	flying bool
}

func (w *world) CountCall(ctx context.Context, r *queue.Rate, window int64) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.counts == nil {
		w.counts = &limits.Counts{}
	}
	return w.counts.CountCall(ctx, r, window)
}

func (w *world) HoldStart(context.Context, messages.Ref, time.Time, time.Time) (*record.Parked, error) {
	return w.quota, w.err
}

func (w *world) HoldCall(context.Context, messages.Ref, time.Time) (*record.Parked, error) {
	return w.quota, w.err
}

func (w *world) SemaphoresOf(*messages.Task) []string { return w.lines }

func (w *world) PausedFor(*messages.Task, string) string { return w.paused }

func (w *world) Acquire(context.Context, messages.Ref, uint64, []string, int) (string, error) {
	return w.waits, w.err
}

func (w *world) JoinSession(context.Context, messages.Ref, string) (bool, []string, error) {
	return w.turn, []string{"before"}, w.err
}

func (*world) Missing(*messages.Needs) string { return "no worker has the tool weigh" }

// newSet are the gates of a run in a world, and the state of the run.
func newSet(w *world) (*limits.Set, *agent.State) {
	s := &limits.Set{}
	at := func() time.Time { return now }
	s.Deadline.Now = at
	s.Budget.Now = at
	s.NotBefore = limits.NotBefore{Now: at, Quota: &s.Quota}
	s.Fit = limits.Fit{Has: func(tool string) bool { return tool == "read" }}
	s.Quota = limits.Quota{Quotas: w, Run: run, Now: at, Log: slog.New(slog.DiscardHandler)}
	s.Semaphore = limits.Semaphore{Permits: w, Flying: func() bool { return false }}
	s.Provider = limits.Provider{
		Now: at, Redact: func(s string) string { return s }, LongWait: time.Second, Key: func(int, string) string { return "k" },
	}
	s.Session.Turns = w
	s.Rate = limits.Rate{
		Counter: w, Of: func(_ *agent.State, tool string) []queue.Rate { return w.rates[tool] }, Due: due,
		Unmade: func(*agent.State) []string { return w.unmade }, Flying: func() bool { return w.flying }, Run: run,
		Now: func() time.Time { return now.Add(w.later) }, Log: slog.New(slog.DiscardHandler),
	}
	return s, &agent.State{
		Task: &messages.Task{ID: run.Run, Tenant: run.Tenant, Agent: "a"}, Agent: &messages.Definition{Name: "a"}, Step: 1, Calling: true,
	}
}

func due(s *agent.State) []agent.OpenCall {
	return slices.DeleteFunc(slices.Clone(s.Open), func(c agent.OpenCall) bool { return c.Result != nil })
}

func said(v limits.Verdict) string {
	text := ""
	if len(v.Records) > 0 {
		text = string(v.Records[0].Kind()) + " "
	}
	switch a := v.Instead.(type) {
	case nil:
		return text + "pass"
	case *agent.Park:
		text += "park " + a.Parked.Reason
		if a.Parked.Until != nil {
			text += fmt.Sprint(" for ", a.Parked.Until.Sub(now).Round(time.Second))
		}
		return text
	case *agent.Finish:
		return text + "end " + string(a.Err.Code)
	case *agent.AcquirePermits:
		return text + fmt.Sprint("join ", a.Semaphores)
	default:
		return fmt.Sprintf("%s%T", text, a)
	}
}

func TestGates(t *testing.T) {
	call, end, tools, session := &agent.CallModel{Step: 1}, &agent.Finish{}, &agent.CallTools{}, &agent.JoinSession{}
	later := now.Add(time.Hour)
	spent := &record.Parked{Reason: queue.ParkQuota, Until: new(now.Add(2 * time.Hour))}
	line, pause := queue.TenantSemaphore("acme"), queue.PauseSemaphore(queue.QuotaRef{Kind: queue.QuotaTenant, Name: "acme"})
	busy := &model.Error{Class: model.RateLimited, RetryAfter: time.Minute}
	for name, tc := range map[string]struct {
		w    world
		with func(t *testing.T, set *limits.Set, s *agent.State)
		next agent.Action
		want string
	}{
		"nothing holds it": {next: call, want: "pass"},
		"its time is over": {with: func(_ *testing.T, _ *limits.Set, s *agent.State) { s.Task.Deadline = new(now) }, next: call, want: "pass: end deadline"},
		"an end is never held": {
			w: world{quota: spent, lines: []string{line}, paused: pause},
			with: func(t *testing.T, set *limits.Set, s *agent.State) {
				s.Task.Deadline, s.Task.NotBefore, set.Fit.Roster = new(now), &later, &world{}
				set.Quota.Call(t.Context())
			}, next: end, want: "pass",
		},
		"its budget is used": {
			with: func(_ *testing.T, _ *limits.Set, s *agent.State) {
				s.Agent.Budget = &messages.Budget{Caps: messages.Caps{ModelCalls: 1}, OnBudget: messages.OnBudgetAsk}
				s.ModelCalls = make([]messages.ModelCall, 1)
			}, next: call, want: "pass: park budget",
		},
		"its budget is nearly used": {
			with: func(_ *testing.T, _ *limits.Set, s *agent.State) {
				s.Agent.Budget = &messages.Budget{Caps: messages.Caps{ModelCalls: 2}, Soft: 0.5}
				s.ModelCalls = make([]messages.ModelCall, 1)
			}, next: call, want: "budget_warned pass",
		},
		"its time has not come": {with: func(_ *testing.T, _ *limits.Set, s *agent.State) { s.Task.NotBefore = &later }, next: call, want: "park notBefore for 1h0m0s"},
		"its quota holds it for longer": {
			w: world{quota: spent},
			with: func(t *testing.T, set *limits.Set, s *agent.State) {
				s.Task.NotBefore = &later
				set.Quota.Start(t.Context(), now)
			}, next: call, want: "park quota for 2h0m0s",
		},
		"no worker fits": {
			with: func(_ *testing.T, set *limits.Set, s *agent.State) {
				set.Fit.Roster, s.Agent.Tools = &world{}, []string{"weigh"}
			}, next: call, want: "park worker",
		},
		"no park outlasts its time": {
			w: world{quota: spent},
			with: func(t *testing.T, set *limits.Set, s *agent.State) {
				s.Task.Deadline = new(now.Add(time.Minute))
				set.Quota.Call(t.Context())
			}, next: call, want: "park quota for 1m0s",
		},
		"it is unknown what was spent": {
			w:    world{err: errors.New("no answer")},
			with: func(t *testing.T, set *limits.Set, _ *agent.State) { set.Quota.Call(t.Context()) }, next: call, want: "park quota for 1m0s",
		},
		"it is unknown how many began": {
			w:    world{err: errors.New("no answer")},
			with: func(t *testing.T, set *limits.Set, _ *agent.State) { set.Quota.Start(t.Context(), now) }, next: call, want: "pass",
		},
		"a claim asks for its permits":    {w: world{lines: []string{line}}, next: tools, want: "lined join [" + line + "]"},
		"its log says that it asks":       {w: world{lines: []string{line}}, with: func(_ *testing.T, _ *limits.Set, s *agent.State) { s.Head.Semaphores = []string{line} }, next: call, want: "join [" + line + "]"},
		"it asks for no permit to end":    {w: world{lines: []string{line}}, next: end, want: "pass"},
		"a permit is missing":             {w: world{lines: []string{line}, waits: line}, with: joined(line), next: call, want: "park line"},
		"it has its permits":              {w: world{lines: []string{line}}, with: joined(line), next: call, want: "pass"},
		"it is paused":                    {w: world{paused: pause, waits: pause}, with: joined(pause), next: call, want: "park paused"},
		"paused with its permits":         {w: world{paused: pause}, with: joined(line), next: call, want: "lined join [" + pause + "]"},
		"a pause lets tool calls be made": {w: world{paused: pause}, with: joined(line), next: tools, want: "pass"},
		"its model asks to be called later": {
			with: func(t *testing.T, set *limits.Set, s *agent.State) {
				if !set.Provider.Postpone(s, 1, busy) {
					t.Error("the error counts")
				}
			}, next: call, want: "park model for 1m1s",
		},
		"a step begins before its call waits": {
			with: func(_ *testing.T, set *limits.Set, s *agent.State) {
				set.Provider.Postpone(s, 1, busy)
				s.Calling = false
			}, next: call, want: "pass",
		},
		"it asks for its turn":       {next: session, want: "pass"},
		"another run has the turn":   {with: turned, next: session, want: "park session"},
		"too many wait for the turn": {w: world{err: runlog.ErrSessionFull}, with: turned, next: session, want: "end conflict"},
		"the session has come to it": {w: world{turn: true}, with: turned, next: session, want: "pass"},
	} {
		t.Run(name, func(t *testing.T) {
			set, s := newSet(&tc.w)
			if tc.with != nil {
				tc.with(t, set, s)
			}
			next, v := set.InOrder().Before(s, tc.next)
			got := said(v)
			if v.Passes() && next != tc.next {
				got += ": " + said(limits.Verdict{Instead: next})
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// joined asks for permits before the gates are asked.
func joined(line string) func(*testing.T, *limits.Set, *agent.State) {
	return func(t *testing.T, set *limits.Set, s *agent.State) {
		t.Helper()
		if err := set.Semaphore.Join(t.Context(), run, s, []string{line}); err != nil {
			t.Error(err)
		}
	}
}

func turned(t *testing.T, set *limits.Set, _ *agent.State) {
	t.Helper()
	if _, _, err := set.Session.Join(t.Context(), run, "s"); err != nil {
		t.Error(err)
	}
}

// A paused provider is waited for once; when it has been resumed and the call is refused all the same, that is an error.
func TestWithhold(t *testing.T) {
	w := &world{}
	set, s := newSet(w)
	if !set.Semaphore.Withhold(s.Task, "openai") {
		t.Error("the first refusal counts")
	}
	if set.Semaphore.Withhold(s.Task, "openai") {
		t.Error("the second does not count, though the provider is not paused")
	}
	w.paused = "x"
	if !set.Semaphore.Withhold(s.Task, "openai") {
		t.Error("a refusal during a pause counts")
	}
}

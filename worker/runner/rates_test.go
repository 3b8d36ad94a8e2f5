package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	gates "github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// paced is a run whose agent has a rate of 2 calls of get in a minute, at 5 s past a full minute by a clock that the test moves. The
// model asks for calls once, and then answers.
type paced struct {
	*waiting

	now    time.Time
	mu     sync.Mutex // guards calls: those of one step run in parallel
	calls  []string   // made, as seconds after simTime
	counts gates.Counts
	asked  int   // for a count
	away   error // in place of a count

	opening func()               // called before calls are made
	lease   func() time.Duration // of tickets
}

func (p *paced) CountCall(ctx context.Context, r *queue.Rate, window int64) (int, error) {
	if p.asked++; p.away != nil {
		return 0, p.away
	}
	return p.counts.CountCall(ctx, r, window)
}

// getting is the tool that has a rate.
type getting struct {
	p      *paced
	effect messages.Effect
	fails  bool
}

func (g getting) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "get", Description: "Gets.", Effect: g.effect, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (g getting) Retry() tools.Retry { return tools.Retry{Retries: 5, First: time.Millisecond} }

func (g getting) Call(context.Context, tools.Call) (tools.Result, error) {
	g.p.mu.Lock()
	g.p.calls = append(g.p.calls, g.p.now.Sub(simTime).String())
	g.p.mu.Unlock()
	r := tools.Text("got")
	if g.fails {
		r = tools.Failure("busy")
		r.Transient = true
	}
	return r, nil
}

func newPaced(t *testing.T, get getting, calls int, change func(*messages.Definition)) *paced {
	t.Helper()
	p := &paced{now: simTime, opening: func() {}}
	p.waiting = &waiting{t: t, log: &runlog.Memory{}, queue: &rq{}, seq: 7}
	get.p = p
	set, err := tools.NewSet(get)
	if err != nil {
		t.Fatal(err)
	}
	_, p.controller = rnew(p.log, p.queue, &re{}, nil)
	p.controller.Now = func() time.Time { return p.now }
	d := messages.Definition{Name: "a", Tools: []string{"get"}, Policy: &messages.Policy{Rates: []messages.RateRule{{Name: "web", Tool: "get", PerMinute: new(2)}}}}
	if d.SetDefaults(); change != nil {
		change(&d)
	}
	p.runner = runner.New(runner.Config{
		Worker: "w", Controller: p.controller, Tools: set, Rates: p,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { p.opening(); return nil, nil },
		Agent:     func(context.Context, string) (messages.Definition, error) { return d, nil },
		Model: rmodel(func(_ context.Context, req model.Request) (*model.Reply, error) {
			if len(req.Messages) > 1 && req.Messages[len(req.Messages)-1].Role == messages.RoleTool {
				return say("done"), nil
			}
			m := messages.Message{Role: messages.RoleAssistant}
			for i := range calls {
				m.Content = append(m.Content, messages.Block{ToolCall: &messages.ToolCall{ID: string(rune('a' + i)), Name: "get", Arguments: "{}"}})
			}
			return &model.Reply{Message: m, Stop: messages.StopToolCalls}, nil
		}),
	})
	return p
}

// begin works the first ticket.
func (p *paced) begin() {
	p.t.Helper()
	ticket := rticket(1)
	ticket.Lease = p.lease
	if out, err := p.runner.Run(p.t.Context(), ticket); out != runner.Done || err != nil {
		p.t.Fatalf("start: %s, %v", out, err)
	}
}

// parked is the park that the log ends with.
func (p *paced) parked() *record.Parked {
	p.t.Helper()
	last := p.last()
	park, ok := last.Records[len(last.Records)-1].(*record.Parked)
	if !ok {
		p.t.Fatalf("the log ends with %v", last.Head.Kinds)
	}
	return park
}

// wakeAt lets the park end at a time.
func (p *paced) wakeAt(at time.Time) {
	p.t.Helper()
	p.now = at
	p.wake()
}

func (p *paced) made(want ...string) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.calls); diff != "" {
		p.t.Errorf("calls were made at (-want +got)\n%s", diff)
	}
}

// results are the texts and codes that the model was told.
func (p *paced) results() (out []string) {
	for e := range p.log.Read(p.t.Context(), rrun, 0, runlog.Tail) {
		for _, r := range e.Records {
			if r, ok := r.(*record.ToolReturned); ok {
				out = append(out, strings.TrimSpace(string(r.Code)+" "+r.Result.Content[0].Text))
			}
		}
	}
	return out
}

// A batch makes the calls that there is room for; the others wait in a park for the next minutes, each in the first one with room.
func TestCallsBeyondTheRateWait(t *testing.T) {
	p := newPaced(t, getting{effect: messages.EffectRead}, 5, nil)
	p.begin()
	p.made("0s", "0s")
	park := p.parked()
	minute := simTime.Add(55 * time.Second)
	if park.Reason != queue.ParkRate || !park.Until.Equal(minute) || park.Limit != "web" || park.Call != "" ||
		park.Question != "rule web of agent a allows 2 calls of get in a minute" || len(park.Permits) != 3 {
		t.Fatalf("it parks so: %+v", park)
	}
	asked := p.asked
	p.wakeAt(minute)
	p.made("0s", "0s", "55s", "55s")
	if p.asked != asked {
		t.Errorf("what had its permits was counted again: %d, then %d", asked, p.asked)
	}
	p.wakeAt(minute.Add(time.Minute))
	p.made("0s", "0s", "55s", "55s", "1m55s")
	p.completed()
	if got := p.results(); !slices.Equal(got, []string{"got", "got", "got", "got", "got"}) {
		t.Errorf("the model was told %q", got)
	}
}

// A wake-up that comes after its minute takes a permit of the minute in which it comes.
func TestALatePermitIsTakenAnew(t *testing.T) {
	p := newPaced(t, getting{effect: messages.EffectOnce}, 3, nil)
	p.begin()
	asked := p.asked
	p.wakeAt(simTime.Add(10 * time.Minute))
	p.completed()
	if p.asked != asked+1 || len(p.calls) != 3 {
		t.Errorf("%d calls were made, and %d more were counted", len(p.calls), p.asked-asked)
	}
}

// A call that waits for a person takes its permit when it is about to be made.
func TestAnApprovalTakesNoPermit(t *testing.T) {
	p := newPaced(t, getting{effect: messages.EffectOnce}, 1, func(d *messages.Definition) { d.Approve = &messages.Approve{Always: []string{"get"}} })
	p.begin()
	park := p.parked()
	if park.Reason != queue.ParkApproval || p.asked != 0 {
		t.Fatalf("it parks for %s, and %d permits are taken", park.Reason, p.asked)
	}
	yes := &record.Decided{ID: "d", Park: p.last().Head.ParkSeq, Step: 1, Call: park.Call, Hash: park.Approval.Hash, By: "ann"}
	if _, err := p.controller.Control(t.Context(), rrun, yes); err != nil {
		t.Fatal(err)
	}
	p.seq++
	if out, err := p.runner.Run(t.Context(), runner.Ticket{Run: rrun, Seq: p.seq, After: p.queue.wakes[len(p.queue.wakes)-1], Delivered: 1}); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	p.completed()
	p.made("0s")
	if p.asked != 1 {
		t.Errorf("%d permits are taken", p.asked)
	}
}

// A run that waits for its rate can be cancelled, and its deadline ends it.
func TestAWaitForARateEnds(t *testing.T) {
	p := newPaced(t, getting{effect: messages.EffectOnce}, 3, nil)
	p.begin()
	if _, err := p.controller.Control(t.Context(), rrun, &record.CancelRequested{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	p.wake()
	p.made("0s", "0s")
	if end, ok := p.last().Records[len(p.last().Records)-1].(*record.Finished); !ok || end.Result.Status != messages.StatusCancelled {
		t.Errorf("it ends so: %+v", p.last())
	}

	p = newPaced(t, getting{effect: messages.EffectOnce}, 3, func(d *messages.Definition) {
		d.Budget = &messages.Budget{Caps: messages.Caps{WallTime: messages.Duration(30 * time.Second)}}
	})
	p.begin()
	if park := p.parked(); !park.Until.Equal(simTime.Add(30 * time.Second)) {
		t.Errorf("it waits until %v", park.Until)
	}
	p.wakeAt(simTime.Add(31 * time.Second))
	p.made("0s", "0s")
	if end, ok := p.last().Records[len(p.last().Records)-1].(*record.Finished); !ok || end.Result.Error == nil || end.Result.Error.Code != messages.CodeBudget {
		t.Errorf("it ends so: %+v", p.last())
	}
}

// While calls cannot be counted none is made, and the run spends no attempt.
func TestAnUnknownRateHoldsCalls(t *testing.T) {
	p := newPaced(t, getting{effect: messages.EffectRead}, 2, nil)
	p.away = errors.New("no counter")
	if p.begin(); p.asked != 1 {
		t.Errorf("it was tried %d times, though each try may last", p.asked)
	}
	for range 7 { // more than it has attempts
		park := p.parked()
		if park.Reason != queue.ParkRate || park.Until.Sub(p.now) != time.Minute || !strings.Contains(park.Question, "cannot be counted") || len(park.Permits) != 0 {
			t.Fatalf("it parks so: %+v", park)
		}
		p.wakeAt(*park.Until)
	}
	p.made()
	p.away = nil
	p.wakeAt(*p.parked().Until)
	p.completed()
	if len(p.calls) != 2 {
		t.Errorf("%d calls", len(p.calls))
	}
}

// A worker that stands still between the permit and the call makes the call with another permit, whether it stood still before the calls
// of the wave or before the effect of one. That a tool is called once does not make the outcome unknown, for it was not called.
func TestAStandstillWithAPermit(t *testing.T) {
	for name, stop := range map[string]func(p *paced, jump func()){
		"before the wave":   func(p *paced, jump func()) { p.opening = jump },
		"before the effect": func(p *paced, jump func()) { p.lease = func() time.Duration { jump(); return time.Hour } },
	} {
		for full, others := range map[string]int{"with room": 0, "without room": 2} {
			t.Run(name+" "+full, func(t *testing.T) {
				p := newPaced(t, getting{effect: messages.EffectOnce}, 1, func(d *messages.Definition) {
					d.Budget = &messages.Budget{Caps: messages.Caps{ToolCalls: 1}}
				})
				jumped := false
				stop(p, func() {
					if p.asked == 0 || jumped {
						return
					}
					jumped = true
					p.now = simTime.Add(2 * time.Minute)
					rate := queue.Rate{Key: "agent:a:web", Window: time.Minute}
					for range others {
						if _, err := p.counts.CountCall(t.Context(), &rate, rate.Index(p.now)); err != nil {
							t.Error(err)
						}
					}
				})
				p.begin()
				if others > 0 {
					p.made()
					if park := p.parked(); !slices.Equal(park.Unmade, []string{"a"}) {
						t.Errorf("it parks so: %+v", park)
					}
					p.wakeAt(*p.parked().Until)
				}
				p.completed()
				if got := p.results(); !jumped || len(p.calls) != 1 || !slices.Equal(got, []string{"got"}) {
					t.Errorf("calls at %v, results %q", p.calls, got)
				}
			})
		}
	}
}

// Each attempt of a call that fails takes a permit; without one the failure counts.
func TestAttemptsTakePermits(t *testing.T) {
	p := newPaced(t, getting{effect: messages.EffectIdempotent, fails: true}, 1, nil)
	p.begin()
	p.completed()
	p.made("0s", "0s")
	if got := p.results(); !slices.Equal(got, []string{"tool_failed busy"}) {
		t.Errorf("the model was told %q", got)
	}
}

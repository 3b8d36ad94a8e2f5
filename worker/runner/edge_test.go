package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

type rq struct {
	mu      sync.Mutex
	wakes   []uint64
	letters []messages.Dead
	fail    error
}

func (q *rq) Wake(_ context.Context, _ messages.Ref, n uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakes = append(q.wakes, n)
	return nil
}
func (q *rq) Timer(context.Context, messages.Ref, uint64, time.Time) error { return nil }
func (q *rq) Net(context.Context, messages.Ref, string, time.Time) error   { return nil }
func (q *rq) Holds(context.Context, messages.Ref, uint64) (bool, error)    { return true, nil }
func (q *rq) DeadLetter(_ context.Context, _ messages.Ref, _ string, d messages.Dead) error {
	if q.fail != nil {
		return q.fail
	}
	q.letters = append(q.letters, d)
	return nil
}

type re struct{ failFinish error }

func (e *re) Open(messages.Ref) runlog.Outbox                   { return &ro{e: e} }
func (e *re) Ended(context.Context, messages.Ref) (bool, error) { return false, nil }

type ro struct {
	e   *re
	seq uint64
}

func (o *ro) Publish(_ context.Context, seq uint64, _ iter.Seq[messages.Event]) { o.seq = seq }
func (o *ro) Through() uint64                                                   { return 0 }
func (o *ro) Flush(context.Context) error                                       { return nil }
func (o *ro) Finish(context.Context, messages.Event) error                      { return o.e.failFinish }

type rmodel func(ctx context.Context, req model.Request) (*model.Reply, error)

func (m rmodel) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		r, err := m(ctx, req)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Reply: r}, nil)
	}
}

func say(s string) *model.Reply {
	return &model.Reply{Message: messages.Message{Content: messages.TextContent(s)}, Stop: messages.StopEnd}
}

var ids struct {
	sync.Mutex
	n int
}

func rnew(log runlog.Log, q runlog.Queue, e runlog.Events, m rmodel) (*runner.Runner, *runlog.Controller) {
	d := messages.Definition{Name: "a"}
	d.SetDefaults()
	return rnewOf(d, log, q, e, m)
}

// rnewOf is rnew with an agent.
func rnewOf(d messages.Definition, log runlog.Log, q runlog.Queue, e runlog.Events, m rmodel) (*runner.Runner, *runlog.Controller) {
	k := &runlog.Controller{Log: log, Queue: q, Events: e, Now: time.Now, NewID: func() string {
		ids.Lock()
		defer ids.Unlock()
		ids.n++
		return fmt.Sprint("x", ids.n)
	}}
	set, err := tools.NewSet()
	if err != nil {
		panic(err)
	}
	return runner.New(runner.Config{
		Worker: "w", Controller: k, Model: m, Tools: set,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, errors.New("none") },
		Agent:     func(context.Context, string) (messages.Definition, error) { return d, nil },
	}), k
}

var rrun = messages.Ref{Tenant: "t", Run: "r"}

func rticket(delivered int) runner.Ticket {
	b, _ := json.Marshal(map[string]string{"input": "hello"})
	return runner.Ticket{Run: rrun, Seq: 7, Body: b, Priority: messages.PriorityNormal, Queued: time.Now(), Delivered: delivered}
}

func rdump(t *testing.T, l *runlog.Memory) {
	t.Helper()
	for e := range l.Read(context.Background(), rrun, 0, runlog.Tail) {
		t.Logf("%d %v %s attempt=%d events=%d", e.Seq, e.Head.Kinds, e.Head.Phase, e.Head.Attempt, e.Head.Events)
	}
}

// A settle that fails after the end hands nothing back: the next delivery settles.
func TestSettleFailsAfterTheEnd(t *testing.T) {
	log := &runlog.Memory{}
	ev := &re{failFinish: errors.New("EVENTS is full")}
	r, _ := rnew(log, &rq{}, ev, func(context.Context, model.Request) (*model.Reply, error) { return say("ok"), nil })
	out, err := r.Run(context.Background(), rticket(1))
	t.Log(out, err)
	rdump(t, log)
	ev.failFinish = nil
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("PANIC: %v", p)
		}
	}()
	out, err = r.Run(context.Background(), rticket(2))
	t.Log(out, err)
}

// lose begins a run that has lost two workers in its first model call.
func lose(t *testing.T, k *runlog.Controller, log *runlog.Memory) record.Entry {
	t.Helper()
	start := &record.Started{Task: messages.Task{ID: "r", Tenant: "t", Agent: "a", Priority: "normal", Input: messages.TextInput("hello")}}
	start.Agent.SetDefaults()
	e, err := k.Begin(t.Context(), rrun, start, &record.Claimed{Claim: "dead", Worker: "w0", Ticket: 7}, &record.StepStarted{Step: 1})
	if err != nil {
		t.Fatal(err)
	}
	again := &record.Claimed{Claim: "dead-2", Worker: "w1", Ticket: 7, Delivery: 1}
	e = record.Entry{Head: record.Follow(e.Head, again), Records: []record.Record{again}}
	e.Head.ID = "again"
	seq, err := log.Append(t.Context(), rrun, 1, e)
	if err != nil {
		t.Fatal(err)
	}
	return e.At(seq)
}

// Hand-backs because the quarantine is full are no deaths.
func TestFullQuarantineIsNoDeath(t *testing.T) {
	log := &runlog.Memory{}
	q := &rq{}
	r, k := rnew(log, q, &re{}, func(context.Context, model.Request) (*model.Reply, error) { return say("ok"), nil })
	lose(t, k, log)
	full := errors.New("too many runs wait in quarantine")
	for n := 2; n < 40; n++ {
		tk := rticket(n)
		asked := false
		tk.Quarantine = func(context.Context, bool) (*runner.Trial, error) { asked = true; return nil, full }
		out, err := r.Run(context.Background(), tk)
		if out == runner.Done {
			t.Errorf("delivery %d: %v %v", n, out, err)
			rdump(t, log)
			t.Logf("letters: %+v", q.letters[0].Error)
			return
		}
		if !asked {
			t.Fatal("a run that lost two workers was taken up in the open")
		}
	}
}

// A delivery that was in the socket of a stopped worker takes nothing from the live owner by a newer delivery.
func TestStaleDeliveryTakesNothing(t *testing.T) {
	log := &runlog.Memory{}
	calling, proceed := make(chan struct{}), make(chan struct{})
	w2, _ := rnew(log, &rq{}, &re{}, func(ctx context.Context, _ model.Request) (*model.Reply, error) {
		close(calling)
		<-proceed
		return say("w2"), nil
	})
	w1, _ := rnew(log, &rq{}, &re{}, func(context.Context, model.Request) (*model.Reply, error) { return say("w1"), nil })
	done := make(chan runner.Outcome)
	go func() { o, _ := w2.Run(context.Background(), rticket(2)); done <- o }()
	<-calling
	o1, err := w1.Run(context.Background(), rticket(1)) // SIGCONT: reads its old delivery now
	t.Log("w1 (delivery 1):", o1, err)
	close(proceed)
	o2 := <-done
	t.Log("w2 (delivery 2):", o2)
	rdump(t, log)
	if o1 == runner.Done && o2 == runner.Lost {
		t.Error("the older delivery took the run from the live owner of the newer one")
	}
}

// A ticket that waits to be claimed is not kept alive once a newer delivery of it has claimed.
func TestWaitingTicketIsNotKeptAlive(t *testing.T) {
	log := &runlog.Memory{}
	r, k := rnew(log, &rq{}, &re{}, func(context.Context, model.Request) (*model.Reply, error) { return say("ok"), nil })
	e := lose(t, k, log)
	waits, proceed := make(chan struct{}), make(chan struct{})
	tk := rticket(2)
	tk.Quarantine = func(context.Context, bool) (*runner.Trial, error) {
		close(waits)
		<-proceed
		return &runner.Trial{End: func(bool) {}}, nil
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = r.Run(context.Background(), tk) }()
	<-waits
	h := record.Follow(e.Head, &record.Claimed{Claim: "w2", Worker: "w2", Ticket: 7, Delivery: 3})
	h.ID = "other"
	if _, err := log.Append(context.Background(), rrun, e.Seq, record.Entry{Head: h, Records: []record.Record{&record.Claimed{Claim: "w2", Worker: "w2", Ticket: 7, Delivery: 3}}}); err != nil {
		t.Fatal(err)
	}
	if ours, _ := r.Owns(context.Background(), rrun); ours {
		t.Error("w2 has claimed the ticket, and a waiting worker still keeps it alive")
	}
	close(proceed)
	<-done
}

type failingLog struct {
	*runlog.Memory
	fail func(after, through uint64) error
}

func (l failingLog) Read(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	if err := l.fail(after, through); err != nil {
		return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, err) }
	}
	return l.Memory.Read(ctx, run, after, through)
}

// A run that cannot be folded after its claim is released, with no attempt burnt when the worker stops.
func TestHydrateFailureIsReleased(t *testing.T) {
	mem := &runlog.Memory{}
	log := failingLog{mem, nil}
	n := 0
	log.fail = func(after, through uint64) error {
		if n++; n == 1 {
			return runner.ErrShutdown
		}
		return nil
	}
	r, k := rnew(log, &rq{}, &re{}, func(context.Context, model.Request) (*model.Reply, error) { return say("ok"), nil })
	start := &record.Started{Task: messages.Task{ID: "r", Tenant: "t", Agent: "a", Priority: "normal", Input: messages.TextInput("hello")}}
	start.Agent.SetDefaults()
	if _, err := k.Begin(context.Background(), rrun, start, &record.Claimed{Claim: "dead", Worker: "w0", Ticket: 7}, &record.StepStarted{Step: 1}); err != nil {
		t.Fatal(err)
	}
	out, err := r.Run(context.Background(), rticket(2))
	t.Log(out, err)
	rdump(t, mem)
	last, _, _ := mem.Last(context.Background(), rrun)
	if out != runner.Return || last.Head.Attempt != 1 {
		t.Errorf("outcome %v, attempt %d: want return and 1", out, last.Head.Attempt)
	}
}

type ctxLog struct{ *runlog.Memory } // reads fail when their context has ended, as those of bus do

func (l ctxLog) Read(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	if ctx.Err() != nil {
		return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, context.Cause(ctx)) }
	}
	return l.Memory.Read(ctx, run, after, through)
}

// A second nudge while an aborted call winds up changes nothing.
func TestSecondNudge(t *testing.T) {
	mem := &runlog.Memory{}
	calling, aborted, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r, k := rnew(ctxLog{mem}, &rq{}, &re{}, func(ctx context.Context, _ model.Request) (*model.Reply, error) {
		close(calling)
		<-ctx.Done()
		close(aborted)
		<-proceed // closing a connection takes a moment
		return nil, context.Cause(ctx)
	})
	type res struct {
		o   runner.Outcome
		err error
	}
	done := make(chan res)
	go func() { o, err := r.Run(context.Background(), rticket(1)); done <- res{o, err} }()
	<-calling
	if _, err := k.Control(context.Background(), rrun, &record.CancelRequested{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	r.Nudge(rrun)
	<-aborted
	r.Nudge(rrun) // cancel pressed twice
	close(proceed)
	got := <-done
	t.Log(got.o, got.err)
	rdump(t, mem)
	if got.o != runner.Done {
		t.Error("the run was handed back instead of cancelled")
	}
}

type badLast struct {
	*runlog.Memory
	bad messages.Ref
}

func (l badLast) Last(ctx context.Context, run messages.Ref) (record.Entry, bool, error) {
	if run == l.bad {
		return record.Entry{}, true, record.ErrNewerVersion
	}
	return l.Memory.Last(ctx, run)
}

// One log that cannot be read does not keep the sweep from the others.
func TestSweepGoesOnAfterABadLog(t *testing.T) {
	mem := &runlog.Memory{}
	q := &rq{}
	_, k := rnew(badLast{mem, messages.Ref{Tenant: "t", Run: "bad"}}, q, &re{}, nil)
	start := &record.Started{Task: messages.Task{ID: "r", Tenant: "t", Agent: "a", Priority: "normal", Input: messages.TextInput("hello")}}
	if _, err := k.Begin(context.Background(), rrun, start, &record.Claimed{Claim: "c", Worker: "w0", Ticket: 7}, &record.Lost{Ticket: 7}); err != nil {
		t.Fatal(err)
	}
	n, err := k.Sweep(context.Background(), func(yield func(messages.Ref, error) bool) {
		_ = yield(messages.Ref{Tenant: "t", Run: "bad"}, nil) && yield(rrun, nil)
	})
	if len(q.wakes) == 0 {
		t.Errorf("repaired %d, %v: the second run was not looked at", n, err)
	}
}

// A conflicting task whose dead letter could not be written is not acked.
func TestConflictIsKeptUntilDeadLettered(t *testing.T) {
	mem := &runlog.Memory{}
	q := &rq{fail: errors.New("DEAD is full")}
	r, k := rnew(mem, q, &re{}, nil)
	start := &record.Started{Task: messages.Task{ID: "r", Tenant: "t", Agent: "a", Priority: "normal", Input: messages.TextInput("another")}}
	if _, err := k.Begin(context.Background(), rrun, start, &record.Claimed{Claim: "c", Worker: "w0", Ticket: 3}); err != nil {
		t.Fatal(err)
	}
	out, err := r.Run(context.Background(), rticket(1))
	if out == runner.Done {
		t.Errorf("%v %v", out, err)
	}
}

type slowAppend struct {
	ctxLog
	stored, looked, proceed chan struct{}
	once, first             *sync.Once
}

func (l slowAppend) Heads(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	defer l.first.Do(func() { close(l.looked) })
	return l.ctxLog.Heads(ctx, run, after, through)
}

func (l slowAppend) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	seq, err := l.ctxLog.Append(ctx, run, last, e)
	if e.Head.Has(record.KindClaimed) {
		l.once.Do(func() { close(l.stored); <-l.proceed })
	}
	return seq, err
}

// A nudge that arrives after the claim is stored and before its answer is not lost.
func TestNudgeDuringClaim(t *testing.T) {
	mem := &runlog.Memory{}
	l := slowAppend{ctxLog{mem}, make(chan struct{}), make(chan struct{}), make(chan struct{}), &sync.Once{}, &sync.Once{}}
	r, k := rnew(l, &rq{}, &re{}, func(ctx context.Context, _ model.Request) (*model.Reply, error) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(30 * time.Second): // far from what a busy machine needs
			t.Error("not cancelled")
			return say("not cancelled"), nil
		}
	})
	done := make(chan runner.Outcome)
	go func() { o, _ := r.Run(context.Background(), rticket(1)); done <- o }()
	<-l.stored
	if _, err := k.Control(context.Background(), rrun, &record.CancelRequested{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	r.Nudge(rrun)
	<-l.looked
	close(l.proceed)
	t.Log(<-done)
}

// garbage is a cache that holds something that is not a state, or another run's, under the right identity.
type garbage struct {
	seq  uint64
	id   string
	data string
}

func (g garbage) Load(context.Context, messages.Ref) (uint64, string, []byte, bool) {
	return g.seq, g.id, []byte(g.data), true
}
func (garbage) Save(messages.Ref, uint64, string, []byte) {}
func (garbage) Wants() bool                               { return true }

// Whatever a cache answers, the log decides.
func TestCacheHoldsGarbage(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":            `{"seq":1,"head":{"id":"one"}}`,
		"no agent":           `{"seq":1,"head":{"id":"one"},"task":{"id":"r","tenant":"t","input":"x"}}`,
		"another run":        `{"seq":1,"head":{"id":"one"},"task":{"id":"q","tenant":"t","input":"x"},"agent":{"name":"a","planner":"tools","maxSteps":3,"maxTokens":9,"onToolError":"model"},"transcript":[{"role":"user","content":[{"text":"evil"}]}]}`,
		"an unknown planner": `{"seq":1,"head":{"id":"one"},"task":{"id":"r","tenant":"t","input":"x"},"agent":{"name":"a","planner":"evil","maxSteps":3,"maxTokens":9,"onToolError":"model"},"transcript":[{"role":"user","content":[{"text":"evil"}]}]}`,
		"not JSON":           `{`,
	} {
		t.Run(name, func(t *testing.T) {
			log := &runlog.Memory{}
			asked := ""
			m := rmodel(func(_ context.Context, req model.Request) (*model.Reply, error) {
				asked = req.Messages[len(req.Messages)-1].Text()
				return say("ok"), nil
			})
			_, k := rnew(log, &rq{}, &re{}, m)
			start := &record.Started{Task: messages.Task{ID: "r", Tenant: "t", Agent: "a", Priority: "normal", Input: messages.TextInput("hello")}}
			start.Agent.Name = "a"
			start.Agent.SetDefaults()
			h := record.Follow(record.Head{}, start, &record.Claimed{Claim: "dead", Worker: "w0", Ticket: 7, Delivery: 1})
			h.ID, h.Time = "one", time.Now()
			seq, err := log.Append(context.Background(), rrun, 0, record.Entry{Head: h, Records: []record.Record{
				start, &record.Claimed{Claim: "dead", Worker: "w0", Ticket: 7, Delivery: 1},
			}})
			if err != nil {
				t.Fatal(err)
			}
			set, err := tools.NewSet()
			if err != nil {
				t.Fatal(err)
			}
			r := runner.New(runner.Config{
				Worker: "w", Controller: k, Model: m, Tools: set, Cache: garbage{seq, "one", data},
				Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, errors.New("none") },
			})
			if out, err := r.Run(context.Background(), rticket(2)); out != runner.Done || asked != "hello" {
				t.Errorf("%v, %v: the model was asked %q", out, err, asked)
			}
		})
	}
}

// saves is a cache that takes everything, tells when and which step it was, and gives nothing.
type saves struct{ steps chan string }

func (saves) Load(context.Context, messages.Ref) (uint64, string, []byte, bool) {
	return 0, "", nil, false
}

func (s saves) Save(_ messages.Ref, _ uint64, _ string, data []byte) {
	state, err := agent.Decode(data)
	if err != nil {
		panic(err)
	}
	s.steps <- fmt.Sprintf("%d at %v", state.Step, time.Since(synctestEpoch))
}
func (saves) Wants() bool { return true }

// synctestEpoch is when the clock of a test begins (testing/synctest).
var synctestEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A state is cached while the model is waited for, from the second step on, at the latest when the model has answered, and not
// with each of many quick steps.
func TestStateIsCachedDuringCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, turn := saves{make(chan string, 10)}, 0
		m := rmodel(func(context.Context, model.Request) (*model.Reply, error) {
			turn++
			switch turn {
			case 1, 4:
				time.Sleep(2 * time.Second)
			case 5:
				time.Sleep(200 * time.Millisecond)
			case 6:
				return say("ok"), nil
			}
			call := messages.ToolCall{ID: "c", Name: "none", Arguments: "{}"}
			return &model.Reply{Message: messages.Message{Content: []messages.Block{{ToolCall: &call}}}, Stop: messages.StopToolCalls}, nil
		})
		cache.run(t, m, messages.Definition{Name: "a"})
		// The first is the task alone; the third and the last are quick, right after another.
		want := []string{"2 at 2s", "4 at 3s", "5 at 4.2s"}
		if diff := cmp.Diff(want, slices.Collect(func(yield func(string) bool) {
			for s := range cache.steps {
				yield(s)
			}
		})); diff != "" {
			t.Error(diff)
		}
	})
}

// run has a run worked that is cached here.
func (s saves) run(t *testing.T, m rmodel, d messages.Definition) {
	t.Helper()
	d.SetDefaults()
	_, k := rnew(&runlog.Memory{}, &rq{}, &re{}, m)
	set, err := tools.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(runner.Config{
		Worker: "w", Controller: k, Model: m, Tools: set, Cache: s,
		Agent:     func(context.Context, string) (messages.Definition, error) { return d, nil },
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, errors.New("none") },
	})
	if out, err := r.Run(context.Background(), rticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	close(s.steps)
}

// A long run caches its state when an eighth of its steps are new: with each step it would encode all of the steps before.
func TestStateOfALongRunIsCachedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps = 400
		cache, turn := saves{make(chan string, steps)}, 0
		cache.run(t, rmodel(func(context.Context, model.Request) (*model.Reply, error) {
			if turn++; turn == steps {
				return say("ok"), nil
			}
			time.Sleep(2 * time.Second) // with each of them it would be due
			call := messages.ToolCall{ID: "c", Name: "none", Arguments: "{}"}
			return &model.Reply{Message: messages.Message{Content: []messages.Block{{ToolCall: &call}}}, Stop: messages.StopToolCalls}, nil
		}), messages.Definition{Name: "a", MaxSteps: steps, RepeatLimit: new(int)})
		var cached []int
		for s := range cache.steps {
			var step int
			if _, err := fmt.Sscan(s, &step); err != nil {
				t.Fatal(err)
			}
			cached = append(cached, step)
		}
		if n := len(cached); n < 20 || n > 50 { // 7 of the first steps, and one each time an eighth is new
			t.Errorf("cached at %d steps: %v", n, cached)
		}
		for i, next := range append(cached[1:], steps) {
			if at := cached[i]; (next-at-1)*8 >= next {
				t.Errorf("between steps %d and %d it was not cached", at, next)
			}
		}
	})
}

// slowLog takes its time for an append.
type slowLog struct{ *runlog.Memory }

const appendTakes = 10 * time.Millisecond

func (l slowLog) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	time.Sleep(appendTakes)
	return l.Memory.Append(ctx, run, last, e)
}

// Of many tasks that come at once the first are with their models as soon as they are claimed, and not after the claims
// of all others.
func TestFirstComeFirstCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 1000
		begun := time.Now()
		called := make(chan time.Duration, runs)
		m := rmodel(func(context.Context, model.Request) (*model.Reply, error) {
			called <- time.Since(begun)
			return say("ok"), nil
		})
		r, _ := rnew(slowLog{&runlog.Memory{}}, &rq{}, &re{}, m)
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() {
				ticket := rticket(1)
				ticket.Run.Run, ticket.Seq = fmt.Sprint("r", i), uint64(i+1)
				if out, err := r.Run(context.Background(), ticket); out != runner.Done || err != nil {
					t.Error(out, err)
				}
			})
		}
		synctest.Wait()
		for i := range runs { // a heartbeat keeps those that wait, too
			if ours, err := r.Owns(t.Context(), messages.Ref{Tenant: rrun.Tenant, Run: fmt.Sprint("r", i)}); !ours || err != nil {
				t.Fatal(i, ours, err)
			}
		}
		all.Wait()
		for i := range 3 * runner.AtOnce {
			if took, most := <-called, time.Duration(2+i/runner.AtOnce)*appendTakes; took > most {
				t.Fatalf("call %d began after %v, want %v at most", i, took, most)
			}
		}
	})
}

// A forged end of a log, whose head does not fit its records, does not crash the process.
func TestForeignEnd(t *testing.T) {
	log := &runlog.Memory{}
	_, k := rnew(log, &rq{}, &re{}, nil)
	h := record.Head{ID: "x", Version: 1, Time: time.Now(), Kinds: []record.Kind{record.KindFinished}, Phase: record.PhaseFinished, FirstEvent: 1}
	for _, records := range [][]record.Record{nil, {&record.Finished{}}, {&record.StepEnded{}}} {
		run := messages.Ref{Tenant: "t", Run: fmt.Sprint("f", len(records), len(h.ID))}
		h.ID += "x"
		if _, err := log.Append(context.Background(), run, 0, record.Entry{Head: h, Records: records}); err != nil {
			t.Fatal(err)
		}
		_, err := k.Sweep(context.Background(), func(yield func(messages.Ref, error) bool) { yield(run, nil) })
		t.Log(err)
	}
}

// stopLog tells the worker to stop in the moment when a reply is to be recorded.
type stopLog struct {
	*runlog.Memory
	stop func()
}

func (l stopLog) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	if e.Head.Has(record.KindModelReplied) {
		l.stop()
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return l.Memory.Append(ctx, run, last, e)
}

// A worker that is told to stop while it records a paid reply records it.
func TestShutdownWhileAReplyIsRecorded(t *testing.T) {
	mem := &runlog.Memory{}
	ctx, stop := context.WithCancelCause(t.Context())
	r, _ := rnew(stopLog{mem, func() { stop(runner.ErrShutdown) }}, &rq{}, &re{},
		func(context.Context, model.Request) (*model.Reply, error) { return say("ok"), nil })
	out, err := r.Run(ctx, rticket(1))
	if last, _, _ := mem.Last(t.Context(), rrun); last.Head.Phase != record.PhaseFinished {
		t.Errorf("outcome %v (%v), and the log ends with %v: the reply is lost", out, err, last.Head.Kinds)
	}
}

// A fleet may take less input than the contract allows, however the task came to it.
func TestInputAboveTheLimitIsRefused(t *testing.T) {
	set, err := tools.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	log := &runlog.Memory{}
	_, k := rnew(log, &rq{}, &re{}, nil)
	r := runner.New(runner.Config{
		Worker: "w", Controller: k, Tools: set, MaxInput: 4, Model: rmodel(func(context.Context, model.Request) (*model.Reply, error) { return say("ok"), nil }),
		Agent: anyAgent,
	})
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil { // its input is "hello"
		t.Fatalf("%s, %v", out, err)
	}
	for e := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		for _, r := range e.Records {
			if f, ok := r.(*record.Finished); ok {
				if f.Result.Error == nil || f.Result.Error.Code != messages.CodeInvalidInput || !strings.Contains(f.Result.Error.Message, "input: larger than 4 bytes") {
					t.Errorf("%+v", f.Result)
				}
				return
			}
		}
	}
	t.Error("the run has not ended")
}

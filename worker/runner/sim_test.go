package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	gates "github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/replay"
	"github.com/longshore-run/longshore/worker/runner"
)

// The simulation runs the real core (Runner, Controller, planner, fold) in a world where everything that may happen
// happens at random: a process is killed or paused at every operation, any task message is delivered again at any
// time although its owner lives, an owner that is asked whether it lives may answer or not, acks are not fenced, reads are stale, events are stored late or never, people answer
// and cancel, the dispatcher dies between its writes. Nothing is slept for: the scheduler picks which operation continues.

// ablation switches one rule of docs/protocol.md off; the simulation must then find a violation.
type ablation string

const (
	allRules      ablation = ""
	shortReads    ablation = "rule 6: a read may stop short of what the ticket names"
	anyTicket     ablation = "rule 7: a ticket is not told from another"
	ackOnly       ablation = "rule 9: an end or a park that is found is only acked"
	wakeWithout   ablation = "rule 10: a wake-up without a record"
	noWatermark   ablation = "rule 13: a new owner publishes nothing again"
	finishedTwice ablation = "rule 14: run_finished is not expected to be first"
	noNet         ablation = "rule 20: no net under a control record"
	noSweep       ablation = "rule 20: no sweep after a loss of power"
	noLease       ablation = "rule 26: an effect begins without a valid lease"
	blindTrust    ablation = "rule 26: a delivery that is taken over is a lease before the log was looked at"
	lateClaims    ablation = "rule 26: a claim is stored however old its delivery is"
	freshCounts   ablation = "rule 29: each process counts calls for itself"
	oneFolder     ablation = "rule 30: a folder for all claims"
	filesApart    ablation = "rule 30: the record of the files outside of the call's entry"
	noReference   ablation = "rule 30: the run does not refer to its files"
	chaosSteps             = 400
	maxSteps               = 8_000
	simCrashes             = 6
)

var (
	errDead = errors.New("killed")
	simTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	simRun  = messages.Ref{Tenant: "t", Run: "r"}
)

// violations counts what must never happen.
type violations struct {
	stranded, doubleEnd, missingEvents, repeatedCalls, steals, otherBodies, onceTwice, unapproved, foreign, overRate, otherFiles int
	first                                                                                                                        string
}

func (v *violations) add(o violations) {
	v.stranded += o.stranded
	v.doubleEnd += o.doubleEnd
	v.missingEvents += o.missingEvents
	v.repeatedCalls += o.repeatedCalls
	v.steals += o.steals
	v.otherBodies += o.otherBodies
	v.onceTwice += o.onceTwice
	v.unapproved += o.unapproved
	v.foreign += o.foreign
	v.overRate += o.overRate
	v.otherFiles += o.otherFiles
	if v.first == "" {
		v.first = o.first
	}
}

func (v *violations) total() int {
	return v.stranded + v.doubleEnd + v.missingEvents + v.repeatedCalls + v.steals + v.otherBodies + v.onceTwice + v.unapproved + v.foreign + v.overRate + v.otherFiles
}

// world is everything outside the processes. It survives them.
type world struct {
	seed   uint64
	rules  ablation
	rnd    *rand.Rand // the scheduler's alone
	log    *runlog.Memory
	script script
	plan   *simPlan  // of seeds from planSeeds on
	rate   *simRate  // of seeds from rateSeeds on
	files  *simFiles // of seeds from fileSeeds on

	mu      sync.Mutex
	pending []waiter
	procs   []*process
	tasks   map[uint64]*message
	timers  map[string]*message // schedules, by subject
	nextMsg uint64
	ids     int
	events  []messages.Event // as stored, doubles included
	once    map[string]int
	found   violations
	claims  map[string]*process // by claim id
	waited  bool                // a park until the model may be called again is in the log
	calm    bool
}

type message struct {
	seq       uint64
	wake      messages.Wake
	start     bool
	busy      int
	delivered int
	by        *process // of a net: it fires only when its dispatcher is done, for Control ends before its net is due
}

type waiter struct {
	p       *process
	label   string
	proceed chan struct{}
}

// process is one life of a worker or a dispatcher's request. Once dead, nothing it does has an effect.
type process struct {
	w        *world
	id       int
	msg      *message
	dead     bool
	done     bool
	cancel   context.CancelFunc
	delivery int            // of msg
	leased   bool           // msg was given to no one else since
	runner   *runner.Runner // of a worker that works a ticket
	outbox   []stored       // events that were sent and are not stored yet
	fresh    gates.Counts   // its own, when they are not of all
}

type stored struct {
	seq   uint64
	event *messages.Event // nil: only the mark moves
	out   *outbox
}

// op is a boundary: the scheduler decides when the process continues, or whether it dies here.
func (p *process) op(label string) error {
	p.w.mu.Lock()
	if p.dead {
		p.w.mu.Unlock()
		return errDead
	}
	wt := waiter{p, label, make(chan struct{})}
	p.w.pending = append(p.w.pending, wt)
	p.w.mu.Unlock()
	<-wt.proceed
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.dead {
		return errDead
	}
	return nil
}

// Log.

type simLog struct{ p *process }

func (l simLog) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	if err := l.p.op("append"); err != nil {
		return 0, err
	}
	w := l.p.w
	if w.rules == noWatermark {
		e.Head.EventsThrough = last
	}
	if !w.goodRecords(e) {
		return 0, errors.New("malformed entry")
	}
	if last != 0 && e.Head.Has(record.KindClaimed) && w.rules != lateClaims && !l.p.lease() {
		return 0, context.DeadlineExceeded // of the claim: the lease
	}
	seq, err := w.files.append(ctx, l, run, last, e)
	if err == nil {
		w.appended(l.p, last, e)
	}
	return seq, err
}

// goodRecords round-trips the records: what the simulation holds in memory must also live on the wire.
func (w *world) goodRecords(e record.Entry) bool {
	b, err := record.EncodeRecords(e.Records)
	if err != nil {
		return false
	}
	_, err = record.DecodeRecords(b)
	return err == nil
}

// appended watches for claims that take a run from a live owner by another ticket.
func (w *world) appended(p *process, last uint64, e record.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waited = w.waited || e.Head.Has(record.KindParked) && e.Head.Waits == queue.ParkModel
	if !e.Head.Has(record.KindClaimed) {
		return
	}
	w.claims[e.Head.Claim] = p
	for prev := range w.log.Read(context.Background(), simRun, last-1, runlog.Tail) {
		if prev.Seq == last && prev.Head.Phase == record.PhaseActive {
			old := w.claims[prev.Head.Claim]
			if old != nil && !old.dead && !old.done && (old.msg != p.msg || p.delivery <= old.delivery) {
				w.violate(&w.found.steals, "stolen from a live owner")
			}
		}
	}
}

func (l simLog) Read(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	if err := l.p.op("read"); err != nil {
		return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, err) }
	}
	if l.p.w.rules == shortReads && through != runlog.Tail {
		through = 0
	}
	return l.p.w.log.Read(ctx, run, after, through)
}

func (l simLog) Heads(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range l.Read(ctx, run, after, through) {
			if e.Records = nil; !yield(e, err) {
				return
			}
		}
	}
}

func (l simLog) Last(ctx context.Context, run messages.Ref) (record.Entry, bool, error) {
	if err := l.p.op("last"); err != nil {
		return record.Entry{}, false, err
	}
	return l.p.w.log.Last(ctx, run)
}

func (l simLog) End(ctx context.Context, run messages.Ref, heard bool) (record.Entry, bool, error) {
	if err := l.p.op("end"); err != nil {
		return record.Entry{}, false, err
	}
	return l.p.w.log.End(ctx, run, heard)
}

// Queue.

type simQueue struct{ p *process }

func (q simQueue) put(label, key string, m *message) error {
	if err := q.p.op(label); err != nil {
		return err
	}
	q.p.w.mu.Lock()
	defer q.p.w.mu.Unlock()
	q.p.w.put(key, m)
	return nil
}

func (w *world) put(schedule string, m *message) {
	w.nextMsg++
	m.seq = w.nextMsg
	if schedule != "" {
		if w.timers[schedule] == nil {
			w.timers[schedule] = m
		}
		return
	}
	w.tasks[m.seq] = m
}

func (q simQueue) Wake(_ context.Context, _ messages.Ref, after uint64) error {
	return q.put("wake", "", &message{wake: messages.Wake{After: after}})
}

func (q simQueue) Timer(_ context.Context, run messages.Ref, park uint64, _ time.Time) error {
	return q.put("timer", run.TimerSubject(park), &message{wake: messages.Wake{After: park, Errand: messages.ErrandTimer}})
}

func (q simQueue) Net(_ context.Context, run messages.Ref, control string, _ time.Time) error {
	if q.p.w.rules == noNet {
		return nil
	}
	return q.put("net", run.NetSubject(control), &message{wake: messages.Wake{Errand: messages.ErrandNet}, by: q.p})
}

func (q simQueue) Holds(_ context.Context, _ messages.Ref, ticket uint64) (bool, error) {
	if err := q.p.op("holds"); err != nil {
		return false, err
	}
	q.p.w.mu.Lock()
	defer q.p.w.mu.Unlock()
	return q.p.w.tasks[ticket] != nil, nil
}

func (q simQueue) DeadLetter(context.Context, messages.Ref, string, messages.Dead) error {
	return q.p.op("dead-letter")
}

// Events.

type simEvents struct{ p *process }

func (e simEvents) Open(messages.Ref) runlog.Outbox { return &outbox{p: e.p} }

func (e simEvents) Ended(context.Context, messages.Ref) (bool, error) {
	if err := e.p.op("ended"); err != nil {
		return false, err
	}
	e.p.w.mu.Lock()
	defer e.p.w.mu.Unlock()
	return slices.ContainsFunc(e.p.w.events, func(ev messages.Event) bool { return ev.Name() == messages.EventRunFinished }), nil
}

type outbox struct {
	p       *process
	through uint64
}

func (o *outbox) Publish(_ context.Context, seq uint64, events iter.Seq[messages.Event]) {
	o.p.w.mu.Lock()
	defer o.p.w.mu.Unlock()
	for e := range events {
		o.p.outbox = append(o.p.outbox, stored{0, &e, o})
	}
	o.p.outbox = append(o.p.outbox, stored{seq, nil, o})
}

// store lets up to n of the events that are on their way arrive.
func (p *process) store(n int) {
	for ; n > 0 && len(p.outbox) > 0 && !p.dead; n-- {
		s := p.outbox[0]
		p.outbox = p.outbox[1:]
		if s.event == nil {
			s.out.through = s.seq
			n++
			continue
		}
		p.w.events = append(p.w.events, *s.event)
	}
}

func (o *outbox) Through() uint64 {
	o.p.w.mu.Lock()
	defer o.p.w.mu.Unlock()
	return o.through
}

func (o *outbox) Flush(context.Context) error {
	for {
		o.p.w.mu.Lock()
		left := len(o.p.outbox)
		o.p.w.mu.Unlock()
		if left == 0 {
			return nil
		}
		if err := o.p.op("flush"); err != nil {
			return err
		}
		o.p.w.mu.Lock()
		o.p.store(1)
		o.p.w.mu.Unlock()
	}
}

func (o *outbox) Finish(ctx context.Context, e messages.Event) error {
	if err := o.Flush(ctx); err != nil {
		return err
	}
	if err := o.p.op("finish"); err != nil {
		return err
	}
	o.p.w.mu.Lock()
	defer o.p.w.mu.Unlock()
	if o.p.w.rules != finishedTwice {
		for _, old := range o.p.w.events {
			if old.Name() == messages.EventRunFinished {
				return nil
			}
		}
	}
	o.p.w.events = append(o.p.w.events, e)
	return nil
}

// Model and tools.

// script is what the model wants, turn by turn; it depends on the seed alone.
type script [][]messages.ToolCall

func newScript(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 7))
	s := make(script, 1+r.IntN(3))
	for turn := range s {
		for i := range 1 + r.IntN(3) {
			name := []string{"read", "read", "idem", "once", "nope", "ask"}[r.IntN(6)]
			s[turn] = append(s[turn], messages.ToolCall{ID: fmt.Sprintf("c%d.%d", turn, i), Name: name, Arguments: `{}`})
		}
	}
	return s.dangerous(seed)
}

func (s script) has(name string) bool {
	return slices.ContainsFunc(s, func(calls []messages.ToolCall) bool {
		return slices.ContainsFunc(calls, func(c messages.ToolCall) bool { return c.Name == name })
	})
}

type simModel struct{ p *process }

func (m simModel) Stream(_ context.Context, req model.Request) iter.Seq2[model.Delta, error] {
	if m.p.w.plan != nil {
		return m.planned(req)
	}
	return func(yield func(model.Delta, error) bool) {
		turn := 0
		for i := range req.Messages {
			if req.Messages[i].Role == messages.RoleAssistant {
				turn++
			}
		}
		if err := m.p.op("model"); err != nil {
			yield(model.Delta{}, err)
			return
		}
		if err := req.Begins(); err != nil {
			yield(model.Delta{}, err)
			return
		}
		m.p.w.called(m.p, func(r record.Record) bool {
			rep, ok := r.(*record.ModelReplied)
			return ok && rep.Step == turn+1
		})
		if m.p.w.busy(turn) {
			yield(model.Delta{}, &model.Error{Class: model.RateLimited, RetryAfter: time.Minute})
			return
		}
		yield(model.Delta{Reply: m.p.w.reply(turn)}, nil)
	}
}

// busy reports whether the model asks for a long wait: in some seeds in one turn, until the run has parked for it.
func (w *world) busy(turn int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.waited && int(w.seed%7) == turn
}

// called checks that the current owner does not make a call whose record is in the log.
func (w *world) called(p *process, recorded func(record.Record) bool) {
	last, ok, _ := w.log.Last(context.Background(), simRun)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ok || w.claims[last.Head.Claim] != p {
		w.violate(&w.found.foreign, "an effect began after another's claim")
		return
	}
	for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
		if slices.ContainsFunc(e.Records, recorded) {
			w.violate(&w.found.repeatedCalls, "a recorded call was made again")
		}
	}
}

type simTool struct {
	p      *process
	name   string
	effect messages.Effect
}

func (t simTool) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: t.name, Description: "A tool.", Effect: t.effect, Destructive: t.name == wreck || t.name == doom, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (t simTool) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	w := t.p.w
	w.called(t.p, func(r record.Record) bool {
		ret, ok := r.(*record.ToolReturned)
		return ok && ret.Result.CallID == c.ID
	})
	w.rate.made(w, t.name)
	if t.name == "idem" {
		if err := w.files.write(t.p, &c); err != nil {
			return tools.Result{}, err
		}
	}
	if c.ID == cutCall {
		w.mu.Lock()
		w.violate(&w.found.onceTwice, "a call of a cut reply was made")
		w.mu.Unlock()
	}
	if w.mustAsk(t.name, c.ID) && !w.approved(c.ID, string(c.Arguments)) {
		w.mu.Lock()
		w.violate(&w.found.unapproved, "a call was made without an approval")
		w.mu.Unlock()
	}
	if w.seed%5 == 2 && refused(c.ID) {
		w.mu.Lock()
		w.violate(&w.found.onceTwice, "a call that a hook refused was made")
		w.mu.Unlock()
	}
	if t.effect == messages.EffectOnce {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.once[c.ID]++; w.once[c.ID] > 1 {
			w.violate(&w.found.onceTwice, "a once tool ran twice")
		}
	}
	if w.plan != nil && w.plan.fails == c.ID && t.name == "read" {
		return tools.Failure("no " + c.ID), nil
	}
	if t.name == "ask" {
		park := &tools.Park{Reason: "answer"}
		if w.expires() {
			park.For = time.Minute
		}
		return tools.Result{Park: park}, nil
	}
	return tools.Text("ok " + c.ID), nil
}

// expires reports whether parks of this seed have an end; the others wait forever for their answer.
func (w *world) expires() bool { return w.seed%3 == 0 }

// violate counts; the caller holds mu.
func (w *world) violate(n *int, what string) {
	*n++
	if w.found.first == "" {
		w.found.first = fmt.Sprintf("seed %d: %s\n%s", w.seed, what, w.dump())
	}
}

func (w *world) dump() string {
	var b strings.Builder
	for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
		fmt.Fprintf(&b, "  %d %v %s ticket=%d claim=%d park=%d attempt=%d events=%d+%d through=%d\n", e.Seq, e.Head.Kinds,
			e.Head.Phase, e.Head.Ticket, e.Head.ClaimSeq, e.Head.ParkSeq, e.Head.Attempt, e.Head.FirstEvent, e.Head.Events, e.Head.EventsThrough)
	}
	return b.String()
}

// Processes.

func (w *world) spawn(m *message, do func(context.Context, *process)) {
	p := &process{w: w, id: len(w.procs), msg: m}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), processOf{}, p))
	p.cancel = cancel
	w.procs = append(w.procs, p)
	go func() {
		if p.op("start") == nil {
			do(ctx, p)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		p.done = true
		cancel()
		if m != nil {
			m.busy--
		}
	}()
}

func (p *process) controller(now time.Time) *runlog.Controller {
	return &runlog.Controller{
		Log: simLog{p}, Queue: simQueue{p}, Events: simEvents{p},
		Now: func() time.Time { return now.Add(p.w.rate.passed()) },
		NewID: func() string {
			p.w.mu.Lock()
			defer p.w.mu.Unlock()
			p.w.ids++
			return fmt.Sprint("id", p.w.ids)
		},
	}
}

// deliver hands a message to a fresh worker. The caller holds mu.
func (w *world) deliver(t *testing.T, m *message) {
	t.Helper()
	m.busy++
	m.delivered++
	delivered := m.delivered
	for _, p := range w.procs {
		p.leased = p.leased && p.msg != m // the ack wait of each was over
	}
	w.spawn(m, func(ctx context.Context, p *process) {
		w.mu.Lock()
		p.delivery, p.leased = delivered, m.delivered == delivered
		w.mu.Unlock()
		ack := func() {
			if p.op("ack") == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.tasks, m.seq) // unfenced: any holder of a delivery can ack it
			}
		}
		if m.wake.Errand == messages.ErrandSweep {
			if _, err := p.controller(simTime).Sweep(ctx, func(yield func(messages.Ref, error) bool) { yield(simRun, nil) }); err == nil {
				ack()
			}
			return
		}
		if m.wake.Errand != "" {
			if p.controller(simTime.Add(time.Hour)).Errand(ctx, simRun, m.wake) == nil {
				ack()
			}
			return
		}
		if w.rules == ackOnly && w.rests(m) {
			ack()
			return
		}
		if p.newRunner(t).run(ctx, p, m, delivered) == runner.Done {
			ack()
		}
	})
}

// rests reports whether the run has ended, or was parked by this very message.
func (w *world) rests(m *message) bool {
	last, ok, _ := w.log.Last(context.Background(), simRun)
	return ok && (last.Head.Phase == record.PhaseFinished || last.Head.Phase != record.PhaseActive && last.Head.Ticket == m.seq)
}

type simRunner struct {
	*runner.Runner
	w *world
}

func (p *process) newRunner(t *testing.T) simRunner {
	t.Helper()
	set, err := tools.NewSet(simTool{p, "read", messages.EffectRead}, simTool{p, "idem", messages.EffectIdempotent},
		simTool{p, "once", messages.EffectOnce}, simTool{p, "ask", messages.EffectRead},
		simTool{p, wreck, messages.EffectIdempotent}, simTool{p, doom, messages.EffectOnce})
	if err != nil {
		t.Error(err)
	}
	cfg := runner.Config{
		Worker: fmt.Sprint("w", p.id), Controller: p.controller(simTime), Model: simModel{p}, Tools: set, MaxAttempts: 1000,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil },
		Agent: func(context.Context, string) (messages.Definition, error) {
			d := messages.Definition{Name: "a", MaxSteps: 9, Tools: []string{"read", "idem", "once", "ask", wreck, doom}}
			p.w.approves(&d)
			p.w.speaks(&d)
			p.w.remembers(&d)
			p.w.rate.define(&d)
			d.SetDefaults()
			if p.w.seed%6 == 5 { // it warns, and asks for every second model call
				d.Budget = &messages.Budget{
					Caps: messages.Caps{ModelCalls: 2, ToolCalls: 4}, Soft: 0.5, OnBudget: messages.OnBudgetAsk,
				}
			}
			return d, nil
		},
		Hooks: p.hooks(), Rates: simCounter{p},
	}
	p.w.files.work(p, &cfg)
	p.memory(&cfg)
	return simRunner{runner.New(cfg), p.w}
}

func (r simRunner) run(ctx context.Context, p *process, m *message, delivered int) runner.Outcome {
	t := runner.Ticket{Run: simRun, Seq: m.seq, After: m.wake.After, Delivered: delivered, Priority: messages.PriorityNormal, Queued: simTime}
	if m.start {
		t.Body = r.w.files.body()
	}
	if r.w.rules != noLease {
		t.Lease, t.Keeps = p.remaining, p.handOver
	}
	if r.w.rules == anyTicket {
		t.Seq = 1
	}
	p.w.mu.Lock()
	p.runner = r.Runner
	p.w.mu.Unlock()
	outcome, _ := r.Run(ctx, t)
	return outcome
}

// remaining is a Lease: it is looked at, and may be over, at a moment of the scheduler's choice.
func (p *process) remaining() time.Duration {
	if p.op("lease") != nil || !p.lease() {
		return 0
	}
	return time.Hour
}

func (p *process) lease() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.leased
}

// handOver asks the owner of a claim. One that lives answers, or is paused and does not.
func (p *process) handOver(_ context.Context, claim string) (bool, error) {
	if err := p.op("hand over"); err != nil {
		return false, err
	}
	last, _, _ := p.w.log.Last(context.Background(), simRun)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	owner := p.w.claims[claim]
	if owner == nil || owner == p || owner.dead || owner.done || !owner.runner.Works(simRun, claim) || p.silent(owner) {
		return false, nil
	}
	if p.leased { // else the message comes again
		p.leased, owner.leased = false, last.Head.Claim == claim || p.w.rules == blindTrust
	}
	return true, nil
}

// silent reports whether a living owner is paused for longer than it is waited for.
func (p *process) silent(owner *process) bool { return (p.id+owner.id+int(p.w.seed))%3 == 0 }

// control lets a dispatcher answer or cancel. The caller holds mu.
func (w *world) control(cancel bool) {
	stale := w.expires() && w.rnd.IntN(4) == 0
	w.spawn(nil, func(ctx context.Context, p *process) {
		k := p.controller(simTime)
		if cancel {
			_, _ = k.Control(ctx, simRun, &record.CancelRequested{ID: "x", Reason: "enough"})
			w.nudge()
			return
		}
		last, ok, err := k.Log.Last(ctx, simRun)
		if err != nil || !ok || last.Head.Phase != record.PhaseParked {
			return
		}
		if w.rules == wakeWithout {
			_ = k.Queue.Wake(ctx, simRun, last.Seq)
			return
		}
		if last.Head.Waits == queue.ParkApproval {
			w.decide(ctx, k, last, stale)
			return
		}
		_, _ = k.Control(ctx, simRun, &record.Answered{ID: "a", Park: last.Head.ParkSeq, Content: messages.TextContent(messages.AnswerContinue)})
	})
}

// nudge hints to every worker that the log has grown.
func (w *world) nudge() {
	w.mu.Lock()
	var runners []*runner.Runner
	for _, p := range w.procs {
		if p.runner != nil && !p.done && !p.dead {
			runners = append(runners, p.runner)
		}
	}
	w.mu.Unlock()
	for _, r := range runners {
		r.Nudge(simRun)
	}
}

// trial runs one seed to its end. Calm: no crash, no redelivery, no cancel: the reference.
func trial(t *testing.T, seed uint64, rules ablation, calm bool) (*world, violations) {
	t.Helper()
	w := &world{
		seed: seed, rules: rules, rnd: rand.New(rand.NewPCG(seed, 1)), log: &runlog.Memory{}, script: newScript(seed), calm: calm,
		tasks: map[uint64]*message{}, timers: map[string]*message{}, once: map[string]int{}, claims: map[string]*process{},
	}
	switch {
	case seed >= fileSeeds:
		w.files = newSimFiles(t, seed, calm)
		w.files.bring(t, seed, rules)
	case seed >= rateSeeds:
		w.rate = &simRate{calls: map[string]int{}}
	case seed >= planSeeds:
		w.plan, w.script = newSimPlan(seed)
	}
	if !calm {
		stale := rand.New(rand.NewPCG(seed, 2))
		var mu sync.Mutex
		w.log.Stale = func(messages.Ref) int {
			mu.Lock()
			defer mu.Unlock()
			return max(0, stale.IntN(8)-5)
		}
	}
	w.put("", &message{start: true})
	if !calm && w.rnd.IntN(4) == 0 {
		w.put("", &message{start: true}) // a submit that was repeated after the window
	}
	synctest.Test(t, func(t *testing.T) { w.play(t) })
	w.judge(t)
	return w, w.found
}

func (w *world) play(t *testing.T) {
	t.Helper()
	crashes, cancel, outage := 0, !w.calm && w.seed%4 == 1, !w.calm && w.seed%5 == 2
	for step := 0; ; step++ {
		if step%500 == 499 { // the bubble's clock would stand still while some never rest, and others wait for a moment
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		w.mu.Lock()
		chaos := !w.calm && step < chaosSteps
		w.happen(t, chaos, &cancel)
		if w.files != nil && chaos && w.rnd.IntN(30) == 0 {
			w.files.collect()
		}
		if outage && w.rnd.IntN(80) == 0 {
			outage = w.losePower()
		}
		w.mu.Unlock()
		synctest.Wait()
		w.mu.Lock()
		if len(w.pending) == 0 {
			live := slices.ContainsFunc(w.procs, func(p *process) bool { return !p.done })
			rest := len(w.tasks) == 0 && len(w.timers) == 0 && w.finished() && (w.calm || step >= chaosSteps)
			w.mu.Unlock()
			switch {
			case live:
				time.Sleep(10 * time.Millisecond) // a goroutine sleeps: the bubble's clock moves only now
			case rest, step > maxSteps:
				return
			}
			continue
		}
		slices.SortFunc(w.pending, func(a, b waiter) int {
			return cmp.Or(cmp.Compare(a.p.id, b.p.id), cmp.Compare(a.label, b.label))
		})
		i := w.rnd.IntN(len(w.pending))
		wt := w.pending[i]
		w.pending = slices.Delete(w.pending, i, i+1)
		if chaos && crashes < simCrashes && w.rnd.IntN(40) == 0 || step > maxSteps {
			crashes++
			wt.p.store(w.rnd.IntN(3)) // some of what it sent still arrives
			wt.p.dead = true
			wt.p.cancel()
			w.pending = slices.DeleteFunc(w.pending, func(o waiter) bool {
				if o.p == wt.p {
					close(o.proceed)
				}
				return o.p == wt.p
			})
		} else {
			wt.p.store(w.rnd.IntN(3))
		}
		w.mu.Unlock()
		close(wt.proceed)
	}
}

// happen lets the world act: deliveries, timers, people. The caller holds mu.
func (w *world) happen(t *testing.T, chaos bool, cancel *bool) {
	t.Helper()
	for _, key := range sortedKeys(w.timers) {
		if m := w.timers[key]; m.by != nil && !m.by.dead && !m.by.done {
			continue
		} else if !chaos && !w.calm || chaos && w.rnd.IntN(60) == 0 {
			delete(w.timers, key)
			w.rate.tick(m)
			w.nextMsg++
			m.seq = w.nextMsg
			w.tasks[m.seq] = m
		} else if w.calm && (m.wake.Errand == messages.ErrandNet || m.wake.Errand == messages.ErrandTimer) {
			delete(w.timers, key) // in calm weather it finds nothing to do: who waits is answered
		}
	}
	for _, seq := range sortedKeys(w.tasks) {
		m := w.tasks[seq]
		if m.busy == 0 && (w.calm || w.rnd.IntN(3) == 0) || chaos && m.busy > 0 && m.busy < 3 && w.rnd.IntN(60) == 0 {
			w.deliver(t, m)
		}
	}
	last, ok, _ := w.log.Last(context.Background(), simRun)
	if ok && last.Head.Phase == record.PhaseParked && (w.calm || w.rnd.IntN(15) == 0) && !w.asking() {
		w.control(false)
	}
	if chaos && ok && w.steers() && w.rnd.IntN(20) == 0 {
		w.steer(w.rnd.IntN(6))
	}
	if *cancel && ok && w.rnd.IntN(60) == 0 {
		*cancel = false
		w.control(true)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// losePower kills every process, and the queue loses what it had not yet written to disk: the message of the open claim.
// The sweep at the next start repairs it. It returns whether the outage is still to come.
func (w *world) losePower() bool {
	last, ok, _ := w.log.Last(context.Background(), simRun)
	if !ok {
		return true
	}
	for _, p := range w.procs {
		p.dead = true
		p.cancel()
	}
	for _, wt := range w.pending {
		close(wt.proceed)
	}
	w.pending = nil
	delete(w.tasks, last.Head.Ticket)
	if w.rules != noSweep {
		w.put("sweep", &message{wake: messages.Wake{Errand: messages.ErrandSweep}})
	}
	return false
}

// asking reports whether a dispatcher is at work.
func (w *world) asking() bool {
	return slices.ContainsFunc(w.procs, func(p *process) bool { return p.msg == nil && !p.done })
}

func (w *world) finished() bool {
	last, ok, _ := w.log.Last(context.Background(), simRun)
	return ok && last.Head.Phase == record.PhaseFinished
}

// judge looks at the world at rest.
func (w *world) judge(t *testing.T) {
	t.Helper()
	if !w.finished() {
		w.violate(&w.found.stranded, "stranded")
		return
	}
	ends := 0
	var entries []record.Entry
	for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
		entries = append(entries, e)
		for _, r := range e.Records {
			if r.Kind() == record.KindFinished {
				ends++
			}
		}
	}
	stored := map[uint64]messages.Event{}
	finished := 0
	for _, e := range w.events {
		if e.Name() == messages.EventRunFinished {
			finished++
		}
		if old, ok := stored[e.Number()]; ok && string(old.Data) != string(e.Data) {
			w.violate(&w.found.otherBodies, "two bodies for event "+e.Sequence)
		}
		stored[e.Number()] = e
	}
	if ends != 1 || finished > 1 {
		w.violate(&w.found.doubleEnd, fmt.Sprintf("%d ends, %d run_finished", ends, finished))
	}
	var want uint64
	for _, e := range entries {
		for _, ev := range record.Events(simRun, e) {
			want++
			if got, ok := stored[want]; !ok || string(got.Data) != string(ev.Data) {
				w.violate(&w.found.missingEvents, fmt.Sprintf("event %d (%s) is missing", want, ev.Type))
				return
			}
		}
	}
	if len(stored) != int(want) {
		w.violate(&w.found.otherBodies, "events that the log does not have")
	}
	w.files.judge(w)
	if lost := w.unheard(entries); lost != "" {
		w.violate(&w.found.missingEvents, lost)
	}
	if w.rules == allRules && (w.seed%8 == 0 || w.steers()) { // to plan it all again takes longer than the rest
		if wrong := decidedOtherwise(w.log, simRun); wrong != "" {
			w.violate(&w.found.otherBodies, wrong)
		}
	}
}

// decidedOtherwise is where a log is not what the planner decides; empty: nowhere.
func decidedOtherwise(log *runlog.Memory, run messages.Ref) string {
	report, err := replay.Check(context.Background(), log.Read(context.Background(), run, 0, runlog.Tail))
	switch {
	case err != nil:
		return "replay: " + err.Error()
	case report.Difference != nil:
		return fmt.Sprintf("replay: %+v", *report.Difference)
	default:
		return ""
	}
}

// estimates are what an event tells of how long calls of tools took so far: each process knows only its own.
var estimates = regexp.MustCompile(`,"estimatedDuration":[0-9.e+-]+`)

// bodies are the events without their numbers and estimates, sorted: calls that run together return in any order.
func (w *world) bodies() []string {
	seen := map[string]bool{}
	var out []string
	for _, e := range w.events {
		if !seen[e.Sequence] && e.Name() != messages.EventHookFailed { // each owner may ask anew
			seen[e.Sequence] = true
			out = append(out, e.Type+" "+estimates.ReplaceAllString(string(e.Data), ""))
		}
	}
	slices.Sort(out)
	return out
}

// undisturbed reports whether a seed must show the same events as without crashes: there is no cancel, no park expires and no call
// of a once tool can have been cut off.
func (w *world) undisturbed() bool {
	return w.seed%4 != 1 && w.rate == nil && !w.steers() && (!w.expires() || !w.script.has("ask") && !w.script.has(wreck)) && !w.script.has("once") && !w.script.has(doom)
}

// simulate runs seeds in parallel and sums up. Without a rule it ends when what was found is enough; with all of them
// every seed runs.
func simulate(t *testing.T, from, n uint64, rules ablation, enough func(violations) bool) (sum violations) {
	t.Helper()
	var mu sync.Mutex
	var over atomic.Bool
	t.Run("seeds", func(t *testing.T) {
		const chunks = 8
		for c := range uint64(chunks) {
			t.Run(strconv.FormatUint(c, 10), func(t *testing.T) {
				t.Parallel()
				for seed := from + c; seed < from+n && !over.Load(); seed += chunks {
					w, found := trial(t, seed, rules, false)
					if rules == allRules && found.total() == 0 && w.undisturbed() {
						calm, calmFound := trial(t, seed, rules, true)
						if calmFound.total() != 0 {
							t.Fatalf("without crashes: %s", calmFound.first)
						}
						if !slices.Equal(w.bodies(), calm.bodies()) {
							w.violate(&w.found.otherBodies, fmt.Sprintf("events differ from those without crashes:\n%s\n--\n%s",
								strings.Join(w.bodies(), "\n"), strings.Join(calm.bodies(), "\n")))
							found = w.found
						}
					}
					mu.Lock()
					sum.add(found)
					over.Store(rules != allRules && enough(sum))
					mu.Unlock()
				}
			})
		}
	})
	return sum
}

func TestSimulation(t *testing.T) {
	n := seeds(t)
	sum := simulate(t, 0, n, allRules, nil)
	t.Logf("%d seeds: %d stranded, %d double ends, %d missing events, %d repeated calls, %d steals, %d other bodies, %d once tools run twice, %d effects after another's claim",
		n, sum.stranded, sum.doubleEnd, sum.missingEvents, sum.repeatedCalls, sum.steals, sum.otherBodies, sum.onceTwice, sum.foreign)
	if sum.total() != 0 {
		t.Errorf("first: %s", sum.first)
	}
}

// Each rule is there for a reason: without it the simulation finds what it prevents.
func TestSimulationFailsWithout(t *testing.T) {
	for _, tc := range []struct {
		rules ablation
		count func(violations) int
	}{
		{shortReads, func(v violations) int { return v.stranded }},
		{anyTicket, func(v violations) int { return v.steals }},
		{ackOnly, func(v violations) int { return v.stranded + v.missingEvents }},
		{wakeWithout, func(v violations) int { return v.stranded }},
		{noWatermark, func(v violations) int { return v.missingEvents }},
		{finishedTwice, func(v violations) int { return v.doubleEnd }},
		{noNet, func(v violations) int { return v.stranded }},
		{noSweep, func(v violations) int { return v.stranded }},
		{noLease, func(v violations) int { return v.foreign }},
		{blindTrust, func(v violations) int { return v.foreign }},
		{lateClaims, func(v violations) int { return v.foreign }},
	} {
		t.Run(string(tc.rules), func(t *testing.T) {
			from, n := uint64(0), uint64(300)
			switch tc.rules { //nolint:exhaustive // a process must die or stop right between two operations
			case noNet:
				n = 2000
			case blindTrust:
				from = 800
			}
			sum := simulate(t, from, n, tc.rules, func(v violations) bool { return tc.count(v) > 0 })
			t.Logf("%+v", sum)
			if tc.count(sum) == 0 {
				t.Error("nothing was violated: the simulation does not see this rule")
			}
		})
	}
}

package runner_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// The simulation of sessions: some runs of one session, with kills at every operation, messages delivered again while
// their owner lives, cancels, summaries, and an order that is lost. It continues from the world of the simulation of one
// run; what that holds for one run, such as its queue and its events, is by run here.
type sessionWorld struct {
	*world

	noGrant  bool // ablation: a run that ends does not pass the turn on, and one that parks does not look
	sessions *runlog.SessionsInMemory
	refs     []messages.Ref
	of       map[uint64]messages.Ref // the run of a message
	told     map[messages.Ref]bool   // run_finished
	joined   []string                // in the order in which they first joined
	bad      string                  // the first violation
	sums     map[string]int          // summaries that were paid for and recorded, by run

	lines *simCapped // instead of sessions: caps and pauses; nil: none
	kin   *simKin    // instead of sessions: runs that delegate; nil: none do
}

const (
	simTalk     = "s"
	sessionRuns = 5
)

func (w *sessionWorld) wrong(format string, args ...any) {
	if w.bad == "" {
		w.bad = fmt.Sprintf("seed %d: ", w.seed) + fmt.Sprintf(format, args...)
	}
}

// runs are all runs so far.
func (w *sessionWorld) runs() []messages.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.refs)
}

// last is the newest head of a run.
func (w *sessionWorld) last(run messages.Ref) (record.Entry, bool) {
	e, ok, _ := w.log.Last(context.Background(), run)
	return e, ok
}

type sessionLog struct {
	simLog
	w *sessionWorld
}

func (l sessionLog) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	if err := l.p.op("append"); err != nil {
		return 0, err
	}
	if !l.w.goodRecords(e) {
		l.w.wrong("malformed entry")
	}
	if l.w.kin.lost(last, &e) {
		return 1, nil
	}
	l.w.kin.forget(&e)
	seq, err := l.w.log.Append(ctx, run, last, e)
	if err != nil {
		return seq, err
	}
	l.w.kin.appended(l.w, run, last, &e)
	turns := 0
	for _, r := range l.w.runs() {
		if last, ok := l.w.last(r); ok && last.Head.Turn && last.Head.Phase != record.PhaseFinished {
			turns++
		}
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.lines.check(l.w)
	if turns > 1 {
		l.w.wrong("%d runs have their turn", turns)
	}
	if e.Head.Has(record.KindSummarised) {
		l.w.sums[run.Run]++
	}
	return seq, nil
}

type sessionQueue struct {
	simQueue
	w *sessionWorld
}

func (q sessionQueue) Wake(_ context.Context, run messages.Ref, after uint64) error {
	return q.send("wake", "", run, &message{wake: messages.Wake{After: after}})
}

func (q sessionQueue) Net(_ context.Context, run messages.Ref, control string, _ time.Time) error {
	return q.send("net", run.NetSubject(control), run, &message{wake: messages.Wake{Errand: messages.ErrandNet}, by: q.p})
}

func (q sessionQueue) send(label, schedule string, run messages.Ref, m *message) error {
	if err := q.p.op(label); err != nil {
		return err
	}
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	q.w.put(schedule, m)
	q.w.of[m.seq] = run
	return nil
}

type sessionEvents struct {
	p *process
	w *sessionWorld
}

func (e sessionEvents) Open(run messages.Ref) runlog.Outbox { return sessionOutbox{e, run} }

func (e sessionEvents) Ended(_ context.Context, run messages.Ref) (bool, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	return e.w.told[run], nil
}

type sessionOutbox struct {
	sessionEvents
	run messages.Ref
}

func (o sessionOutbox) Publish(context.Context, uint64, iter.Seq[messages.Event]) {}
func (o sessionOutbox) Through() uint64                                           { return 0 }
func (o sessionOutbox) Flush(context.Context) error                               { return o.p.op("flush") }

func (o sessionOutbox) Finish(context.Context, messages.Event) error {
	if err := o.p.op("finish"); err != nil {
		return err
	}
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	o.w.told[o.run] = true
	return nil
}

type simSessions struct {
	p *process
	w *sessionWorld
}

func (s simSessions) Session(ctx context.Context, tenant, name string) (messages.Session, uint64, error) {
	if err := s.p.op("session"); err != nil {
		return messages.Session{}, 0, err
	}
	return s.w.sessions.Session(ctx, tenant, name)
}

func (s simSessions) PutSession(ctx context.Context, tenant, name string, revision uint64, v messages.Session) error {
	if err := s.p.op("put session"); err != nil {
		return err
	}
	err := s.w.sessions.PutSession(ctx, tenant, name, revision, v)
	if err == nil {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		for _, id := range v.Runs {
			if !slices.Contains(s.w.joined, id) {
				s.w.joined = append(s.w.joined, id)
			}
		}
	}
	return err
}

type sessionModel struct{ p *process }

func (m sessionModel) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := m.p.op("model"); err != nil {
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Reply: &model.Reply{
			Message: messages.Message{Content: messages.TextContent("well")}, Stop: messages.StopEnd, Usage: messages.Usage{Input: 1},
		}}, nil)
	}
}

func (w *sessionWorld) controller(p *process) *runlog.Controller {
	k := p.controller(simTime)
	k.Log, k.Queue, k.Events = sessionLog{simLog{p}, w}, sessionQueue{simQueue{p}, w}, sessionEvents{p, w}
	k.Sessions = simSessions{p, w}
	w.lines.keep(k, p, w)
	w.kin.keep(k, p, w)
	return k
}

func (w *sessionWorld) deliver(t *testing.T, m *message) {
	t.Helper()
	m.busy++
	m.delivered++
	delivered, run := m.delivered, w.of[m.seq]
	w.spawn(m, func(ctx context.Context, p *process) {
		p.delivery = delivered
		k := w.controller(p)
		var ok bool
		switch {
		case m.wake.Errand == messages.ErrandSweep:
			_, err := k.Sweep(ctx, func(yield func(messages.Ref, error) bool) {
				for _, r := range w.runs() {
					if !yield(r, nil) {
						return
					}
				}
			})
			ok = err == nil
		case m.wake.Errand != "":
			ok = k.Errand(ctx, run, m.wake) == nil
		case w.noGrant && w.ended(run), w.kin != nil && w.kin.rules == noSettle && w.parkedBy(run, m):
			ok = true // rule 9 without its settle
		default:
			ok = w.work(ctx, t, p, k, m, delivered) == runner.Done
		}
		if ok && p.op("ack") == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.tasks, m.seq)
		}
	})
}

// parkedBy reports whether a run is parked since a message was worked.
func (w *sessionWorld) parkedBy(run messages.Ref, m *message) bool {
	last, ok := w.last(run)
	return ok && last.Head.Phase == record.PhaseParked && last.Head.Ticket == m.seq
}

func (w *sessionWorld) ended(run messages.Ref) bool {
	last, ok := w.last(run)
	return ok && last.Head.Phase == record.PhaseFinished
}

func (w *sessionWorld) work(ctx context.Context, t *testing.T, p *process, k *runlog.Controller, m *message, delivered int) runner.Outcome {
	t.Helper()
	set, err := tools.NewSet()
	if err != nil {
		t.Error(err)
	}
	cfg := runner.Config{
		Worker: fmt.Sprint("w", p.id), Controller: k, Model: sessionModel{p}, Tools: set, MaxAttempts: 1000,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil },
		Agent: func(context.Context, string) (messages.Definition, error) {
			d := messages.Definition{Name: "a"}
			if w.seed%2 == 1 {
				d.Session = &messages.SessionPolicy{MaxMessages: 2, Summary: messages.SummaryOn}
			}
			d.SetDefaults()
			return d, nil
		},
	}
	ticket := runner.Ticket{
		Run: w.of[m.seq], Seq: m.seq, After: m.wake.After, Delivered: delivered, Priority: messages.PriorityNormal, Queued: simTime,
	}
	if m.start {
		ticket.Body = []byte(`{"input":"go","session":"` + simTalk + `"}`)
	}
	w.lines.work(t, p, &cfg, &ticket)
	w.kin.work(t, w, p, &cfg, &ticket, m.start)
	outcome, _ := runner.New(cfg).Run(ctx, ticket)
	return outcome
}

// lose forgets the order, unless a run is just about to have its turn: what the log does not say yet is lost with it.
func (w *sessionWorld) lose() bool {
	for _, r := range w.refs {
		if last, ok := w.last(r); ok && last.Head.Phase == record.PhaseActive && !last.Head.Turn {
			return false
		}
	}
	w.sessions.Lose("t", simTalk)
	return true
}

func sessionTrial(t *testing.T, seed uint64, noGrant bool) *sessionWorld {
	t.Helper()
	log := &runlog.Memory{}
	w := &sessionWorld{
		world: &world{
			seed: seed, rnd: rand.New(rand.NewPCG(seed, 3)), log: log, tasks: map[uint64]*message{}, timers: map[string]*message{},
			claims: map[string]*process{},
		},
		noGrant: noGrant, sessions: &runlog.SessionsInMemory{Log: log}, of: map[uint64]messages.Ref{}, told: map[messages.Ref]bool{},
		sums: map[string]int{},
	}
	for i := range sessionRuns {
		m := &message{start: true}
		w.put("", m)
		w.of[m.seq] = messages.Ref{Tenant: "t", Run: fmt.Sprint("r", i)}
		w.refs = append(w.refs, w.of[m.seq])
	}
	synctest.Test(t, func(t *testing.T) { w.play(t) })
	w.judge()
	return w
}

func (w *sessionWorld) play(t *testing.T) {
	t.Helper()
	crashes, cancels, lost, outage := 0, w.seed%3 == 1, w.seed%4 != 2, w.seed%5 != 3
	for step := range maxSteps {
		synctest.Wait()
		w.mu.Lock()
		chaos := step < chaosSteps
		for _, key := range sortedKeys(w.timers) {
			if m := w.timers[key]; (m.by == nil || m.by.dead || m.by.done) && (!chaos || w.rnd.IntN(30) == 0) {
				run := w.of[m.seq]
				delete(w.timers, key)
				w.put("", m)
				w.of[m.seq] = run
			}
		}
		for _, seq := range sortedKeys(w.tasks) {
			m := w.tasks[seq]
			if m.busy == 0 && w.rnd.IntN(3) == 0 || chaos && m.busy > 0 && m.busy < 3 && w.rnd.IntN(80) == 0 {
				w.deliver(t, m)
			}
		}
		if cancels && w.rnd.IntN(60) == 0 {
			cancels = w.rnd.IntN(2) == 0
			run := w.refs[w.rnd.IntN(len(w.refs))]
			w.spawn(nil, func(ctx context.Context, p *process) {
				_, _ = w.controller(p).Control(ctx, run, &record.CancelRequested{ID: "x"})
			})
		}
		w.lines.happen(w, chaos)
		if !lost && chaos && w.rnd.IntN(80) == 0 {
			lost = w.lose()
		}
		if !outage && chaos && w.rnd.IntN(100) == 0 {
			outage = true
			w.losePower()
		}
		w.mu.Unlock()
		synctest.Wait()
		w.mu.Lock()
		if len(w.pending) == 0 {
			live := slices.ContainsFunc(w.procs, func(p *process) bool { return !p.done })
			rest := len(w.tasks) == 0 && len(w.timers) == 0 && w.lines.rests(w)
			w.mu.Unlock()
			if live {
				time.Sleep(10 * time.Millisecond)
			} else if rest {
				return
			}
			continue
		}
		slices.SortFunc(w.pending, func(a, b waiter) int { return cmp.Or(cmp.Compare(a.p.id, b.p.id), cmp.Compare(a.label, b.label)) })
		i := w.rnd.IntN(len(w.pending))
		wt := w.pending[i]
		w.pending = slices.Delete(w.pending, i, i+1)
		if chaos && crashes < 2*simCrashes && w.rnd.IntN(30) == 0 {
			crashes++
			w.die(wt.p)
		}
		w.mu.Unlock()
		close(wt.proceed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong("no end")
	for _, p := range w.procs {
		w.die(p)
	}
}

func (w *sessionWorld) die(p *process) {
	p.dead = true
	p.cancel()
	w.pending = slices.DeleteFunc(w.pending, func(o waiter) bool {
		if o.p == p {
			close(o.proceed)
		}
		return o.p == p
	})
}

// losePower kills every process, and the queue has not written the messages of open claims to disk.
func (w *sessionWorld) losePower() {
	for _, p := range w.procs {
		w.die(p)
	}
	for _, r := range w.refs {
		if last, ok := w.last(r); ok {
			delete(w.tasks, last.Head.Ticket)
		}
	}
	if w.kin == nil || w.kin.rules != noKinSweep {
		w.put("sweep", &message{wake: messages.Wake{Errand: messages.ErrandSweep}})
	}
}

func (w *sessionWorld) judge() {
	w.kin.judge(w)
	type turn struct {
		seq       uint64
		run, from string
	}
	var turns []turn
	for _, r := range w.refs {
		if !w.ended(r) {
			w.wrong("%s is stranded", r.Run)
			return
		}
		if !w.told[r] {
			w.wrong("the end of %s was not published", r.Run)
		}
		if wrong := decidedOtherwise(w.log, r); wrong != "" {
			w.wrong("%s: %s", r.Run, wrong)
		}
		if w.sums[r.Run] > 1 {
			w.wrong("%d summaries for %s", w.sums[r.Run], r.Run)
		}
		for e := range w.log.Read(context.Background(), r, 0, runlog.Tail) {
			for _, rec := range e.Records {
				if rec, ok := rec.(*record.Recalled); ok {
					turns = append(turns, turn{e.Seq, r.Run, rec.From})
				}
			}
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.seq, b.seq) })
	from, at := "", -1
	for _, tn := range turns {
		if tn.from != from {
			w.wrong("%s continues after %q, not after %q", tn.run, tn.from, from)
		}
		from = tn.run
		if i := slices.Index(w.joined, tn.run); w.seed%4 != 2 && i < at {
			w.wrong("%s had its turn out of order %v", tn.run, w.joined)
		} else {
			at = i
		}
	}
	s, _, _ := w.sessions.Session(context.Background(), "t", simTalk)
	for _, id := range s.Runs { // one whose owner was cut off may have joined after its end; the next to wait takes it out
		if !w.ended(messages.Ref{Tenant: "t", Run: id}) {
			w.wrong("%s is in the order and has not ended", id)
		}
	}
}

func TestSimulationOfSessions(t *testing.T) {
	n := seeds(t) / 6
	var mu sync.Mutex
	bad, first := 0, ""
	t.Run("seeds", func(t *testing.T) {
		const chunks = 4
		for c := range uint64(chunks) {
			t.Run(strconv.FormatUint(c, 10), func(t *testing.T) {
				t.Parallel()
				for seed := c; seed < n; seed += chunks {
					if w := sessionTrial(t, seed, false); w.bad != "" {
						mu.Lock()
						bad++
						first = w.bad
						mu.Unlock()
					}
				}
			})
		}
	})
	if bad > 0 {
		t.Errorf("%d of %d seeds; one: %s", bad, n, first)
	}
}

// Without the settle of an end that is found, a run whose owner died there keeps the turn forever.
func TestSimulationOfSessionsFailsWithoutSettle(t *testing.T) {
	for seed := range uint64(60) {
		if sessionTrial(t, seed, true).bad != "" {
			return
		}
	}
	t.Error("nothing was violated: the simulation does not see it")
}

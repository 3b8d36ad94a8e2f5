package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// execution is one ticket being worked. One goroutine owns it; hint, abort, interrupt and position are for others.
type execution struct {
	r       *Runner
	cfg     *Config
	log     runlog.Log
	run     messages.Ref
	ticket  Ticket
	claimID string
	out     runlog.Outbox
	raced   bool   // others appended while it was judged
	claims  int    // by this ticket, as far as the log was read
	losses  losses // as far as the log was read
	trial   *Trial // in quarantine; nil: it is in the open
	planner agent.Planner
	shared  *sandbox.Workspace // the named one of the task, held until the ticket is done with

	state   *agent.State
	tip     *record.Entry              // what this owner appended last; nil: nothing yet
	args    map[string]json.RawMessage // of calls that may be made, by call id
	flying  map[string]bool            // tool calls on their way, by call id
	parks   map[string]*tools.Park     // wishes of calls to wait, by call id
	outages int                        // rounds of attempts in a row that did not reach the model
	limits  limits.Set                 // what may hold it back
	gates   limits.Gates               // the same in order

	succeeds bool // an owner before was lost: it neither ended nor parked the run, nor handed it back
	repeats  bool // and may have made the model call that is to be made next

	hooking hooking

	inTurn bool // it has its turn

	since      time.Time // when it was taken up, or heard from its model last
	remembered time.Time // when the state was cached last

	left  chan struct{}   // closed when the ticket is done with
	ctx   context.Context //nolint:containedctx // of Run; for looks, which end before Run does
	paid  context.Context //nolint:containedctx // of Run; for what is recorded although the worker stops
	abort context.CancelCauseFunc
	looks sync.WaitGroup

	mu          sync.Mutex
	seen        uint64 // last sequence known to this owner
	claimed     bool
	stopCall    context.CancelCauseFunc // of the call that goes on
	interrupted bool                    // a record was seen that must be heeded before the next call
	looking     bool                    // a look at the log goes on
	again       bool                    // and shall be followed by another
	ended       bool                    // no look may begin any more
}

func (r *Runner) newExecution(t Ticket) *execution {
	x := &execution{
		r: r, cfg: &r.cfg, log: r.cfg.Keeper.Log, run: t.Run, ticket: t, claimID: r.newClaim(),
		out: r.cfg.Keeper.Events.Open(t.Run), state: &agent.State{}, args: map[string]json.RawMessage{},
		flying: map[string]bool{}, parks: map[string]*tools.Park{}, left: make(chan struct{}), since: time.Now(),
	}
	x.hold()
	return x
}

// hold makes the gates, which may hold the run back.
func (x *execution) hold() {
	cfg, k := x.cfg, x.cfg.Keeper
	l := &x.limits
	l.Deadline.Now = x.now
	l.Budget = limits.Budget{Now: x.now, Price: x.price}
	l.NotBefore = limits.NotBefore{Now: x.now, Quota: &l.Quota}
	l.Fit = limits.Fit{Has: cfg.Tools.Has, Labels: cfg.Labels}
	if x.ticket.Elsewhere != nil {
		l.Fit.Roster = x.ticket.Elsewhere
	}
	l.Quota = limits.Quota{Quotas: cfg.Quotas, Run: x.run, Now: x.now, Log: cfg.Log}
	l.Semaphore = limits.Semaphore{Permits: k, Flying: func() bool { return len(x.flying) > 0 }}
	l.Hooks = limits.Func(x.beforeHooks)
	l.Provider = limits.Provider{Now: x.now, Redact: cfg.Redact, LongWait: cfg.LongWait, Key: x.key}
	l.Approval = limits.Func(x.beforeCalls)
	l.Session.Turns = k
	x.gates = l.InOrder()
}

func (x *execution) now() time.Time { return x.cfg.Keeper.Now() }

// position is the last sequence that this owner knows and its claim; the claim is empty before it is made.
func (x *execution) position() (uint64, string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.claimed {
		return x.seen, ""
	}
	return x.seen, x.claimID
}

func (x *execution) moved(seq uint64, claimed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen, x.claimed = seq, x.claimed || claimed
}

// work judges, claims, and takes the run as far as it goes.
func (x *execution) work(ctx context.Context) (Outcome, error) {
	defer x.endTrial(false)
	defer func() { _ = x.shared.Close() }()
	owned, outcome, err := x.claim(ctx)
	if err == nil && owned {
		err = x.drive(ctx)
	}
	switch {
	case err != nil && x.rests():
		return x.unsettled(ctx, err) // ended or parked: nothing is left to hand back
	case err == nil && !owned:
		return outcome, nil
	case err == nil:
		return Done, nil
	case errors.Is(err, errFenced) || errors.Is(context.Cause(ctx), errFenced):
		return Lost, nil
	case !owned:
		return outcome, err
	default:
		return x.handBack(ctx, err)
	}
}

// rests reports whether this owner has ended or parked the run.
func (x *execution) rests() bool { return x.state.Result != nil || x.state.Parked != nil }

// endTrial ends the run's trial, if it is on one: it has made progress, or is let go.
func (x *execution) endTrial(progress bool) {
	if x.trial != nil {
		x.trial.End(progress)
		x.trial = nil
	}
}

// drive plans and performs until the run ends or parks, and settles it.
func (x *execution) drive(ctx context.Context) error {
	if x.rests() { // its first entry ended or parked it already
		return x.cfg.Keeper.Close(ctx, x.run, x.tip, x.out)
	}
	action, err := x.commit(ctx)
	for err == nil {
		if action, err = x.share(ctx, action); err != nil {
			break
		}
		switch a := action.(type) {
		case *agent.Finish, *agent.Park:
			x.leaveConversation()
			return x.cfg.Keeper.Close(ctx, x.run, x.tip, x.out)
		case *agent.AskHooks:
			action, err = x.askHooks(ctx, a)
		case *agent.CallModel:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.callModel(ctx, a)
		case *agent.CallTools:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.callTools(ctx)
		case *agent.JoinSession:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.joinSession(ctx)
		case *agent.JoinLines:
			if x.draining() {
				return ErrShutdown
			}
			if err = x.limits.Semaphore.Join(ctx, x.run, x.state, a.Lines); err == nil {
				action, err = x.commit(ctx)
			}
		default:
			return fmt.Errorf("perform %T: unknown action", action)
		}
	}
	return err
}

func (x *execution) draining() bool {
	select {
	case <-x.r.drain:
		return true
	default:
		return false
	}
}

// commit appends what the last action reported together with what the next one decides, in one entry, and returns
// that next action. It is the only way in which an owner changes its run.
//
// A report (a paid reply, a tool's result) stays true whatever others appended meanwhile: it is appended again after
// them. A decision (an intent, a park, the end) is made anew on the state as it then is.
func (x *execution) commit(ctx context.Context, reports ...record.Record) (agent.Action, error) {
	for {
		action, err := x.commitAt(ctx, reports...)
		if !errors.Is(err, runlog.ErrConflict) {
			return action, err
		}
		if err := x.catchUp(ctx, true); err != nil {
			return nil, err
		}
	}
}

// commitPaid is commit of a report that is in hand although the worker is told to stop at once, before or meanwhile: what
// was paid for is recorded before the run is handed back.
func (x *execution) commitPaid(reports ...record.Record) (agent.Action, error) {
	return x.commit(x.paid, reports...)
}

// outlive is a context that goes on for a moment when ctx is cancelled with ErrShutdown, until end is called.
func outlive(ctx context.Context) (_ context.Context, end func()) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrShutdown) {
			select {
			case <-time.After(handBackTimeout):
			case <-later.Done():
			}
		}
		cancel(context.Cause(ctx))
	})
	return later, func() {
		stop()
		cancel(nil)
	}
}

// commitAt is commit at the position that is known. ErrConflict: the log has grown.
func (x *execution) commitAt(ctx context.Context, reports ...record.Record) (agent.Action, error) {
	if err := x.enterTurn(ctx); err != nil {
		return nil, err
	}
	defer x.leaveTurn()
	next := x.state.Clone()
	for _, r := range reports {
		if err := next.Advance(r); err != nil {
			return nil, err
		}
	}
	decisions, action, err := x.decide(next)
	if err != nil {
		return nil, err
	}
	records := append(slices.Clip(reports), decisions...)
	if len(records) == 0 {
		return action, nil
	}
	e, err := x.append(ctx, x.state.Seq, &x.state.Head, records...)
	if err != nil {
		return nil, err
	}
	next.Seq, next.Head = e.Seq, e.Head
	x.state, x.tip = next, e
	if next.StartedAt.IsZero() {
		next.StartedAt = e.Head.Time
	}
	if e.Head.Attempt == 0 {
		x.endTrial(true)
	}
	_ = x.cfg.Keeper.Ask(ctx, x.run, e.Head) // whoever hears of the park finds it listed; Close tries again
	runlog.Publish(ctx, x.run, e, x.out)
	x.recount(ctx, records)
	if next.Parked != nil {
		x.remember()
	}
	return action, nil
}

// enterTurn waits for the run's turn to go from one wait to the next, unless it has it.
func (x *execution) enterTurn(ctx context.Context) error {
	if x.inTurn {
		return nil
	}
	err := x.r.turns.enter(ctx, x.since)
	x.inTurn = err == nil
	return err
}

func (x *execution) leaveTurn() {
	if x.inTurn {
		x.inTurn = false
		x.r.turns.leave()
	}
}

// append is the owner's only append.
func (x *execution) append(ctx context.Context, last uint64, prev *record.Head, rs ...record.Record) (*record.Entry, error) {
	e := x.entry(prev, rs)
	seq, err := x.log.Append(ctx, x.run, last, *e)
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	x.moved(seq, e.Head.Has(record.KindClaimed))
	e.Place(seq)
	return e, nil
}

// entry is what is appended after an entry with the head prev.
func (x *execution) entry(prev *record.Head, rs []record.Record) *record.Entry {
	e := &record.Entry{Head: record.Follow(x.run, *prev, rs...), Records: rs}
	e.Head.ID, e.Head.Time = x.cfg.Keeper.NewID(), x.now()
	e.Head.EventsThrough = max(prev.EventsThrough, x.out.Through())
	if x.trial != nil && e.Head.Has(record.KindClaimed) {
		e.Head.Alone = x.trial.Alone
	}
	return e
}

// decide plans on a state and advances it by all that needs no effect, until an action is left that has one, or that
// ends the work. The records say what was decided.
func (x *execution) decide(s *agent.State) (decisions []record.Record, action agent.Action, err error) {
	add := func(rs ...record.Record) error {
		for _, r := range rs {
			decisions = append(decisions, r)
			if err := s.Advance(r); err != nil {
				return err
			}
		}
		return nil
	}
	if x.planner == nil {
		if x.planner = x.r.planners[s.Agent.Planner]; x.planner == nil {
			return nil, nil, fmt.Errorf("plan: agent %s has the unknown planner %q", s.Agent.Name, s.Agent.Planner)
		}
	}
	for {
		action, v := x.gates.Before(s, x.plan(s))
		if err := add(v.Records...); err != nil {
			return nil, nil, err
		}
		switch held := v.Instead.(type) {
		case nil:
			if !v.Passes() {
				continue
			}
		case *agent.Park:
			return decisions, held, add(&held.Parked)
		case *agent.Finish:
			return decisions, held, add(x.finished(s, held))
		default: // it is asked for what it lacks
			return decisions, held, nil
		}
		entailed := s.Entails(action)
		for _, r := range entailed {
			if err := add(x.known(s, r)); err != nil {
				return nil, nil, err
			}
		}
		switch a := action.(type) {
		case *agent.CallModel:
			if len(entailed) == 0 {
				return decisions, a, nil
			}
		case *agent.CallTools, *agent.JoinSession:
			return decisions, a, nil
		case *agent.Decide:
		case *agent.Park:
			if a.For > 0 {
				until := x.now().Add(a.For)
				a.Parked.Until = &until
			}
			s.UntilEnd(&a.Parked)
			return decisions, a, add(&a.Parked)
		case *agent.Finish:
			if s.StartedAt.IsZero() {
				s.StartedAt = x.now()
			}
			return decisions, a, add(x.finished(s, a))
		default:
			return nil, nil, fmt.Errorf("plan: unknown action %T", action)
		}
	}
}

func (x *execution) finished(s *agent.State, f *agent.Finish) *record.Finished {
	return &record.Finished{Result: s.Conclude(x.run, f, x.now())}
}

// key is stable for the same thing in the same step of the same run, over attempts.
func (x *execution) key(step int, what string) string {
	return x.run.Tenant + "." + x.run.Run + "." + strconv.Itoa(step) + "." + what
}

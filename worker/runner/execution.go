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
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
)

// handBackTimeout bounds the append of a release and the flush of its events, when everything else must stop.
const handBackTimeout = 5 * time.Second

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
	suspect func() // gives the suspect place back; nil: not held
	planner agent.Planner

	state  *agent.State
	tip    messages.Entry             // what this owner appended last
	args   map[string]json.RawMessage // of calls that may be made, by call id
	flying map[string]bool            // tool calls on their way, by call id
	parks  map[string]*tools.Park     // wishes of calls to wait, by call id

	remembered time.Time // when the state was cached last

	left  chan struct{}   // closed when the ticket is done with
	ctx   context.Context //nolint:containedctx // of Run; for looks, which end before Run does
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
	return &execution{
		r: r, cfg: &r.cfg, log: r.cfg.Keeper.Log, run: t.Run, ticket: t, claimID: r.cfg.Keeper.NewID(),
		out: r.cfg.Keeper.Events.Open(t.Run), state: &agent.State{}, args: map[string]json.RawMessage{},
		flying: map[string]bool{}, parks: map[string]*tools.Park{}, left: make(chan struct{}),
	}
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
	defer x.unsuspect()
	owned, outcome, err := x.claim(ctx)
	if err == nil && owned {
		err = x.drive(ctx)
	}
	switch {
	case err != nil && x.rests():
		return Return, err // ended or parked: nothing is left to hand back, and anybody may settle it
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

// rests tells whether this owner has ended or parked the run.
func (x *execution) rests() bool { return x.state.Result != nil || x.state.Parked != nil }

// unsuspect gives the suspect place back once the run has shown that it can be worked, or is let go.
func (x *execution) unsuspect() {
	if x.suspect != nil {
		x.suspect()
		x.suspect = nil
	}
}

// drive plans and performs until the run ends or parks, and settles it.
func (x *execution) drive(ctx context.Context) error {
	action, err := x.commit(ctx)
	for err == nil {
		switch a := action.(type) {
		case *agent.Finish, *agent.Park:
			return x.cfg.Keeper.Close(ctx, x.run, x.tip, x.out)
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
func (x *execution) commit(ctx context.Context, reports ...messages.Record) (agent.Action, error) {
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

// commitPaid is commit of a report that is in hand although the worker is told to stop at once: what was paid for is
// recorded before the run is handed back.
func (x *execution) commitPaid(ctx context.Context, report messages.Record) (agent.Action, error) {
	if errors.Is(context.Cause(ctx), ErrShutdown) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), handBackTimeout)
		defer cancel()
	}
	return x.commit(ctx, report)
}

// commitAt is commit at the position that is known. ErrConflict: the log has grown.
func (x *execution) commitAt(ctx context.Context, reports ...messages.Record) (agent.Action, error) {
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
	e, err := x.append(ctx, x.state.Seq, x.state.Head, records...)
	if err != nil {
		return nil, err
	}
	next.Seq, next.Head = e.Seq, e.Head
	x.state, x.tip = next, e
	if next.StartedAt.IsZero() {
		next.StartedAt = e.Head.Time
	}
	if e.Head.Attempt == 0 {
		x.unsuspect()
	}
	runlog.Publish(ctx, x.run, e, x.out)
	x.remember()
	return action, nil
}

// append is the owner's only append.
func (x *execution) append(ctx context.Context, last uint64, prev messages.Head, rs ...messages.Record) (messages.Entry, error) {
	h := messages.Follow(x.run, prev, rs...)
	h.ID, h.Time = x.cfg.Keeper.NewID(), x.now()
	h.EventsThrough = max(prev.EventsThrough, x.out.Through())
	e := messages.Entry{Head: h, Records: rs}
	seq, err := x.log.Append(ctx, x.run, last, e)
	if err != nil {
		return messages.Entry{}, fmt.Errorf("append: %w", err)
	}
	x.moved(seq, h.Has(messages.KindClaimed))
	return e.At(seq), nil
}

// decide plans on a state and advances it by all that needs no effect, until an action is left that has one, or that
// ends the work. The records say what was decided.
func (x *execution) decide(s *agent.State) (decisions []messages.Record, action agent.Action, err error) {
	add := func(r messages.Record) error {
		decisions = append(decisions, r)
		return s.Advance(r)
	}
	if x.planner == nil {
		if x.planner = x.r.planners[s.Agent.Planner]; x.planner == nil {
			return nil, nil, fmt.Errorf("plan: agent %s has the unknown planner %q", s.Agent.Name, s.Agent.Planner)
		}
	}
	for {
		action = x.planner.Plan(s)
		switch a := action.(type) {
		case *agent.CallModel:
			if s.Calling {
				return decisions, a, nil
			}
			if s.StepOpen {
				if err := add(&messages.StepEnded{Step: s.Step, Status: messages.StepCompleted}); err != nil {
					return nil, nil, err
				}
			}
			if err := add(&messages.StepStarted{Step: a.Step}); err != nil {
				return nil, nil, err
			}
		case *agent.CallTools:
			rs, park := x.admit(s)
			for _, r := range rs {
				if err := add(r); err != nil {
					return nil, nil, err
				}
			}
			switch {
			case park != nil:
				return decisions, park, add(&park.Parked)
			case len(rs) == 0:
				return decisions, a, nil
			}
		case *agent.Park:
			return decisions, a, add(&a.Parked)
		case *agent.Finish:
			if s.StepOpen {
				if err := add(&messages.StepEnded{Step: s.Step, Status: stepStatus(a.Status)}); err != nil {
					return nil, nil, err
				}
			}
			if s.StartedAt.IsZero() {
				s.StartedAt = x.now()
			}
			return decisions, a, add(&messages.Finished{Result: s.Conclude(x.run, a, x.now())})
		default:
			return nil, nil, fmt.Errorf("plan: unknown action %T", action)
		}
	}
}

func stepStatus(s messages.Status) messages.StepStatus {
	switch s {
	case messages.StatusCompleted:
		return messages.StepCompleted
	case messages.StatusCancelled:
		return messages.StepSkipped
	case messages.StatusFailed, messages.StatusQueued, messages.StatusRunning, messages.StatusWaiting:
		return messages.StepFailed
	default:
		return messages.StepFailed
	}
}

// hydrate rebuilds the state after a claim of a run that others have worked: from the cache if it is of this log,
// else from the log alone. Events that the others may not have got stored are published again.
func (x *execution) hydrate(ctx context.Context) error {
	through, _ := x.position()
	s := x.recall(ctx)
	if s != nil {
		ok, err := x.replay(ctx, s, s.Seq-1, through)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || !ok: // whatever is wrong with the cache, the log decides
			s = nil
		}
	}
	if s == nil {
		s = &agent.State{}
		if _, err := x.replay(ctx, s, 0, through); err != nil {
			return err
		}
	}
	if s.Seq != through || s.Head.Claim != x.claimID {
		return fmt.Errorf("read log: it ends at %d, not at the claim %d", s.Seq, through)
	}
	x.state = s
	return runlog.Replay(ctx, x.log, x.run, messages.Entry{Seq: s.Seq, Head: s.Head}, x.out)
}

// replay folds the entries after a sequence into s. When s is from the cache the first of them must be the one that s
// reflects; false: it is not.
func (x *execution) replay(ctx context.Context, s *agent.State, after, through uint64) (bool, error) {
	first := s.Seq != 0
	for e, err := range x.log.Read(ctx, x.run, after, through) {
		switch {
		case err != nil:
			return false, fmt.Errorf("read log: %w", err)
		case first && (e.Seq != s.Seq || e.Head.ID != s.Head.ID):
			return false, nil
		case first:
			first = false
			continue
		case e.Seq > through:
			return true, nil
		}
		if err := s.Apply(e); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (x *execution) recall(ctx context.Context) *agent.State {
	seq, id, data, ok := x.cfg.Cache.Load(ctx, x.run)
	if !ok {
		return nil
	}
	s, err := agent.Decode(data)
	if err != nil || s.Seq != seq || s.Head.ID != id || seq == 0 || !s.Of(x.run) {
		x.cfg.Log.WarnContext(ctx, "cached state ignored", "task_id", x.run.Run, "tenant", x.run.Tenant, "err", err)
		return nil
	}
	return s
}

// rememberEvery bounds how often a run's state is cached: a run of quick steps would write little else. A crash costs
// the next owner the few entries more to fold.
const rememberEvery = 100 * time.Millisecond

// remember hands the state to the cache when a step begins, from the second on, and when the run parks.
func (x *execution) remember() {
	if !x.state.Calling && x.state.Parked == nil || x.state.Step < 2 && x.state.Parked == nil || !x.cfg.Cache.Wants() {
		return
	}
	now := time.Now()
	if x.state.Parked == nil && now.Sub(x.remembered) < rememberEvery {
		return
	}
	x.remembered = now
	if data, err := x.state.Encode(); err == nil {
		x.cfg.Cache.Save(x.run, x.state.Seq, x.state.Head.ID, data)
	}
}

// handBack releases the claim, which proves that the run is still ours, so that the ticket may be given back at once.
// A worker that stops gives the attempt back too; after a failure it is spent.
func (x *execution) handBack(ctx context.Context, cause error) (Outcome, error) {
	stopped := errors.Is(cause, ErrShutdown) || errors.Is(context.Cause(ctx), ErrShutdown)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handBackTimeout)
	defer cancel()
	r := &messages.Released{Reason: messages.Clip(cause.Error(), maxReason), Spent: !stopped}
	at, head := x.state.Seq, x.state.Head
	if at == 0 { // claimed, and not folded yet
		at, head = x.tip.Seq, x.tip.Head
	}
	for {
		_, err := x.append(ctx, at, head, r)
		if errors.Is(err, runlog.ErrConflict) && x.state.Seq != 0 {
			if err = x.catchUp(ctx, true); err == nil {
				at, head = x.state.Seq, x.state.Head
				continue
			}
		}
		if err != nil { // fenced, or no log to be had: the ticket comes back by itself
			return Lost, errors.Join(cause, err)
		}
		break
	}
	x.r.count(func(s *Stats) { s.Released++ })
	if err := x.out.Flush(ctx); err != nil {
		cause = errors.Join(cause, err) // the next owner publishes them again
	}
	if stopped {
		cause = ErrShutdown
	}
	return Return, cause
}

const maxReason = 256

// key is stable for the same thing in the same step of the same run, over attempts.
func (x *execution) key(step int, what string) string {
	return x.run.Tenant + "." + x.run.Run + "." + strconv.Itoa(step) + "." + what
}

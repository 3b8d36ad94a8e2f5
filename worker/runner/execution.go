package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// execution is one ticket being worked: the owners that share the work, each with its own fields, and the loop that performs
// what is decided. One goroutine works it; ownership is for others too.
type execution struct {
	*job

	own          ownership
	voice        voice
	footprint    footprint
	journal      journal
	limits       limits.Set // what may hold the run back
	dec          decider
	hooks        hookWork
	rules        policyWork
	calls        callBook
	models       modelWork
	tools        toolWork
	files        claimFiles
	conversation conversation
	memories     memoryWork
	claims       claimer
	settle       settlement

	left chan struct{} // closed when the ticket is done with
}

func (r *Runner) newExecution(ctx, paid context.Context, abort context.CancelCauseFunc, t Ticket) *execution {
	j := &job{r: r, cfg: &r.cfg, log: r.cfg.Controller.Log, run: t.Run, ticket: t, claimID: r.newClaim()}
	x := &execution{job: j, left: make(chan struct{})}
	x.own = ownership{job: j, ctx: ctx, abort: abort}
	x.voice = voice{job: j, state: func() *agent.State { return x.journal.state }}
	x.footprint = footprint{
		job: j, state: func() *agent.State { return x.journal.state }, share: r.cfg.Budget.Open(t.Run.String(), heldByAny+int64(len(t.Body))), listen: x.listen,
	}
	x.journal = journal{
		job: j, own: &x.own, voice: &x.voice, footprint: &x.footprint, rules: &x.rules, decide: x.dec.decide, paid: paid,
		state: &agent.State{}, out: r.cfg.Controller.Events.Open(t.Run), since: time.Now(),
	}
	x.calls = callBook{
		job: j, asks: x.hooks.decideFirst, permits: x.limits.Rate.Permits, judged: x.rules.answered, made: map[string]bool{}, args: map[string]json.RawMessage{}, from: map[string]string{}, flying: map[string]bool{}, parks: map[string]*tools.Park{},
		drafts: map[string]*record.Delegated{},
	}
	x.rules = policyWork{job: j, calls: &x.calls, state: func() *agent.State { return x.journal.state }}
	x.hooks = hookWork{job: j, journal: &x.journal, own: &x.own, calls: &x.calls}
	x.setLimits()
	x.dec = decider{job: j, hooks: &x.hooks, footprint: &x.footprint, limits: &x.limits, gates: x.limits.InOrder()}
	x.settle = settlement{job: j, journal: &x.journal, voice: &x.voice}
	x.claims = claimer{job: j, journal: &x.journal, own: &x.own, voice: &x.voice, limits: &x.limits, settle: &x.settle, rules: &x.rules, files: &x.files}
	x.models = modelWork{job: j, journal: &x.journal, footprint: &x.footprint, own: &x.own, voice: &x.voice, hooks: &x.hooks, calls: &x.calls, limits: &x.limits, rules: &x.rules}
	x.tools = toolWork{job: j, journal: &x.journal, footprint: &x.footprint, own: &x.own, calls: &x.calls, hooks: &x.hooks, claims: &x.claims, rules: &x.rules, limits: &x.limits, files: &x.files}
	x.files = claimFiles{job: j, journal: &x.journal, permits: &x.limits.Semaphore}
	x.conversation = conversation{job: j, journal: &x.journal, limits: &x.limits, rules: &x.rules}
	x.memories = memoryWork{job: j, journal: &x.journal, own: &x.own, rules: &x.rules}
	return x
}

func (x *execution) setLimits() {
	cfg, k := x.cfg, x.cfg.Controller
	l := &x.limits
	l.Deadline.Now = x.now
	l.Budget = limits.Budget{Now: x.now, Price: x.price}
	l.NotBefore = limits.NotBefore{Now: x.now, Quota: &l.Quota}
	l.Fit = limits.Fit{Has: cfg.Tools.Has, Labels: cfg.Labels}
	if x.ticket.Elsewhere != nil {
		l.Fit.Roster = x.ticket.Elsewhere
	}
	l.Quota = limits.Quota{Quotas: cfg.Quotas, Run: x.run, Now: x.now, Log: cfg.Log}
	l.Semaphore = limits.Semaphore{Permits: k, Flying: x.calls.anyFlying}
	l.Policy = limits.Func(x.rules.beforeCalls)
	l.Hooks = limits.Func(x.hooks.beforeHooks)
	l.Provider = limits.Provider{Now: x.now, Redact: cfg.Redact, LongWait: cfg.LongWait, Key: x.key}
	l.Rate = limits.Rate{
		Counter: cfg.Rates, Of: x.rules.rates, Due: x.calls.due, Unmade: x.calls.unmade, Flying: x.calls.anyFlying, Run: x.run, Now: x.now, Log: cfg.Log,
	}
	l.Approval = limits.Func(x.calls.beforeCalls)
	l.Session.Turns = k
}

// listen has abort called with errControl when what happens next is to be planned again: the run is cancelled, or its time is over; and with
// the cause of Run's context when that ends. The state is that of the run, as far as it was read. End must be called when that no longer matters.
func (x *execution) listen(s *agent.State, abort context.CancelCauseFunc) (end func()) {
	unlisten, unbind := x.own.listen(abort), func() {}
	stop := context.AfterFunc(x.own.ctx, func() { abort(context.Cause(x.own.ctx)) })
	if s.Task != nil {
		unbind = x.journal.boundBy(s, abort)
	}
	return func() {
		stop()
		unbind()
		unlisten()
	}
}

// finish ends what the execution has begun.
func (x *execution) finish() {
	x.own.forbid()
	x.hooks.pumps.Wait() // each call in it has a timeout
	x.own.abort(nil)
	x.own.looks.Wait()
	x.journal.remembering.Wait()
}

// work judges, claims, and takes the run as far as it goes.
func (x *execution) work(ctx context.Context) (Outcome, error) {
	defer x.journal.endTrial(false)
	defer x.files.close(ctx)
	owned, outcome, err := x.claims.claim(ctx)
	if err == nil && owned {
		x.models.repeats = x.claims.succeeds && x.journal.state.Calling
		err = x.drive(ctx)
	}
	switch {
	case err != nil && x.journal.rests():
		return x.settle.unsettled(ctx, err) // ended or parked: nothing is left to hand back
	case err == nil && !owned:
		return outcome, nil
	case err == nil:
		return Done, nil
	case errors.Is(err, errFenced) || errors.Is(context.Cause(ctx), errFenced):
		return Lost, nil
	case !owned:
		return outcome, err
	default:
		return x.settle.handBack(ctx, err)
	}
}

// drive plans and performs until the run ends or parks, and settles it.
func (x *execution) drive(ctx context.Context) error {
	if x.journal.rests() { // its first entry ended or parked it already
		return x.cfg.Controller.Close(ctx, x.run, x.journal.tip, x.journal.out)
	}
	action, err := x.journal.commit(ctx)
	for err == nil {
		if wait := x.footprint.before(ctx, action); wait != nil && !x.journal.rests() {
			if errors.Is(wait, errControl) {
				action, err = x.journal.replan(ctx)
				continue
			}
			return wait
		}
		switch a := action.(type) {
		case *agent.Finish, *agent.Park:
			x.conversation.leaveConversation()
			if x.journal.state.Result != nil {
				x.files.close(ctx) // before people hear that the run has ended
			}
			return x.cfg.Controller.Close(ctx, x.run, x.journal.tip, x.journal.out)
		case *agent.AskHooks:
			action, err = x.hooks.askHooks(ctx, a)
		case *agent.CallModel:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.models.callModel(ctx, a)
		case *agent.CallTools:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.tools.callTools(ctx)
		case *agent.CollectChildren:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.tools.collect(ctx, a)
		case *agent.JoinSession:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.conversation.joinSession(ctx)
		case *agent.RecallMemories:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.memories.recall(ctx)
		case *agent.LearnExample:
			action, err = x.memories.learn(ctx, a)
		case *agent.AcquirePermits:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.acquirePermits(ctx, a)
		case *agent.TakePermits:
			if x.draining() {
				return ErrShutdown
			}
			action, err = x.tools.takePermits(ctx, a)
		default:
			return fmt.Errorf("perform %T: unknown action", action)
		}
	}
	return err
}

// acquirePermits asks for permits. A run that has them all takes over the files of its named workspace, if it has one.
func (x *execution) acquirePermits(ctx context.Context, a *agent.AcquirePermits) (agent.Action, error) {
	if err := x.limits.Semaphore.Join(ctx, x.run, x.journal.state, a.Semaphores); err != nil {
		return nil, err
	}
	taken, err := x.files.take(ctx)
	if err != nil {
		return nil, err
	}
	return x.journal.commit(ctx, taken...)
}

package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// claim judges the ticket and, if it may own the run, claims it. Owned false: the outcome is final.
func (x *execution) claim(ctx context.Context) (owned bool, outcome Outcome, err error) {
	if x.ticket.first() {
		// The common case costs no read: only the first claim of a run can succeed at 0.
		owned, outcome, err = x.begin(ctx)
		if !errors.Is(err, runlog.ErrConflict) {
			return owned, outcome, err
		}
	}
	x.leaveTurn() // what follows may wait for long
	for range maxRaces {
		owned, outcome, err = x.judge(ctx)
		if !errors.Is(err, runlog.ErrConflict) {
			return owned, outcome, err
		}
		x.raced = true
		if ctx.Err() != nil {
			return false, Return, context.Cause(ctx)
		}
	}
	return false, Return, fmt.Errorf("claim: %w after %d tries", err, maxRaces)
}

// maxRaces bounds how often a claim races with others that append to the run.
const maxRaces = 100

// judge decides by the heads alone, and only on what stays true: the entry that the ticket names, a claim that
// exists, a compare-and-set that succeeds. ErrConflict: judge again.
func (x *execution) judge(ctx context.Context) (owned bool, outcome Outcome, err error) {
	named, last, err := x.heads(ctx)
	if err != nil {
		return false, Return, err
	}
	switch {
	case last.Seq == 0 && x.ticket.After == 0 && x.blown():
		return x.refuse(ctx, x.unread(), poisonError(x.ticket.Delivered))
	case last.Seq == 0 && x.ticket.After == 0:
		return x.begin(ctx)
	case last.Seq == 0: // purged: only a start ticket makes a log
		return false, Done, nil
	case last.Head.Phase == record.PhaseFinished:
		if err := x.checkSame(ctx, last); err != nil {
			return false, Return, err
		}
		return x.settled(ctx)
	case x.ticket.After == 0 && last.Head.ClaimSeq == 0: // a fork, which only its wake-up may claim
		if err := x.checkSame(ctx, last); err != nil {
			return false, Return, err
		}
		return false, Done, nil
	case last.Head.ClaimSeq > x.ticket.After && last.Head.Ticket != x.ticket.Seq: // another ticket took it up
		if err := x.checkSame(ctx, last); err != nil {
			return false, Return, err
		}
		return false, Done, nil
	case last.Head.ClaimSeq > x.ticket.After && last.Head.Phase != record.PhaseActive: // ours, and spent
		return x.settled(ctx)
	case last.Head.ClaimSeq > x.ticket.After && last.Head.Delivery >= x.ticket.Delivered: // by a newer delivery: this one is stale
		return false, Lost, nil
	case last.Head.ClaimSeq > x.ticket.After: // ours, and open
		return x.succeed(ctx, last)
	case x.ticket.After != 0 && (named.Seq != x.ticket.After || named.Head.Phase != record.PhaseReady):
		return false, Done, nil // what it names did not make the run ready
	default:
		return x.reclaim(ctx, last)
	}
}

// heads reads the entry that the ticket names and the newest one that can be seen, and counts the ticket's claims.
// Nothing of an entry is opened: what kills a worker there must be counted first.
func (x *execution) heads(ctx context.Context) (named, last record.Entry, err error) {
	x.claims, x.losses = 0, losses{}
	after, through := uint64(0), x.ticket.After
	if x.ticket.After > 0 {
		after = x.ticket.After - 1
	}
	if x.raced { // what was read before was behind
		through = runlog.Tail
	}
	for e, err := range x.log.Heads(ctx, x.run, after, through) {
		if err != nil {
			return named, last, fmt.Errorf("read log: %w", err)
		}
		if e.Seq == x.ticket.After {
			named = e
		}
		if e.Head.Has(record.KindClaimed) && e.Head.Ticket == x.ticket.Seq {
			x.claims++
		}
		x.losses.count(&last.Head, &e.Head)
		last = e
	}
	return named, last, nil
}

// settled settles on behalf of whoever ended or parked the run and may have died before it was done.
func (x *execution) settled(ctx context.Context) (bool, Outcome, error) {
	settle := x.cfg.Keeper.Settle
	if x.blown() {
		settle = x.cfg.Keeper.SettleBare
	}
	if err := settle(ctx, x.run); err != nil {
		outcome, err := x.unsettled(ctx, fmt.Errorf("settle: %w", err))
		return false, outcome, err
	}
	return false, Done, nil
}

// unsettled is the outcome for a run that has ended or parked and could not be settled. Anybody may settle it, so its ticket
// comes again; but not for ever: when the stream refuses its events for as long as it has attempts, they are left out.
func (x *execution) unsettled(ctx context.Context, why error) (Outcome, error) {
	if !errors.Is(why, runlog.ErrUnpublished) || ctx.Err() != nil || x.ticket.Delivered < x.cfg.MaxAttempts {
		return Return, why
	}
	if err := x.cfg.Keeper.SettleMute(ctx, x.run, x.ticket.Delivered, why); err != nil {
		return Return, errors.Join(why, err)
	}
	x.say(ctx, slog.LevelError, "run is let go without its events, see its dead letter", x.said("err", why.Error()))
	return Done, nil
}

// checkSame buries a second task that was published with the id of another: its publisher must not take the first
// one's run for its own.
func (x *execution) checkSame(ctx context.Context, last record.Entry) error {
	if x.ticket.After != 0 || last.Head.Ticket == x.ticket.Seq {
		return nil
	}
	for e, err := range x.log.Read(ctx, x.run, 0, 1) {
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		first, ok := e.Records[0].(*record.Started)
		task, err := messages.DecodeTaskFor(x.run, x.ticket.Priority, x.ticket.Body)
		if !ok || err == nil && task.Fingerprint() == first.Task.Fingerprint() {
			return nil
		}
		why := messages.RunError{Code: messages.CodeConflict, Message: "id: it is taken by another task"}
		x.say(ctx, slog.LevelWarn, "a task under the id of another is in the dead letters", slog.Uint64("ticket", x.ticket.Seq))
		return x.cfg.Keeper.Queue.Bury(ctx, x.run, first.Task.Agent, messages.Dead{
			Error: why, Subject: x.run.TaskSubject(x.ticket.Priority), Task: x.ticket.Body, Time: x.now(), Ticket: x.ticket.Seq,
		})
	}
	return nil
}

// reclaim claims a run that has a log, before anything of it is opened or folded.
func (x *execution) reclaim(ctx context.Context, last record.Entry) (bool, Outcome, error) {
	h := last.Head
	verdict, lost := x.weigh(&last)
	switch {
	case verdict == isPoison:
		return x.poison(ctx, last, lost)
	case verdict == inQuarantine && x.ticket.Quarantine != nil && x.trial == nil:
		trial, err := x.ticket.Quarantine(ctx, lost.acting)
		if err != nil {
			return false, Return, err
		}
		x.trial = trial
		return false, 0, runlog.ErrConflict // judge again: the wait may have been long
	}
	if h.Needs != nil && x.ticket.Elsewhere != nil && !h.Cancel && x.limits.Fit.Lacks(h.Needs) != "" {
		if passed, err := x.ticket.Elsewhere.Pass(ctx, h.Needs); passed || err != nil {
			return false, Kept, err
		}
	}
	c := x.newClaim()
	if c.Resumes = h.Waits; h.Needs != nil && !h.Needs.Pinned {
		c.Tools, _ = x.cfg.Tools.Specs(h.Needs.Tools) // without them the run waits for another worker
	}
	e, err := x.takeOver(ctx, &last, c)
	switch {
	case errors.Is(err, errStale):
		return false, Lost, err
	case err != nil:
		return false, Return, err
	}
	x.tip = e
	x.succeeds = h.Phase == record.PhaseActive && !h.Has(record.KindReleased)
	x.r.count(func(s *Stats) {
		s.Claims++
		if x.succeeds {
			s.Reclaims++
		}
	})
	if err := x.hydrate(ctx); err != nil {
		return true, Return, err
	}
	x.repeats = x.state.Calling && x.succeeds
	if c.Resumes != "" {
		x.say(ctx, slog.LevelInfo, "run goes on after a wait", slog.String("reason", c.Resumes))
	} else {
		x.say(ctx, slog.LevelInfo, "run goes on after another claim", slog.Int("without_progress", h.Attempt), slog.Int("delivery", c.Delivery))
	}
	if x.limits.Quota.Clear(); x.state.Unturned { // what began with this ticket may have lost the race for it
		x.limits.Quota.Start(ctx, x.now())
	}
	return true, 0, nil
}

func (x *execution) newClaim() *record.Claimed {
	return &record.Claimed{Claim: x.claimID, Worker: x.cfg.Worker, Ticket: x.ticket.Seq, Delivery: x.ticket.Delivered}
}

// poison ends a run that was claimed too often without getting any further, or that was found to kill its workers.
func (x *execution) poison(ctx context.Context, last record.Entry, lost losses) (bool, Outcome, error) {
	attempts := max(last.Head.Attempt, lost.workers)
	res := messages.EndedResult(x.run, nil, messages.StatusFailed, poisonError(attempts), x.ticket.Queued, x.now())
	res.RetryInfo = &messages.RetryInfo{Attempts: attempts, LastError: res.Error.Message}
	if _, err := x.append(ctx, last.Seq, &last.Head, &record.Finished{Result: res, Dead: true}); err != nil {
		return false, Return, err
	}
	if x.cfg.Fleet != nil && lost.workers > 0 {
		x.cfg.Fleet.Convict(lost.workers)
	}
	x.r.count(func(s *Stats) { s.Poisoned++ })
	x.recountEnd(ctx, &res)
	return x.settled(ctx)
}

func poisonError(attempts int) *messages.RunError {
	return &messages.RunError{
		Code:    messages.CodePoison,
		Message: fmt.Sprintf("given up after %d attempts without progress: its workers died or were cut off", attempts),
	}
}

// fuse is how many deliveries, in multiples of the attempts, may come to nothing before a claim is even tried.
const fuse = 3

// blown reports whether the ticket was delivered so often without a claim that what kills its worker must come before
// one: the task that is decoded, or the log that is settled.
func (x *execution) blown() bool {
	return x.ticket.Delivered-1-x.claims >= fuse*x.cfg.MaxAttempts
}

// unread is the first record of a task that nobody dares to open.
func (x *execution) unread() *record.Started {
	return &record.Started{
		Task:     messages.Task{ID: x.run.Run, Tenant: x.run.Tenant, Agent: "_", Priority: x.ticket.Priority},
		QueuedAt: x.ticket.Queued,
	}
}

// begin makes the log: the first claim, or the end of a task that cannot be worked.
func (x *execution) begin(ctx context.Context) (bool, Outcome, error) {
	started, refused := x.open(ctx)
	if refused != nil {
		var re *messages.RunError
		if !errors.As(refused, &re) {
			return false, Return, refused
		}
		return x.refuse(ctx, started, re)
	}
	if n := limits.Needs(&started.Agent, &started.Task, started.Tools); x.ticket.Elsewhere != nil && x.limits.Fit.Lacks(n) != "" {
		if passed, err := x.ticket.Elsewhere.Pass(ctx, n); passed || err != nil {
			return false, Kept, err
		}
	}
	x.limits.Quota.Start(ctx, x.ticket.Queued)
	if _, err := x.commitAt(ctx, started, x.newClaim()); err != nil {
		return false, Return, err
	}
	x.ticket.Body = nil // the log has it
	x.r.count(func(s *Stats) { s.Claims++ })
	return true, 0, nil
}

// refuse ends a task that cannot be worked: its run has failed and the task goes to the dead letters.
func (x *execution) refuse(ctx context.Context, started *record.Started, why *messages.RunError) (bool, Outcome, error) {
	started.Raw = x.ticket.Body // the dead letter shows it as it came
	now := x.now()
	res := messages.EndedResult(x.run, &started.Task, messages.StatusFailed, why, now, now)
	if _, err := x.append(ctx, 0, &record.Head{}, started, &record.Finished{Result: res, Dead: true}); err != nil {
		return false, Return, err
	}
	x.recountEnd(ctx, &res)
	return x.settled(ctx)
}

// open reads the task of a start ticket and pins what its run will be. A *messages.RunError says why it cannot be
// worked; any other error is the platform's.
func (x *execution) open(ctx context.Context) (*record.Started, error) {
	started := &record.Started{QueuedAt: x.ticket.Queued}
	task, err := messages.DecodeTaskFor(x.run, x.ticket.Priority, x.ticket.Body)
	if err != nil {
		return x.unread(), &messages.RunError{Code: messages.CodeInvalidInput, Message: err.Error()}
	}
	task.Join(x.ticket.Trace)
	started.Task = *task
	if err := errors.Join(task.CheckInput(x.cfg.MaxInput), task.CheckDelay(x.now())); err != nil {
		return started, &messages.RunError{Code: messages.CodeInvalidInput, Message: err.Error()}
	}
	def, err := x.cfg.Agent(ctx, task.Agent)
	switch {
	case errors.Is(err, messages.ErrUnknownAgent):
		return started, &messages.RunError{Code: messages.CodeUnknownAgent, Message: "agent: " + err.Error()}
	case err != nil:
		return started, fmt.Errorf("resolve agent %s: %w", task.Agent, err)
	}
	if err := x.prompt(ctx, &def, task); err != nil {
		return started, err
	}
	if task.Plan != nil {
		def.Planner = messages.PlannerPlan // it uses the agent's tools and nothing more
	}
	started.Agent = def
	lacks := x.limits.Fit.Lacks(limits.Needs(&started.Agent, task, nil))
	switch specs, err := x.cfg.Tools.Specs(def.Tools); {
	case lacks == "":
		started.Tools = specs
	case x.ticket.Elsewhere == nil:
		return started, unfit(&def, lacks, err)
	} // else the worker that has them says what they are
	if _, err := x.r.hooksOf(&started.Agent); err != nil {
		return started, &messages.RunError{Code: messages.CodeInvalidInput, Message: fmt.Sprintf("agent %s: %v", def.Name, err)}
	}
	if err := agent.CheckOutputSchema(&started.Task, &started.Agent); err != nil {
		return started, &messages.RunError{Code: messages.CodeInvalidInput, Message: err.Error()}
	}
	return started, nil
}

// unfit is why a run that can be worked by no other worker fails.
func unfit(def *messages.Definition, lacks string, err error) *messages.RunError {
	if err != nil {
		return &messages.RunError{Code: messages.CodeInvalidInput, Message: fmt.Sprintf("agent %s: %v", def.Name, err)}
	}
	return &messages.RunError{Code: messages.CodeInvalidInput, Message: "requires: this worker, the only one, does not have " + lacks}
}

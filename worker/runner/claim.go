package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// claimer decides whether a ticket may own its run, and claims the run.
type claimer struct {
	*job

	journal *journal
	own     *ownership
	voice   *voice
	limits  *limits.Set
	settle  *settlement
	rules   *policyWork
	files   *claimFiles

	cleaned []record.Record // what rules took out of the input of a run that is about to begin; written by open

	raced    bool   // others appended meanwhile; written by claim
	count    int    // claims by this ticket, as far as the log was read; written by heads
	losses   losses // as far as the log was read; written by heads
	succeeds bool   // a previous owner was lost: it neither ended, parked nor released the run; written by reclaim
}

// maxRaces bounds how often a claim races with others that append to the run.
const maxRaces = 100

func poisonError(attempts int, why string) *messages.RunError {
	if why == "" {
		why = "its workers died or were cut off"
	}
	return &messages.RunError{
		Code: messages.CodePoison, Message: fmt.Sprintf("given up after %d attempts without progress: %s", attempts, why),
	}
}

// maxUnclaimed is the number of deliveries without a claim, in multiples of the attempts, after which the run is ended unread.
const maxUnclaimed = 3

// unfit is the error of a run that no worker can work.
func unfit(def *messages.Definition, lacks string, err error) *messages.RunError {
	if err != nil {
		return &messages.RunError{Code: messages.CodeInvalidInput, Message: fmt.Sprintf("agent %s: %v", def.Name, err)}
	}
	message := "requires: this worker, the only one, does not have " + lacks
	if strings.HasPrefix(lacks, "the tool ") {
		message += ": check its name and what LONGSHORE_TOOLS grants; LONGSHORE_LOG_LEVEL=warn shows servers that did not start"
	}
	return &messages.RunError{Code: messages.CodeInvalidInput, Message: message}
}

// succeed takes over a run whose claim by this ticket is open, unless its owner is alive.
func (x *claimer) succeed(ctx context.Context, last record.Entry) (bool, Outcome, error) {
	if x.ticket.Keeps != nil {
		kept, err := x.ticket.Keeps(ctx, last.Head.Claim)
		switch {
		case err != nil:
			return false, Return, err
		case kept:
			return false, Kept, nil
		}
	}
	return x.reclaim(ctx, last)
}

// takeOver appends the claim of a run that had other owners. It fails once the ticket may have been delivered to another worker,
// which then owns the run.
func (x *claimer) takeOver(ctx context.Context, last *record.Entry, c *record.Claimed) (*record.Entry, error) {
	if x.ticket.Lease == nil {
		return x.journal.append(ctx, last.Seq, &last.Head, c)
	}
	ctx, cancel := context.WithTimeout(ctx, max(0, x.ticket.Lease()))
	defer cancel()
	e, err := x.journal.append(ctx, last.Seq, &last.Head, c)
	if err != nil && ctx.Err() != nil && !errors.Is(err, runlog.ErrConflict) {
		err = fmt.Errorf("%w: %w", errStale, err)
	}
	return e, err
}

// claim judges the ticket and, if it may own the run, claims it. Owned false: the outcome is final.
func (x *claimer) claim(ctx context.Context) (owned bool, outcome Outcome, err error) {
	if x.ticket.first() {
		// The common case costs no read: only the first claim of a run can succeed at 0.
		owned, outcome, err = x.begin(ctx)
		if !errors.Is(err, runlog.ErrConflict) {
			return x.unlessGone(ctx, owned, outcome, err)
		}
	}
	x.journal.leave() // what follows may take long
	for range maxRaces {
		owned, outcome, err = x.judge(ctx)
		if !errors.Is(err, runlog.ErrConflict) {
			return x.unlessGone(ctx, owned, outcome, err)
		}
		x.raced = true
		if ctx.Err() != nil {
			return false, Return, context.Cause(ctx)
		}
	}
	return false, Return, fmt.Errorf("claim: %w after %d tries", err, maxRaces)
}

// judge decides from the heads, and only by facts that cannot change: the entry that the ticket names, a claim that exists, a
// compare-and-set that succeeds. ErrConflict: judge again.
func (x *claimer) judge(ctx context.Context) (owned bool, outcome Outcome, err error) {
	named, last, err := x.heads(ctx)
	if err != nil {
		return false, Return, err
	}
	switch {
	case last.Locked: // a worker with the keys may work it
		return false, Return, record.ErrNoKey
	case last.Seq == 0 && x.ticket.After == 0 && x.unclaimed():
		return x.refuse(ctx, x.unread(), poisonError(x.ticket.Delivered, ""))
	case last.Seq == 0 && x.ticket.After == 0:
		return x.begin(ctx)
	case last.Seq == 0: // purged: only a start ticket makes a log
		return false, Done, nil
	case last.Head.Phase == record.PhaseFinished:
		if _, err := x.checkSame(ctx, last); err != nil {
			return false, Return, err
		}
		return x.settle.settled(ctx, x.unclaimed())
	case x.ticket.After == 0 && last.Head.ClaimSeq == 0: // a fork, which only its wake-up may claim, or a child
		if same, err := x.checkSame(ctx, last); err != nil || !same || last.Head.Parent == nil {
			return false, doneOr(err), err
		}
		return x.reclaim(ctx, last)
	case last.Head.ClaimSeq > x.ticket.After && last.Head.Ticket != x.ticket.Seq: // another ticket took it up
		_, err := x.checkSame(ctx, last)
		return false, doneOr(err), err
	case last.Head.ClaimSeq > x.ticket.After && last.Head.Phase != record.PhaseActive: // ours, and spent
		return x.settle.settled(ctx, x.unclaimed())
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

// heads reads the entry that the ticket names and the newest visible one, and counts the ticket's claims. It does not decode records:
// one that kills workers must be counted first.
func (x *claimer) heads(ctx context.Context) (named, last record.Entry, err error) {
	x.count, x.losses = 0, losses{}
	after, through := uint64(0), x.ticket.After
	if x.ticket.After > 0 {
		after = x.ticket.After - 1
	}
	if x.raced { // the previous read was stale
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
			x.count++
		}
		x.losses.count(&last.Head, &e.Head)
		last = e
	}
	return named, last, nil
}

// checkSame dead-letters a second task that was published with the id of another: its publisher must not mistake
// the first task's run for its own.
func (x *claimer) checkSame(ctx context.Context, last record.Entry) (same bool, err error) {
	if x.ticket.After != 0 || last.Head.Ticket == x.ticket.Seq {
		return true, nil
	}
	for e, err := range x.log.Read(ctx, x.run, 0, last.Seq) {
		if err != nil {
			return false, fmt.Errorf("read log: %w", err)
		}
		first, ok := e.Records[0].(*record.Started)
		task, err := messages.DecodeTaskFor(x.run, x.ticket.Priority, x.ticket.Body)
		if !ok || record.SaysNothing(x.run, e.Records) || err == nil && task.Fingerprint() == first.Task.Fingerprint() {
			return ok, nil
		}
		why := messages.RunError{Code: messages.CodeConflict, Message: "id: it is taken by another task"}
		x.voice.say(ctx, slog.LevelWarn, "a task under the id of another is in the dead letters", slog.Uint64("ticket", x.ticket.Seq))
		return false, x.cfg.Controller.Queue.DeadLetter(ctx, x.run, first.Task.Agent, messages.Dead{
			Error: why, Subject: x.run.TaskSubject(x.ticket.Priority), Task: x.ticket.Body, Time: x.now(), Ticket: x.ticket.Seq,
		})
	}
	return false, nil
}

// doneOr is the outcome for a ticket that is not the run's.
func doneOr(err error) Outcome {
	if err != nil {
		return Return
	}
	return Done
}

// reclaim claims a run that has a log, before any of its records is decoded or folded.
func (x *claimer) reclaim(ctx context.Context, last record.Entry) (bool, Outcome, error) {
	h := last.Head
	verdict, lost := x.weigh(&last)
	switch {
	case verdict == isPoison:
		return x.poison(ctx, last, lost)
	case verdict == inQuarantine && x.ticket.Quarantine != nil && x.journal.trial == nil:
		trial, err := x.ticket.Quarantine(ctx, lost.acting)
		if err != nil {
			return false, Return, err
		}
		x.journal.trial = trial
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
	x.journal.tip = e
	x.succeeds = h.Phase == record.PhaseActive && !h.Has(record.KindReleased)
	x.r.count(func(s *Stats) {
		s.Claims++
		if x.succeeds {
			s.Reclaims++
		}
	})
	if err := x.journal.hydrate(ctx); err != nil {
		return !record.IsGone(err), Return, err
	}
	if c.Resumes != "" {
		x.voice.say(ctx, slog.LevelInfo, "run resumed after a wait", slog.String("reason", c.Resumes))
	} else {
		x.voice.say(ctx, slog.LevelInfo, "run resumed after another claim", slog.Int("without_progress", h.Attempt), slog.Int("delivery", c.Delivery))
	}
	begins := h.ClaimSeq == 0 && h.Parent != nil
	if begins && x.ticket.first() { // it was asked before the log was found
		return true, 0, nil
	}
	if x.limits.Quota.Clear(); x.journal.state.Unturned || begins { // what began with this ticket may have lost the race for it
		x.limits.Quota.Start(ctx, x.now())
	}
	return true, 0, nil
}

// poison ends a run that was claimed too often without progress, or that was found to kill its workers.
func (x *claimer) poison(ctx context.Context, last record.Entry, lost losses) (bool, Outcome, error) {
	attempts := max(last.Head.Attempt, lost.workers)
	res := messages.EndedResult(x.run, nil, messages.StatusFailed, poisonError(attempts, x.handedBack(ctx, &last)), x.ticket.Queued, x.now())
	res.RetryInfo = &messages.RetryInfo{Attempts: attempts, LastError: res.Error.Message}
	if _, err := x.journal.append(ctx, last.Seq, &last.Head, &record.Finished{Result: res, Dead: true}); err != nil {
		return false, Return, err
	}
	if x.cfg.Fleet != nil && lost.workers > 0 {
		x.cfg.Fleet.Convict(lost.workers)
	}
	x.r.count(func(s *Stats) { s.Poisoned++ })
	x.voice.recountEnd(ctx, &res)
	return x.settle.settled(ctx, x.unclaimed())
}

// unclaimed reports whether the ticket was delivered so often without a claim that its workers must have died before one: while
// decoding the task or settling the log.
func (x *claimer) unclaimed() bool {
	return x.ticket.Delivered-1-x.count >= maxUnclaimed*x.cfg.MaxAttempts
}

// begin creates the log, with the first claim or with the end of a task that cannot be worked.
func (x *claimer) begin(ctx context.Context) (bool, Outcome, error) {
	started, refused := x.open(ctx)
	if refused != nil {
		return x.refused(ctx, started, refused)
	}
	if n := limits.Needs(&started.Agent, &started.Task, started.Tools); x.ticket.Elsewhere != nil && x.limits.Fit.Lacks(n) != "" {
		if passed, err := x.ticket.Elsewhere.Pass(ctx, n); passed || err != nil {
			return false, Kept, err
		}
	}
	files, refused := x.files.first(ctx, &started.Task)
	if refused != nil {
		return x.refused(ctx, started, refused)
	}
	x.limits.Quota.Start(ctx, x.ticket.Queued)
	first := append([]record.Record{started}, x.cleaned...)
	if files != nil {
		first = append(first, files)
	}
	if _, err := x.journal.commitAt(ctx, append(first, x.newClaim())...); err != nil {
		return false, Return, err
	}
	x.ticket.Body = nil // the log has it
	x.r.count(func(s *Stats) { s.Claims++ })
	return true, 0, nil
}

// refused is what becomes of a task that cannot begin here.
func (x *claimer) refused(ctx context.Context, started *record.Started, why error) (bool, Outcome, error) {
	re, ok := errors.AsType[*messages.RunError](why)
	if !ok {
		return false, Return, why
	}
	return x.refuse(ctx, started, re)
}

// refuse ends a task that cannot be worked: its run fails and the task is dead-lettered.
func (x *claimer) refuse(ctx context.Context, started *record.Started, why *messages.RunError) (bool, Outcome, error) {
	withheld := why.Code == messages.CodePolicy // neither the log nor a dead letter may have it
	if !withheld {
		started.Raw = x.ticket.Body // the dead letter shows it as it came
	}
	now := x.now()
	told := *why
	told.Message = x.cfg.Redact(why.Message)
	res := messages.EndedResult(x.run, &started.Task, messages.StatusFailed, &told, now, now)
	entry := append([]record.Record{started}, x.cleaned...)
	if _, err := x.journal.append(ctx, 0, &record.Head{}, append(entry, &record.Finished{Result: res, Dead: !withheld})...); err != nil {
		return false, Return, err
	}
	x.voice.recountEnd(ctx, &res)
	return x.settle.settled(ctx, x.unclaimed())
}

// open decodes the task of a start ticket and pins its agent, prompt and tools. A *messages.RunError says why it cannot be worked; any
// other error is a failure of the platform.
func (x *claimer) open(ctx context.Context) (*record.Started, error) {
	started := &record.Started{QueuedAt: x.ticket.Queued, Shown: record.ShownByDefault()}
	task, err := messages.DecodeTaskFor(x.run, x.ticket.Priority, x.ticket.Body)
	if err != nil {
		return x.unread(), &messages.RunError{Code: messages.CodeInvalidInput, Message: err.Error()}
	}
	task.Join(x.ticket.Trace)
	x.rules.withoutSecrets(task)
	started.Task = *task
	if field := x.rules.secretName(task); field != "" {
		started.Task.Files = nil
		return started, &messages.RunError{Code: messages.CodePolicy, Message: field + ": holds a secret that the worker knows: name the file otherwise"}
	}
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
	if task.Plan != nil {
		def.Planner = messages.PlannerPlan // it uses the agent's tools and nothing more
	}
	started.Agent = def
	var blocked *messages.RunError
	if x.cleaned, blocked = x.rules.input(started); blocked != nil {
		return started, blocked
	}
	if err := x.prompt(ctx, &def, &started.Task); err != nil { // with what is left of its context
		return started, err
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

package runlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// Errors of a Controller.
var (
	ErrNotFound   = errors.New("no such run")
	ErrEnded      = errors.New("the run has ended")
	ErrNotWaiting = errors.New("the run is not waiting for this")
	ErrLate       = errors.New("the time for this is over")
	// ErrUnpublished means that the events of a run could not be stored.
	ErrUnpublished = errors.New("publish events")
)

const (
	netDelay       = 5 * time.Second // until the net runs: by then the writer of the control record has normally sent the wake-up
	controlTimeout = 4 * time.Second // shorter than netDelay: a net that runs before the record exists is lost
	maxConflicts   = 100             // bounds the race of a control record with a worker that appends back to back
)

// Controller performs the operations on a run that do not need ownership: it appends control records, settles and repairs runs.
// Safe for concurrent use.
type Controller struct {
	Log        Log
	Queue      Queue
	Events     Events
	Sessions   Sessions   // nil: runs of a session are not ordered
	Quotas     Quotas     // nil: a run that waits for a quota resumes when its timer fires
	Semaphores Semaphores // nil: nothing is capped or paused
	Caps       Caps       // nil: only concurrency keys are capped
	Workspaces Workspaces // nil: the workspaces that tasks name are not shared. It needs Semaphores
	Asks       Waits      // nil: no list of the runs that wait for a person
	Tasks      Tasks      // nil: no run delegates, and children of others are woken instead of queued
	Now        func() time.Time
	NewID      func() string
}

// Control appends a control record and, if the run waited for it, publishes the wake-up that names it. It is idempotent: a record
// that would change nothing is not appended again, but the wake-up is.
//
// It takes at most 4 s. ErrNotFound: there is no log. ErrEnded: nothing can change the run. ErrNotWaiting: an answer to another park.
// ErrLate: a decision after its park has expired. Answer returns which of several answers counted.
func (k *Controller) Control(ctx context.Context, run messages.Ref, r record.Record) (record.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	netted := false
	for range maxConflicts {
		last, ok, err := k.Log.Last(ctx, run)
		switch {
		case err != nil:
			return record.Head{}, fmt.Errorf("read %s: %w", run, err)
		case !ok:
			return record.Head{}, ErrNotFound
		}
		if done, err := settled(last, r, k.Now()); done || err != nil {
			if err == nil {
				err = k.wakeIfReady(ctx, run, &last)
			}
			return last.Head, err
		}
		if !netted && !r.Kind().Resent() { // before the record: if this process dies after it, the net sends the wake-up
			if err := k.Queue.Net(ctx, run, k.NewID(), k.Now().Add(netDelay)); err != nil {
				return record.Head{}, fmt.Errorf("schedule net of %s: %w", run, err)
			}
			netted = true
		}
		e, err := k.append(ctx, run, last, r)
		if errors.Is(err, ErrConflict) {
			if err := pause(ctx, time.Duration(rand.Int64N(int64(5*time.Millisecond)))); err != nil {
				return record.Head{}, err
			}
			continue
		}
		if err != nil {
			return record.Head{}, err
		}
		return e.Head, k.wakeIfReady(ctx, run, &e)
	}
	return record.Head{}, fmt.Errorf("append to %s: %w after %d tries", run, ErrConflict, maxConflicts)
}

// settled reports whether a record would no longer change anything.
func settled(last record.Entry, r record.Record, now time.Time) (bool, error) {
	if last.Head.Phase == record.PhaseFinished {
		return false, ErrEnded
	}
	switch record.StandingOf(r, &last.Head, now) {
	case record.Settled:
		return true, nil
	case record.NotWaiting:
		return false, ErrNotWaiting
	case record.Late:
		return false, ErrLate
	case record.Counts:
		return false, nil
	default:
		return false, nil
	}
}

// append adds records after the last entry.
func (k *Controller) append(ctx context.Context, run messages.Ref, last record.Entry, rs ...record.Record) (record.Entry, error) {
	asked := k.asked(ctx, run, last.Head)
	e, err := k.appendListed(ctx, run, last, rs...)
	if err == nil && e.Head.Phase != record.PhaseParked {
		k.unask(ctx, listOf(last.Head), run, asked)
	}
	return e, err
}

// appendListed is append for a run that stays in the list of those that wait.
func (k *Controller) appendListed(ctx context.Context, run messages.Ref, last record.Entry, rs ...record.Record) (record.Entry, error) {
	if last.Locked { // a log that is sealed gets no record in the clear
		return record.Entry{}, fmt.Errorf("append to %s: %w", run, record.ErrNoKey)
	}
	h := record.Follow(last.Head, rs...)
	h.ID, h.Time, h.EventsThrough = k.NewID(), k.Now(), last.Head.EventsThrough
	e := record.Entry{Head: h, Records: rs}
	seq, err := k.Log.Append(ctx, run, last.Seq, e)
	if err != nil {
		return record.Entry{}, fmt.Errorf("append to %s: %w", run, err)
	}
	return e.At(seq), nil
}

func (k *Controller) wakeIfReady(ctx context.Context, run messages.Ref, last *record.Entry) error {
	if last.Head.Phase != record.PhaseReady {
		return nil
	}
	if err := k.Queue.Wake(ctx, run, last.Seq); err != nil {
		return fmt.Errorf("wake %s: %w", run, err)
	}
	return nil
}

// Begin appends the first entry of a log, and ends the run with it when the records do. ErrConflict: there is a log.
func (k *Controller) Begin(ctx context.Context, run messages.Ref, rs ...record.Record) (record.Entry, error) {
	return k.append(ctx, run, record.Entry{}, rs...)
}

// Settle does what follows from the end or the park of a run: it publishes events, sets the timer, writes the dead letter. It is
// idempotent and needs nothing but the log, so any process may repeat it. The ticket must not be acked before.
func (k *Controller) Settle(ctx context.Context, run messages.Ref) error {
	last, ok, err := k.Log.Last(ctx, run)
	if err != nil || !ok || last.Head.Phase == record.PhaseActive {
		return err // its owner will
	}
	out := k.Events.Open(run)
	if err := Replay(ctx, k.Log, run, last, out); err != nil && !record.OpensForNone(err) { // events that no process can read are lost
		return err
	}
	return k.close(ctx, run, last, out)
}

// SettleBare is Settle for a run whose log kills the process that reads all of it: it reads only the last entry and publishes only
// the end.
func (k *Controller) SettleBare(ctx context.Context, run messages.Ref) error {
	last, ok, err := k.Log.Last(ctx, run)
	if err != nil || !ok || last.Head.Phase == record.PhaseActive {
		return err
	}
	return k.close(ctx, run, last, k.Events.Open(run))
}

// SettleMute is Settle for a run whose events the stream refuses: they are left out, and a dead letter says why. Timers,
// places and turns are seen to. A sweep tries a run that ended within the last hour once more.
func (k *Controller) SettleMute(ctx context.Context, run messages.Ref, attempts int, why error) error {
	last, ok, err := k.Log.Last(ctx, run)
	if err != nil || !ok || last.Head.Phase == record.PhaseActive {
		return err
	}
	res := messages.AgentResult{
		Error:     &messages.RunError{Code: messages.CodeInternal, Message: strict.Clip("its events could not be stored: "+why.Error(), maxWhy)},
		RetryInfo: &messages.RetryInfo{Attempts: attempts},
	}
	if err := k.deadLetter(ctx, run, &last, &record.Finished{Result: res}); err != nil {
		return err
	}
	return k.close(ctx, run, last, mute{})
}

// maxWhy bounds the text of an error in a dead letter, in bytes.
const maxWhy = 1 << 10

// mute is an outbox that says nothing.
type mute struct{}

var _ Outbox = mute{}

// Publish implements Outbox.
func (mute) Publish(context.Context, uint64, iter.Seq[messages.Event]) {}

// Through implements Outbox.
func (mute) Through() uint64 { return 0 }

// Flush implements Outbox.
func (mute) Flush(context.Context) error { return nil }

// Finish implements Outbox.
func (mute) Finish(context.Context, messages.Event) error { return nil }

// close is Close after the last entry was read whole. A run that no process can read ends.
func (k *Controller) close(ctx context.Context, run messages.Ref, last record.Entry, out Outbox) error {
	ended := last.Head.Phase == record.PhaseFinished
	whole, err := k.entry(ctx, run, last.Seq)
	if ended && record.OpensForNone(err) {
		whole, err = lostEnd(run, last), nil
	}
	if err == nil {
		err = k.Close(ctx, run, &whole, out)
	}
	if !ended && record.IsGone(err) {
		return k.EndGone(ctx, run)
	}
	return err
}

// entry reads one entry whole.
func (k *Controller) entry(ctx context.Context, run messages.Ref, seq uint64) (record.Entry, error) {
	return firstOf(k.Log.Read(ctx, run, seq-1, seq), run)
}

// Replay publishes again every event after the entry's mark, up to that entry, but for run_finished.
func Replay(ctx context.Context, log Log, run messages.Ref, last record.Entry, out Outbox) error {
	for e, err := range log.Read(ctx, run, last.Head.EventsThrough, last.Seq) {
		if err != nil {
			return fmt.Errorf("read %s: %w", run, err)
		}
		if e.Seq > last.Seq {
			break
		}
		Publish(ctx, run, &e, out)
	}
	return nil
}

// Publish sends the events of an entry, but for run_finished, which only Close may send, and counts what the entry cost.
func Publish(ctx context.Context, run messages.Ref, e *record.Entry, out Outbox) {
	if l, ok := out.(Ledger); ok {
		if nanos := e.Spent(); nanos > 0 {
			l.Spend(ctx, e.Seq, e.Head.Time, nanos)
		}
	}
	out.Publish(ctx, e.Seq, record.EachEvent(run, e, func(name string) bool { return name != messages.EventRunFinished }))
}

// Close is Settle for a caller that has published all events of the run to out. Last is the newest entry, a park or the end.
func (k *Controller) Close(ctx context.Context, run messages.Ref, last *record.Entry, out Outbox) error {
	switch last.Head.Phase {
	case record.PhaseFinished:
		return k.closeFinished(ctx, run, last, out)
	case record.PhaseParked:
		if err := out.Flush(ctx); err != nil {
			return fmt.Errorf("%w of %s: %w", ErrUnpublished, run, err)
		}
		if err := k.awaitTurn(ctx, run, last.Head); err != nil {
			return err
		}
		if err := k.settlePermits(ctx, run, last.Head); err != nil {
			return err
		}
		if err := k.settleAsk(ctx, run, last.Head); err != nil {
			return err
		}
		if _, err := k.settleChildren(ctx, run, last.Head); err != nil {
			return err
		}
		return k.armTimer(ctx, run, last)
	case record.PhaseReady:
		if err := out.Flush(ctx); err != nil {
			return fmt.Errorf("%w of %s: %w", ErrUnpublished, run, err)
		}
		return k.wakeIfReady(ctx, run, last)
	case record.PhaseActive:
		return nil
	default:
		return nil
	}
}

func (k *Controller) closeFinished(ctx context.Context, run messages.Ref, last *record.Entry, out Outbox) error {
	n := len(last.Records)
	if n == 0 {
		return fmt.Errorf("settle %s: its end has no records", run)
	}
	end, ok := last.Records[n-1].(*record.Finished)
	if !ok {
		return fmt.Errorf("settle %s: its last record is %s", run, last.Records[n-1].Kind())
	}
	if end.Dead { // before the end is published, so that its readers find the letter
		if err := k.deadLetter(ctx, run, last, end); err != nil {
			return err
		}
	}
	if err := k.leaveSession(ctx, run, last.Head); err != nil { // before run_finished: who saw that may take the next turn at once
		return err
	}
	if err := k.releaseAll(ctx, run, last.Head); err != nil {
		return err
	}
	if err := k.EndChildren(ctx, run, last.Head, "its parent has ended"); err != nil {
		return err
	}
	unborn := last.Head.ClaimSeq == 0 // it has no ticket: its parent's owner settles it, until the parent has been told
	if !unborn {
		if err := k.tellParent(ctx, run, last.Head, end); err != nil { // before run_finished: its log may then be purged
			return err
		}
	}
	if err := out.Finish(ctx, record.FinishedEvent(run, &last.Head, end)); err != nil {
		return fmt.Errorf("%w of %s: %w", ErrUnpublished, run, err)
	}
	if unborn {
		return k.tellParent(ctx, run, last.Head, end)
	}
	return nil
}

// deadLetter puts the task of a finished run into the dead letters, as it came.
func (k *Controller) deadLetter(ctx context.Context, run messages.Ref, last *record.Entry, f *record.Finished) error {
	d := messages.Dead{Time: last.Head.Time}
	if f.Result.Error != nil {
		d.Error = *f.Result.Error
	}
	if f.Result.RetryInfo != nil {
		d.Attempts = f.Result.RetryInfo.Attempts
	}
	agent := messages.DefaultAgent
	first, err := k.first(ctx, run)
	if err != nil && !record.OpensForNone(err) { // then the letter has no task
		return err
	}
	for _, r := range first.Records {
		if s, ok := r.(*record.Started); ok {
			agent, d.Subject = s.Task.Agent, run.TaskSubject(s.Task.Priority)
			if d.Task = s.Raw; d.Task == nil {
				d.Task = s.Task.Encode()
			}
		}
	}
	if err := k.Queue.DeadLetter(ctx, run, agent, d); err != nil {
		return fmt.Errorf("dead-letter %s: %w", run, err)
	}
	return nil
}

func (k *Controller) first(ctx context.Context, run messages.Ref) (record.Entry, error) {
	return firstOf(k.Log.Read(ctx, run, 0, 1), run)
}

func firstOf(entries iter.Seq2[record.Entry, error], run messages.Ref) (record.Entry, error) {
	for e, err := range entries {
		if err != nil {
			return record.Entry{}, fmt.Errorf("read %s: %w", run, err)
		}
		return e, nil
	}
	return record.Entry{}, fmt.Errorf("read %s: %w", run, ErrNotFound)
}

// armTimer schedules the end of a park, once.
func (k *Controller) armTimer(ctx context.Context, run messages.Ref, last *record.Entry) error {
	until, err := k.until(ctx, run, *last)
	if err != nil || until == nil {
		return err
	}
	if err := k.Queue.Timer(ctx, run, last.Head.ParkSeq, *until); err != nil {
		return fmt.Errorf("schedule timer of %s: %w", run, err)
	}
	return nil
}

// until is when the current park expires; nil: never.
func (k *Controller) until(ctx context.Context, run messages.Ref, last record.Entry) (*time.Time, error) {
	p, _, err := k.Park(ctx, run, last)
	if err != nil || p == nil {
		return nil, err
	}
	return p.Until, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

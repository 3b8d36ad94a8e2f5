package batches

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// How many tasks of a batch are queued or worked at once. A budget, a cancel and an expiry stop the others for free.
	batchWindow = 1000
	// How many lines are submitted between two looks at the batch.
	batchChunk = 100
	// How many of them together.
	batchTogether = 8
	// How many batches one dispatcher moves at once.
	batchesMoved = 4
	// How often batches are looked at that have not ended: for those that another dispatcher left, and those that expire.
	defaultBatchSweep = 5 * time.Second
	// How often all that are kept are: should the store have lost its newest heads with its machine's power, others have their places.
	allBatchesEvery = 10 * time.Minute
	// How long one move may take. A move that is cut is made again.
	moveTimeout = time.Minute
)

// pump moves batches on: it submits their lines, counts their outcomes and ends them. Every dispatcher has one, and
// none owns a batch: each move rests on what is stored, its effects may be made twice, and the head takes one of two
// that were made at once.
type pump struct {
	moved chan struct{} // has an element when there is something to do

	mu      sync.Mutex
	waiting []messages.BatchRef // in turn, each once
}

func newPump() *pump { return &pump{moved: make(chan struct{}, 1)} }

// wake has a batch looked at soon.
func (p *pump) wake(ref messages.BatchRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.waiting, ref) {
		return
	}
	p.waiting = append(p.waiting, ref)
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// take is the batches that are to be looked at.
func (p *pump) take() []messages.BatchRef {
	p.mu.Lock()
	defer p.mu.Unlock()
	refs := p.waiting
	p.waiting = nil
	return refs
}

// Run moves batches until ctx ends.
func (bs *Batches) Run(ctx context.Context) {
	ticker := time.NewTicker(bs.cfg.Every)
	defer ticker.Stop()
	var seen seenBatches
	bs.wakeBatches(ctx, &seen)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			bs.wakeBatches(ctx, &seen)
		case <-bs.pump.moved:
		}
		var moving errgroup.Group
		moving.SetLimit(batchesMoved)
		for _, ref := range bs.pump.take() {
			moving.Go(func() error {
				bs.moveBatch(ctx, ref)
				return nil
			})
		}
		_ = moving.Wait()
	}
}

// seenBatches is what the pump knows of the batches that are stored. The zero value knows nothing.
type seenBatches struct {
	all   time.Time // when all were read last
	after uint64    // the sequence up to which it knows
	open  map[messages.BatchRef]bool
}

// wakeBatches has every batch looked at that has not ended, or whose webhook is still to be queued. It reads the heads that have changed
// since it was called last: most batches that are kept have ended.
func (bs *Batches) wakeBatches(ctx context.Context, seen *seenBatches) {
	if time.Since(seen.all) > allBatchesEvery {
		*seen = seenBatches{all: time.Now(), open: map[messages.BatchRef]bool{}}
	}
	for c, err := range bs.cfg.Store.Changed(ctx, seen.after) {
		if err != nil {
			if ctx.Err() == nil {
				bs.cfg.Log.WarnContext(ctx, "look for batches", "err", err)
			}
			break
		}
		seen.after = c.Seq
		switch b := c.Head; {
		case b == nil:
		case !b.Status.Ended() || b.Cursor.Tell:
			seen.open[b.BatchRef] = true
		default:
			delete(seen.open, b.BatchRef)
		}
	}
	for ref := range seen.open {
		bs.pump.wake(ref)
	}
}

// moveBatch makes one move. When that leaves more to do at once, the batch stays awake.
func (bs *Batches) moveBatch(ctx context.Context, ref messages.BatchRef) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	more, err := bs.stepBatch(ctx, ref)
	switch {
	case errors.Is(err, batches.ErrBatchMoved), errors.Is(err, batches.ErrNoBatch): // another dispatcher moves it
	case err != nil && ctx.Err() == nil:
		bs.cfg.Log.WarnContext(ctx, "move a batch", "batch", ref.ID, "err", err) // the next look continues
	case more:
		bs.pump.wake(ref)
	}
}

// stepBatch reads a batch, does what is next and stores how far it came. More reports whether there is more to do now.
func (bs *Batches) stepBatch(ctx context.Context, ref messages.BatchRef) (more bool, err error) {
	head, revision, err := bs.cfg.Store.Get(ctx, ref)
	switch {
	case err != nil:
		return false, err
	case head.Status.Ended() && head.Cursor.Tell:
		return false, bs.tellBatch(ctx, head, revision)
	case head.Status.Ended():
		return false, nil
	}
	now := bs.cfg.Now()
	if head.Status == messages.BatchValidating {
		return false, bs.giveUpAttempt(ctx, head, revision, now)
	}
	before := *head
	if err := bs.countOutcomes(ctx, head); err != nil {
		return false, err
	}
	decideStop(head, now)
	if head.Cursor.Stop != before.Cursor.Stop { // recorded before anything is given up for it
		_, err := bs.cfg.Store.Put(ctx, head, revision)
		return true, err
	}
	if head.Cursor.Stop != "" && !head.Cursor.Stopped {
		if err := bs.stopRuns(ctx, head); err != nil {
			return false, err
		}
		head.Cursor.Stopped = true
	}
	if head.Cursor.Stop == "" && head.Cursor.Held < head.Counts.Total {
		if err := bs.hold(ctx, head); err != nil {
			return false, err
		}
		if head.Cursor.Held < head.Counts.Total { // or a replica is behind: the next look finds them
			_, err := bs.cfg.Store.Put(ctx, head, revision)
			return head.Cursor.Held > before.Cursor.Held, err
		}
	}
	if more, err = bs.moveLines(ctx, head); err != nil {
		return false, err
	}
	finishBatch(head, bs.cfg.Now())
	if head.Cursor == before.Cursor && head.Status == before.Status && head.Waits == before.Waits {
		return false, nil
	}
	_, err = bs.cfg.Store.Put(ctx, head, revision)
	return more || head.Cursor.Tell, err
}

// giveUpAttempt ends a batch whose submitter never came back.
func (bs *Batches) giveUpAttempt(ctx context.Context, head *messages.Batch, revision uint64, now time.Time) error {
	if now.Sub(head.Created) < lateAttempt && now.Before(*head.ExpiresAt) {
		return nil
	}
	endBatch(head, messages.BatchExpired, now)
	head.Cursor.Submitter = ""
	head.Reason = "its lines were never all submitted, so nothing was run"
	if _, err := bs.cfg.Store.Put(ctx, head, revision); err != nil {
		return err
	}
	return bs.cfg.Store.RemoveLines(ctx, head.BatchRef)
}

// decideStop stops a batch that has expired, or has spent its budget. What is known of the spending must not be less
// than what was spent, so a run without a price stops it too.
func decideStop(b *messages.Batch, now time.Time) {
	switch {
	case b.Cursor.Stop != "" || b.Counts.Ended() == b.Counts.Total:
	case b.ExpiresAt != nil && !now.Before(*b.ExpiresAt):
		stopBatch(b, messages.BatchExpired, "expired")
	case b.MaxCost != nil && b.Cost >= *b.MaxCost:
		stopBatch(b, messages.BatchCancelled, fmt.Sprintf("budget: %s of %s are spent", messages.Money(b.Cost), messages.Money(*b.MaxCost)))
	case b.MaxCost != nil && b.Unpriced > 0:
		stopBatch(b, messages.BatchCancelled, "budget: the cost of a run is unknown")
	}
}

// moveLines submits the next lines, as far as there is room, or gives them up when the batch has stopped.
func (bs *Batches) moveLines(ctx context.Context, head *messages.Batch) (more bool, err error) {
	head.Waits = ""
	room := batchChunk
	if head.Cursor.Stop == "" {
		room = min(room, window(head)-(head.Counts.Submitted-endedRuns(head)))
	}
	if head.Cursor.Handled == head.Counts.Total || room <= 0 {
		return false, nil
	}
	lines := make([]batches.StoredLine, 0, room)
	for l, err := range bs.cfg.Store.Lines(ctx, head.BatchRef, head.Cursor.Line) {
		if err != nil {
			return false, err
		}
		if lines = append(lines, l); len(lines) == room {
			break
		}
	}
	if len(lines) == 0 {
		return false, nil // a replica is behind: the next look finds them
	}
	lines, head.Waits, err = bs.moveChunk(ctx, head, lines)
	if err != nil || len(lines) == 0 {
		return false, err
	}
	head.Cursor.Line = lines[len(lines)-1].Seq
	head.Cursor.Handled += len(lines)
	if head.Cursor.Stop == "" {
		head.Counts.Submitted += len(lines)
	} else {
		head.Cursor.GivenUp += len(lines)
	}
	return head.Cursor.Handled < head.Counts.Total && head.Waits == "", nil
}

// window is how many tasks of a batch may be on their way at once.
func window(b *messages.Batch) int {
	if b.Concurrency > 0 {
		return min(b.Concurrency, batchWindow)
	}
	return batchWindow
}

// moveChunk moves lines and returns those that are done: up to the first for which the tenant's quota has no room. Waits then
// says which limit that is. What was moved beyond it is known when it is moved again.
func (bs *Batches) moveChunk(ctx context.Context, head *messages.Batch, lines []batches.StoredLine) (done []batches.StoredLine, waits string, err error) {
	refused := make([]string, len(lines))
	var moving errgroup.Group
	moving.SetLimit(batchTogether)
	for i, l := range lines {
		moving.Go(func() error {
			err := bs.moveLine(ctx, head, l)
			if isRateLimit(err) {
				refused[i] = err.Error()
				return nil
			}
			return err
		})
	}
	if err := moving.Wait(); err != nil {
		return nil, "", err
	}
	for i, why := range refused {
		if why != "" {
			return lines[:i], why, nil
		}
	}
	return lines, "", nil
}

func isRateLimit(err error) bool {
	var p *messages.Problem
	return errors.As(err, &p) && p.Code == messages.CodeRateLimited
}

// endedRuns is how many of the submitted lines have ended.
func endedRuns(b *messages.Batch) int { return min(b.Counts.Ended(), b.Counts.Submitted) }

// moveLine submits a line or gives it up. A line that cannot be a task has failed; the error is one that may pass.
func (bs *Batches) moveLine(ctx context.Context, head *messages.Batch, stored batches.StoredLine) error {
	var l messages.BatchLine
	if err := strict.Decode(stored.Body, &l); err != nil || l.Task.ID != stored.Task || l.Task.Tenant != head.Tenant {
		l.Task.ID = stored.Task
		return bs.putGiven(ctx, head, given(&l, messages.BatchFailed, messages.CodeInvalidInput, "the stored line cannot be read"))
	}
	if head.Cursor.Stop != "" {
		return bs.giveUpLine(ctx, head, &l)
	}
	err := bs.submitLine(ctx, &l)
	if isRateLimit(err) {
		return err
	}
	var (
		field *messages.FieldError
		taken *messages.Problem
	)
	if errors.As(err, &field) || errors.As(err, &taken) { // it will not get better
		code := messages.CodeInvalidInput
		if taken != nil {
			code = taken.Code
		}
		return bs.putGiven(ctx, head, given(&l, messages.BatchFailed, code, err.Error()))
	}
	return err
}

// giveUpLine ends a line that was never submitted. The first ones may have been, by a dispatcher that was killed before
// it stored that, so they are looked for.
func (bs *Batches) giveUpLine(ctx context.Context, head *messages.Batch, l *messages.BatchLine) error {
	if head.Cursor.GivenUp < batchChunk {
		err := bs.cfg.Runs.Cancel(ctx, l.Task.Ref(), "the batch: "+head.Reason)
		if !errors.Is(err, runlog.ErrNotFound) {
			if errors.Is(err, runlog.ErrEnded) {
				return nil
			}
			return err
		}
	}
	status, code := messages.BatchCancelled, messages.CodeCancelled
	if head.Cursor.Stop == messages.BatchExpired {
		status, code = messages.BatchExpired, messages.CodeDeadline
	}
	return bs.putGiven(ctx, head, given(l, status, code, head.Reason))
}

// putGiven stores the outcome of a line without a run, and has it counted.
func (bs *Batches) putGiven(ctx context.Context, head *messages.Batch, o *messages.BatchOutcome) error {
	bs.pump.wake(head.BatchRef)
	return bs.cfg.Store.PutOutcome(ctx, head.BatchRef, o)
}

// stopRuns asks the runs of a batch that have not ended to stop.
func (bs *Batches) stopRuns(ctx context.Context, head *messages.Batch) error {
	var stopping errgroup.Group
	stopping.SetLimit(batchTogether)
	for l, err := range bs.cfg.Store.Lines(ctx, head.BatchRef, 0) {
		if err != nil {
			return errors.Join(err, stopping.Wait())
		}
		if l.Seq > head.Cursor.Line {
			break
		}
		stopping.Go(func() error { return bs.stopRun(ctx, head, l.Task) })
	}
	return stopping.Wait()
}

func (bs *Batches) stopRun(ctx context.Context, head *messages.Batch, task string) error {
	_, ended, err := bs.cfg.Store.Outcome(ctx, head.BatchRef, task)
	if err != nil || ended {
		return err
	}
	err = bs.cfg.Runs.Cancel(ctx, messages.Ref{Tenant: head.Tenant, Run: task}, "the batch: "+head.Reason)
	if errors.Is(err, runlog.ErrEnded) || errors.Is(err, runlog.ErrNotFound) {
		return nil // its end is on the way
	}
	return err
}

// finishBatch gives a batch the status that its counts mean.
func finishBatch(b *messages.Batch, now time.Time) {
	switch {
	case b.Counts.Ended() >= b.Counts.Total:
		status := messages.BatchCompleted
		if b.Cursor.Stop != "" {
			status = b.Cursor.Stop
		}
		endBatch(b, status, now)
	case b.Cursor.Stop != "" || b.Cursor.Handled == b.Counts.Total:
		b.Status = messages.BatchFinalizing
	default:
		b.Status = messages.BatchInProgress
	}
}

// endBatch gives a batch its last status. Its webhook is queued after that is stored: a dispatcher that is killed in between
// leaves a batch that says so.
func endBatch(b *messages.Batch, status messages.BatchStatus, now time.Time) {
	b.Status, b.Ended, b.Cursor.Tell = status, &now, b.Webhook != nil
}

// Package batches answers the requests about batches, and moves them on.
package batches

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/admission"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what Batches works with.
type Config struct {
	Store     *batches.Store
	Queue     *taskqueue.Queue
	Runs      *runs.Runs
	Admission *admission.Admission
	Webhooks  *webhooks.Webhooks
	Now       func() time.Time
	Log       *slog.Logger

	Every time.Duration // between two looks at all batches; default 5 s
}

// Batches answers the requests about batches, and moves them on.
type Batches struct {
	cfg  Config
	pump *pump
}

// New returns Batches.
func New(cfg Config) *Batches {
	if cfg.Every == 0 {
		cfg.Every = defaultBatchSweep
	}
	return &Batches{cfg: cfg, pump: newPump()}
}

// Handlers are the requests about batches.
func (bs *Batches) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectBatchOpen:   request.Read(bs.openBatch),
		control.SubjectBatchSeal:   request.Read(bs.sealBatch),
		control.SubjectBatchStatus: bs.batchStatus,
		control.SubjectBatchList:   request.Read(bs.batchList),
		control.SubjectBatchCancel: request.Read(bs.cancelBatch),
	}
}

// maxBatchMoves bounds how often a change of a batch races with another.
const maxBatchMoves = 10

// maxBatchList is how many batches one answer holds, without the errors of their lines.
const maxBatchList = 200

// changeBatch changes the head of a batch; change answers false when there is nothing to do. A new batch has no
// created time. It is called again when another dispatcher was faster.
func (bs *Batches) changeBatch(ctx context.Context, ref messages.BatchRef, fresh bool, change func(*messages.Batch) (bool, error)) (*messages.Batch, error) {
	for range maxBatchMoves {
		head, revision, err := bs.cfg.Store.Get(ctx, ref)
		if errors.Is(err, batches.ErrNoBatch) && fresh {
			head, revision, err = &messages.Batch{BatchRef: ref}, 0, nil
		}
		if err != nil {
			return nil, err
		}
		changed, err := change(head)
		if err != nil || !changed {
			return head, err
		}
		_, err = bs.cfg.Store.Put(ctx, head, revision)
		if errors.Is(err, batches.ErrBatchMoved) {
			continue
		}
		return head, err
	}
	return nil, fmt.Errorf("change batch %s: other clients keep changing it; try again", ref)
}

// openBatch begins a batch or an attempt to continue with one. A batch whose lines are all there is returned as it is.
func (bs *Batches) openBatch(ctx context.Context, req control.BatchOpen) (any, error) {
	now := bs.cfg.Now()
	if err := errors.Join(req.BatchRef.Check(), req.BatchSettings.Check(now), bs.cfg.Webhooks.Check(req.Webhook)); err != nil {
		return nil, err
	}
	if !strict.ValidToken(req.Submitter) {
		return nil, &messages.FieldError{Field: "submitter", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
	}
	return bs.changeBatch(ctx, req.BatchRef, true, func(b *messages.Batch) (bool, error) {
		if b.Cursor.Digest != "" && b.Status != messages.BatchFailed { // its lines are all there
			return false, nil
		}
		if b.Status.Ended() && b.Status != messages.BatchFailed {
			return false, request.Conflict("id: batch " + b.ID + " is " + string(b.Status) + "; take another")
		}
		if b.Created.IsZero() {
			b.Created = now
		}
		b.BatchSettings = req.BatchSettings
		if b.ExpiresAt == nil {
			at := b.Created.Add(messages.DefaultBatchExpiry)
			b.ExpiresAt = &at
		}
		b.Status, b.Reason, b.Ended, b.Errors = messages.BatchValidating, "", nil, nil
		b.Counts, b.Cursor = messages.BatchCounts{}, messages.BatchCursor{Submitter: req.Submitter}
		return true, nil
	})
}

// whyNothing says why nothing of a batch was run, and what to do.
func whyNothing(valid, invalid int) string {
	what := fmt.Sprintf("%d of %d lines are invalid", invalid, valid+invalid)
	switch {
	case valid == 0 && invalid == 1:
		what = "its only line is invalid"
	case invalid == 1:
		what = fmt.Sprintf("1 of %d lines is invalid", valid+1)
	}
	what += ", so nothing was run: correct the lines and submit the batch again"
	if valid > 0 {
		what += ", or skip the invalid ones"
	}
	return what
}

// sealBatch begins to run a batch whose lines are all stored, or ends one with wrong lines.
func (bs *Batches) sealBatch(ctx context.Context, req control.BatchSeal) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	switch {
	case req.Lines < 0 || req.Invalid < 0 || req.Lines+req.Invalid > messages.MaxBatchLines || len(req.Errors) > messages.MaxBatchErrors:
		return nil, &messages.FieldError{Field: "lines", Reason: fmt.Sprintf("must be 0 to %d", messages.MaxBatchLines)}
	case req.Lines+req.Invalid == 0:
		return nil, &messages.FieldError{Field: "lines", Reason: "are none"}
	case !strict.ValidToken(req.Digest):
		return nil, &messages.FieldError{Field: "digest", Reason: "must be one token"}
	}
	stored, err := bs.cfg.Store.CountLines(ctx, req.BatchRef, req.Lines)
	if err != nil {
		return nil, err
	}
	head, err := bs.changeBatch(ctx, req.BatchRef, false, func(b *messages.Batch) (bool, error) {
		switch {
		case b.Cursor.Digest == req.Digest && b.Counts.Total == req.Lines:
			return false, nil // the same lines were submitted before
		case b.Cursor.Digest != "":
			return false, request.Conflict(fmt.Sprintf("id: batch %s was submitted with %d other lines; take another id", b.ID, b.Counts.Total))
		case b.Status != messages.BatchValidating:
			return false, request.Conflict("batch " + b.ID + " is " + string(b.Status))
		case b.Cursor.Submitter != req.Submitter:
			return false, request.Conflict("batch " + b.ID + " is submitted by another client")
		}
		now := bs.cfg.Now()
		b.Counts = messages.BatchCounts{Total: req.Lines, Invalid: req.Invalid}
		b.Errors = req.Errors
		if req.Invalid > 0 && !b.SkipInvalid || req.Lines == 0 {
			endBatch(b, messages.BatchFailed, now)
			b.Reason = whyNothing(req.Lines, req.Invalid)
			return true, nil
		}
		if stored != req.Lines {
			return false, request.Conflict(fmt.Sprintf("batch %s holds %d lines, not %d: another client submits it too", b.ID, stored, req.Lines))
		}
		b.Status, b.Began, b.Cursor.Digest = messages.BatchInProgress, &now, req.Digest
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	bs.pump.wake(req.BatchRef)
	return head, nil
}

// batchStatus is the head with the outcomes that are not in it yet.
func (bs *Batches) batchStatus(ctx context.Context, body []byte) (any, error) {
	ref, err := batchOf(body)
	if err != nil {
		return nil, err
	}
	head, _, err := bs.cfg.Store.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := bs.countOutcomes(ctx, head); err != nil {
		return nil, err
	}
	head.SecondsTo = head.Estimate(bs.cfg.Now())
	return head, nil
}

// countOutcomes adds the outcomes that came after those in the counts.
func (bs *Batches) countOutcomes(ctx context.Context, head *messages.Batch) error {
	if head.Cursor.Digest == "" || head.Status.Ended() {
		return nil
	}
	for o, err := range bs.cfg.Store.Outcomes(ctx, head.BatchRef, head.Cursor.Outcome) {
		if err != nil {
			return err
		}
		head.Count(&o.BatchOutcome)
		head.Cursor.Outcome = o.Seq
	}
	return nil
}

// batchList is what heads say; the newest outcomes are not in it.
func (bs *Batches) batchList(ctx context.Context, req control.BatchListRequest) (any, error) {
	if req.Tenant == "" {
		req.Tenant = messages.DefaultTenant
	}
	if err := (messages.BatchRef{Tenant: req.Tenant, ID: "-"}).Check(); err != nil {
		return nil, err
	}
	if req.Limit < 0 || req.Limit > maxBatchList {
		return nil, &messages.FieldError{Field: "limit", Reason: fmt.Sprintf("must be 1 to %d", maxBatchList)}
	}
	if req.Limit == 0 {
		req.Limit = maxBatchList
	}
	list := control.BatchList{Batches: []messages.Batch{}}
	now := bs.cfg.Now()
	for b, err := range bs.cfg.Store.List(ctx, req.Tenant) {
		if err != nil {
			return nil, err
		}
		b.Errors, b.SecondsTo = nil, b.Estimate(now)
		list.Batches = append(list.Batches, *b)
		if len(list.Batches) > 2*req.Limit {
			newest(&list, req.Limit)
		}
	}
	newest(&list, req.Limit)
	return list, nil
}

// newest leaves only the newest batches.
func newest(list *control.BatchList, limit int) {
	slices.SortFunc(list.Batches, func(a, b messages.Batch) int {
		if c := b.Created.Compare(a.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	if len(list.Batches) > limit {
		list.Batches, list.More = list.Batches[:limit], true
	}
}

// cancelBatch records that a batch is to stop. The pump does it.
func (bs *Batches) cancelBatch(ctx context.Context, req control.CancelRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Batch()
	if err != nil {
		return nil, err
	}
	if len(req.Reason) > runs.MaxCancelText || len(req.By) > runs.MaxCancelText {
		return nil, &messages.FieldError{Field: "reason", Reason: "is too long"}
	}
	head, err := bs.changeBatch(ctx, ref, false, func(b *messages.Batch) (bool, error) {
		switch {
		case b.Status.Ended():
			return false, request.Conflict("batch " + b.ID + " is " + string(b.Status))
		case b.Status == messages.BatchValidating:
			now := bs.cfg.Now()
			endBatch(b, messages.BatchCancelled, now)
			b.Cursor.Submitter = ""
		case b.Cursor.Stop != "":
			return false, nil
		}
		stopBatch(b, messages.BatchCancelled, strings.TrimSpace("cancelled "+req.Reason))
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if head.Status == messages.BatchCancelled { // it was validating
		if err := bs.cfg.Store.RemoveLines(ctx, ref); err != nil {
			return nil, err
		}
	}
	bs.pump.wake(ref)
	return head, nil
}

// stopBatch has no more lines begun.
func stopBatch(b *messages.Batch, as messages.BatchStatus, why string) {
	b.Cursor.Stop, b.Reason = as, why
}

func batchOf(body []byte) (messages.BatchRef, error) {
	var req control.RunRequest
	if err := strict.Decode(body, &req); err != nil {
		return messages.BatchRef{}, err
	}
	return req.Batch()
}

// RunEnded stores how the line of a run ended; a run that has no line does not belong to a batch.
func (bs *Batches) RunEnded(ctx context.Context, ref messages.BatchRef, r *messages.AgentResult) error {
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	line, ok, err := bs.cfg.Store.Line(ctx, ref, r.ID)
	if err != nil || !ok {
		return err
	}
	o := messages.OutcomeOf(line, r)
	if err := bs.cfg.Store.PutOutcome(ctx, ref, &o); err != nil {
		return err
	}
	bs.pump.wake(ref)
	return nil
}

// given is the outcome of a line that was never submitted.
func given(l *messages.BatchLine, status messages.BatchStatus, code messages.Code, why string) *messages.BatchOutcome {
	return &messages.BatchOutcome{
		CustomID: l.CustomID, Line: l.Line, Task: l.Task.ID, Status: status, Error: &messages.RunError{Message: why, Code: code},
	}
}

// submitLine makes a line a task. That it has become one before is a success.
func (bs *Batches) submitLine(ctx context.Context, l *messages.BatchLine) error {
	if err := bs.cfg.Webhooks.Check(l.Task.Webhook); err != nil {
		return err
	}
	if _, err := bs.cfg.Admission.Admit(ctx, l.Task.Ref()); err != nil {
		return err
	}
	if err := bs.cfg.Admission.Keep(ctx, &l.Task); err != nil {
		return err
	}
	duplicate, err := bs.cfg.Queue.Submit(ctx, &l.Task, false)
	if err != nil || !duplicate {
		return err
	}
	err = bs.cfg.Admission.Same(ctx, l.Task.Ref(), l.Task.Fingerprint())
	if errors.Is(err, runlog.ErrNotFound) {
		return nil // it has come and gone
	}
	return err
}

// lateAttempt is how long a batch whose lines are not all there may be left alone before it expires.
const lateAttempt = 24 * time.Hour

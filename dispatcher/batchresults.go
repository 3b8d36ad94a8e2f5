package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/strict"
)

// BatchOrder is the order of results.
type BatchOrder string

// Orders of results.
const (
	ByInput      BatchOrder = "input"
	ByCompletion BatchOrder = "completion"
)

// How many lines are looked up together.
const (
	resultsTogether = 16
	resultsPage     = 64
)

// Results yields how the lines of a batch ended, as far as they have: each custom_id once. A text that is
// shortened is read whole from its run, as long as that is kept.
func (of Batches) Results(ctx context.Context, ref messages.BatchRef, order BatchOrder) iter.Seq2[*messages.BatchOutcome, error] {
	return func(yield func(*messages.BatchOutcome, error) bool) {
		if err := ref.Check(); err != nil {
			yield(nil, err)
			return
		}
		if of.client.remote != nil {
			of.client.remote.batchResults(ctx, ref, order)(yield)
			return
		}
		outcomes := of.client.byCompletion(ctx, ref)
		if order != ByCompletion {
			outcomes = of.client.byInput(ctx, ref)
		}
		for o, err := range outcomes {
			if err != nil {
				yield(nil, fmt.Errorf("read the results of batch %s: %w", ref.ID, err))
				return
			}
			of.client.whole(ctx, ref, o)
			if !yield(o, nil) {
				return
			}
		}
	}
}

// whole gives a shortened outcome its text back, if it can.
func (c *Client) whole(ctx context.Context, ref messages.BatchRef, o *messages.BatchOutcome) {
	if o.Result == nil || !o.Result.Truncated {
		return
	}
	r, err := c.Result(ctx, messages.Ref{Tenant: ref.Tenant, Run: o.Task})
	if err != nil {
		return // it says that it is shortened
	}
	o.Result.Text, o.Result.Truncated = r.Result, false
}

func (c *Client) byCompletion(ctx context.Context, ref messages.BatchRef) iter.Seq2[*messages.BatchOutcome, error] {
	return func(yield func(*messages.BatchOutcome, error) bool) {
		for o, err := range c.batches.Outcomes(ctx, ref, 0) {
			if !yield(&o.BatchOutcome, err) || err != nil {
				return
			}
		}
	}
}

func (c *Client) byInput(ctx context.Context, ref messages.BatchRef) iter.Seq2[*messages.BatchOutcome, error] {
	return func(yield func(*messages.BatchOutcome, error) bool) {
		for l, err := range c.endedLines(ctx, ref) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(l.outcome, nil) {
				return
			}
		}
	}
}

// endedLine is a line with how it ended.
type endedLine struct {
	batches.StoredLine
	outcome *messages.BatchOutcome
}

// endedLines yields the lines that have ended, in the order of the input.
func (c *Client) endedLines(ctx context.Context, ref messages.BatchRef) iter.Seq2[endedLine, error] {
	return func(yield func(endedLine, error) bool) {
		page := make([]endedLine, 0, resultsPage)
		give := func() bool {
			err := c.lookUp(ctx, ref, page)
			for _, l := range page {
				if err == nil && l.outcome != nil && !yield(l, nil) {
					return false
				}
			}
			page = page[:0]
			return err == nil || yield(endedLine{}, err) && false
		}
		for l, err := range c.batches.Lines(ctx, ref, 0) {
			if err != nil {
				yield(endedLine{}, err)
				return
			}
			if page = append(page, endedLine{StoredLine: l}); len(page) == resultsPage && !give() {
				return
			}
		}
		give()
	}
}

// lookUp finds how lines ended.
func (c *Client) lookUp(ctx context.Context, ref messages.BatchRef, page []endedLine) error {
	looking, ctx := errgroup.WithContext(ctx)
	looking.SetLimit(resultsTogether)
	for i := range page {
		looking.Go(func() (err error) {
			page[i].outcome, _, err = c.batches.Outcome(ctx, ref, page[i].Task)
			return err
		})
	}
	return looking.Wait()
}

// Retry submits the lines of a batch again, as another batch: those that failed and, unless failedOnly, those
// that were cancelled or have expired. ErrNotEnded: the batch is still running. With an id in spec a retry that was cut can be
// made again. Unless spec says otherwise it has the concurrency of the first one.
func (of Batches) Retry(ctx context.Context, from messages.BatchRef, spec BatchSpec, failedOnly bool) (*messages.Batch, error) {
	if of.client.remote != nil {
		return of.client.retried(ctx, from, &spec, failedOnly)
	}
	head, err := of.client.Batches().Get(ctx, from)
	if err != nil {
		return nil, err
	}
	if !head.Status.Ended() {
		return nil, fmt.Errorf("retry batch %s: %w", from.ID, ErrNotEnded)
	}
	if spec.Tenant == "" {
		spec.Tenant = from.Tenant
	}
	if spec.BatchRef == from || spec.Template != nil || spec.Tenant != from.Tenant {
		return nil, &messages.FieldError{Field: "id", Reason: "must be that of another batch of the same tenant, without a template"}
	}
	if spec.Concurrency == 0 {
		spec.Concurrency = head.Concurrency
	}
	lines := of.client.again(ctx, from, failedOnly)
	if !hasAny(lines) {
		return nil, &messages.FieldError{Field: "id", Reason: "batch " + from.ID + " has no line to try again"}
	}
	return of.client.Batches().Submit(ctx, spec, lines)
}

// hasAny reports whether there is a line, or an error in its place.
func hasAny(lines iter.Seq2[Line, error]) bool {
	next, stop := iter.Pull2(lines)
	defer stop()
	_, _, ok := next()
	return ok
}

// again yields the lines of a batch that are to be made again, as they would stand in a file.
func (c *Client) again(ctx context.Context, from messages.BatchRef, failedOnly bool) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for l, err := range c.endedLines(ctx, from) {
			if err != nil {
				yield(Line{}, err)
				return
			}
			if s := l.outcome.Status; s == messages.BatchCompleted || failedOnly && s != messages.BatchFailed {
				continue
			}
			line, err := asWritten(l.Body)
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// asWritten is a stored line as it would stand in a file.
func asWritten(stored []byte) (Line, error) {
	var l messages.BatchLine
	if err := strict.Decode(stored, &l); err != nil {
		return Line{}, fmt.Errorf("read a stored line: %w", err)
	}
	l.Task.ID = ""
	delete(l.Task.Labels, messages.LabelBatch)
	data, err := json.Marshal(struct {
		CustomID string `json:"custom_id"`
		messages.Task
	}{l.CustomID, l.Task})
	if err != nil {
		return Line{}, fmt.Errorf("encode a line: %w", err)
	}
	return Line{Number: l.Line, Data: data}, nil
}

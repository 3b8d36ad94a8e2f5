package dispatcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// mediaLines is the media type of lines of JSON.
const mediaLines = "application/x-ndjson"

// BatchReport is a line of the answer to a batch over HTTP. Lines with an error come first, as lines are read; the last line has
// the batch, the check of a dry run, or the problem that ended the submission.
type BatchReport struct {
	Error   *messages.LineError `json:"error,omitempty"`
	Batch   *messages.Batch     `json:"batch,omitempty"`
	Check   *BatchCheck         `json:"check,omitempty"`
	Problem *messages.Problem   `json:"problem,omitempty"`
}

// batch posts the lines of a batch, and hears what becomes of them meanwhile.
func (r *remote) batch(ctx context.Context, spec *BatchSpec, lines iter.Seq2[Line, error], dry bool) (*BatchReport, error) {
	query := url.Values{"id": {spec.ID}}
	set(query, "name", spec.Name)
	if spec.MaxCost != nil {
		query.Set("maxCost", strconv.FormatFloat(*spec.MaxCost, 'g', -1, 64))
	}
	if spec.Concurrency > 0 {
		query.Set("concurrency", strconv.Itoa(spec.Concurrency))
	}
	if spec.ExpiresAt != nil {
		query.Set("expires", time.Until(*spec.ExpiresAt).Round(time.Second).String())
	}
	if spec.SkipInvalid {
		query.Set("skipInvalid", "true")
	}
	if dry {
		query.Set("dryRun", "true")
	}
	if spec.Webhook != nil {
		query.Set("webhook", spec.Webhook.URL)
		set(query, "webhookEvents", strings.Join(spec.Webhook.Events, ","))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from, to := io.Pipe()
	var writing sync.WaitGroup
	writing.Go(func() {
		err := writeLines(to, spec, lines)
		_ = to.CloseWithError(err)
		if err != nil {
			cancel(err)
		}
	})
	defer writing.Wait()
	defer from.Close() // one that still writes is let go
	resp, err := r.do(ctx, call{method: http.MethodPost, path: "/v1/batches", tenant: spec.Tenant, query: query, stream: from, media: mediaLines})
	if err != nil {
		return nil, meaning(control.Of(control.SubjectBatchOpen), err)
	}
	defer func() { _ = resp.Body.Close() }()
	for answers := json.NewDecoder(bufio.NewReader(resp.Body)); ; {
		var report BatchReport
		if err := answers.Decode(&report); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("read the answer to batch %s: %w", spec.ID, err)
		}
		switch {
		case report.Problem != nil:
			return nil, meaning(control.Of(control.SubjectBatchOpen), report.Problem)
		case report.Error == nil:
			return &report, nil
		case spec.Refused != nil:
			spec.Refused(report.Error)
		}
	}
}

// writeLines writes the lines of a batch, each where it stands in its file.
func writeLines(to io.Writer, spec *BatchSpec, lines iter.Seq2[Line, error]) error {
	out := bufio.NewWriter(to)
	at := 1
	for l, err := range lines {
		if err != nil {
			return fmt.Errorf("read the lines: %w", err)
		}
		for ; at < l.Number; at++ {
			_ = out.WriteByte('\n') // an error stays until Flush
		}
		data := l.Data
		if l.Long { // as long as it must be to be refused
			data = []byte(strings.Repeat(" ", messages.MaxBatchLine) + "{}")
		} else if spec.Template != nil {
			if data, err = filledIn(spec, l.Data); err != nil {
				data = l.Data // the dispatcher says what is wrong with it
			}
		}
		_, _ = out.Write(data)
		if spec.Progress != nil {
			spec.Progress(l.Number)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("send the lines: %w", err)
	}
	return nil
}

// filledIn is a line with the task that the template makes of it.
func filledIn(spec *BatchSpec, data []byte) ([]byte, error) {
	customID, task, err := messages.DecodeBatchLine(spec.BatchRef, data, spec.Template)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(messages.BatchLine{CustomID: customID, Task: *task})
	if err != nil {
		return nil, fmt.Errorf("encode a line: %w", err)
	}
	l, err := asWritten(body)
	return l.Data, err
}

// submitBatch is SubmitBatch over HTTP.
func (r *remote) submitBatch(ctx context.Context, spec *BatchSpec, lines iter.Seq2[Line, error]) (*messages.Batch, error) {
	report, err := r.batch(ctx, spec, lines, false)
	switch {
	case err != nil:
		return &messages.Batch{BatchRef: spec.BatchRef}, fmt.Errorf("submit batch %s: %w", spec.ID, err)
	case report.Batch == nil:
		return nil, fmt.Errorf("submit batch %s: the answer has no batch", spec.ID)
	case report.Batch.Status == messages.BatchFailed:
		return report.Batch, ErrBatchInvalid
	default:
		return report.Batch, nil
	}
}

// checkBatch is CheckBatch over HTTP.
func (r *remote) checkBatch(ctx context.Context, spec *BatchSpec, lines iter.Seq2[Line, error]) (*BatchCheck, error) {
	report, err := r.batch(ctx, spec, lines, true)
	switch {
	case err != nil:
		return nil, err
	case report.Check == nil:
		return nil, errors.New("the answer to the dry run has no check")
	default:
		return report.Check, nil
	}
}

// batchResults is BatchResults over HTTP.
func (r *remote) batchResults(ctx context.Context, ref messages.BatchRef, order BatchOrder) iter.Seq2[*messages.BatchOutcome, error] {
	return func(yield func(*messages.BatchOutcome, error) bool) {
		query := url.Values{}
		set(query, "order", string(order))
		resp, err := r.do(ctx, call{method: http.MethodGet, path: "/v1/batches/" + url.PathEscape(ref.ID) + "/results", tenant: ref.Tenant, query: query})
		if err != nil {
			yield(nil, meaning(control.Of(control.SubjectBatchStatus), err))
			return
		}
		defer func() { _ = resp.Body.Close() }()
		for answers := json.NewDecoder(bufio.NewReader(resp.Body)); ; {
			o := new(messages.BatchOutcome)
			err := answers.Decode(o)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, fmt.Errorf("read the results of batch %s: %w", ref.ID, err))
				return
			case !yield(o, nil):
				return
			}
		}
	}
}

// retried is Retry over HTTP.
func (c *Client) retried(ctx context.Context, from messages.BatchRef, spec *BatchSpec, failedOnly bool) (*messages.Batch, error) {
	if spec.BatchSettings != (messages.BatchSettings{}) { // the API has no place for them
		return nil, fmt.Errorf("retry with other settings: %w", ErrOverHTTP)
	}
	var b messages.Batch
	req := control.RetryRequest{Tenant: from.Tenant, Batch: from.ID, BatchRetry: control.BatchRetry{ID: spec.ID, Failed: failedOnly}}
	if err := c.Call(ctx, control.ByID("retryBatch"), req, &b); err != nil {
		return nil, err
	}
	return &b, nil
}

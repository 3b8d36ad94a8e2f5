package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const (
	mediaLines = "application/x-ndjson"
	// The whole body of a batch.
	maxBatchBody = 4 << 30
	// How many wrong lines one answer names.
	maxReported = 1000
)

// submitBatch reads the lines of a batch from the body, and reports on them meanwhile.
func submitBatch(w http.ResponseWriter, q *query) error {
	spec, dry, err := q.batchSpec()
	if err != nil {
		return err
	}
	if err := q.wantsLines(); err != nil {
		return err
	}
	ctx, stop := q.api.untilDrain(q.r.Context())
	defer stop()
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // so that a report may begin before the body ends; HTTP/2 always is
	if q.r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // of a body that was not read to its end nothing is left in the way
	}
	defer q.body.answered(w, q.r)
	out := &lines{w: w, rc: rc}
	reported := 0
	spec.Refused = func(e *messages.LineError) {
		if reported++; reported <= maxReported {
			_ = out.write(dispatcher.BatchReport{Error: e}) // who does not listen still submits
		}
	}
	body := dispatcher.ReadLines(http.MaxBytesReader(w, q.body, maxBatchBody))
	var last dispatcher.BatchReport
	if dry {
		spec.Estimate = true
		last.Check, err = q.api.cfg.Client.Batches().Check(ctx, spec, body)
	} else {
		last.Batch, err = q.api.cfg.Client.Batches().Submit(ctx, spec, body)
	}
	if err != nil && !errors.Is(err, dispatcher.ErrBatchInvalid) {
		if !out.began {
			return err
		}
		last.Problem = q.problemOf(err)
	}
	_ = out.write(last)
	return nil
}

// batchSpec reads what a batch is to be from the parameters.
func (q *query) batchSpec() (spec dispatcher.BatchSpec, dry bool, err error) {
	if spec.Tenant, err = q.tenant(); err != nil {
		return spec, false, err
	}
	spec.ID, spec.Name = q.text("id"), q.text("name")
	if v := q.text("maxCost"); v != "" {
		usd, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return spec, false, &messages.FieldError{Field: "maxCost", Reason: "must be a number of US dollars"}
		}
		spec.MaxCost = &usd
	}
	within, err := q.duration("expires", messages.MaxBatchExpiry)
	if err != nil {
		return spec, false, err
	}
	if within > 0 {
		at := time.Now().UTC().Add(within)
		spec.ExpiresAt = &at
	}
	if spec.SkipInvalid, err = q.flag("skipInvalid"); err != nil {
		return spec, false, err
	}
	if v := q.text("concurrency"); v != "" {
		if spec.Concurrency, err = strconv.Atoi(v); err != nil || spec.Concurrency < 1 { // how many at most, Check says
			return spec, false, &messages.FieldError{Field: "concurrency", Reason: "must be a number of tasks, 1 at least"}
		}
	}
	if address := q.text("webhook"); address != "" {
		spec.Webhook = &messages.Webhook{URL: address, Events: q.list("webhookEvents")}
	}
	dry, err = q.flag("dryRun")
	return spec, dry, err
}

func (q *query) flag(name string) (bool, error) {
	switch q.text(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, &messages.FieldError{Field: name, Reason: "must be true or false"}
	}
}

// wantsLines refuses a body that says it is something else than lines of JSON.
func (q *query) wantsLines() error {
	ct := q.r.Header.Get("Content-Type")
	if ct == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(ct)
	switch media {
	case mediaLines, "application/jsonl", "application/json", "text/plain", "application/octet-stream",
		"application/x-www-form-urlencoded": // what curl says
		if err == nil {
			return nil
		}
	}
	return problemf(http.StatusUnsupportedMediaType, messages.CodeInvalidInput, "the body must be "+mediaLines)
}

// lines writes an answer of one JSON value a line.
type lines struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	began bool
}

func (l *lines) write(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	if !l.began {
		l.began = true
		l.w.Header().Set("Content-Type", mediaLines)
		l.w.Header().Set("Cache-Control", "no-store")
		l.w.WriteHeader(http.StatusOK)
	}
	if err := l.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("write a line: %w", err)
	}
	if _, err := l.w.Write(append(body, '\n')); err != nil {
		return fmt.Errorf("write a line: %w", err)
	}
	return nil
}

// batch is the batch of the path.
func (q *query) batch() (messages.BatchRef, error) {
	t, err := q.tenant()
	if err != nil {
		return messages.BatchRef{}, err
	}
	ref := messages.BatchRef{Tenant: t, ID: q.r.PathValue("id")}
	return ref, ref.Check()
}

func retryBatch(ctx context.Context, q *query, r control.RetryRequest) (any, error) {
	ref := messages.BatchRef{Tenant: r.Tenant, ID: r.Batch}
	if err := ref.Check(); err != nil {
		return nil, err
	}
	ctx, stop := q.api.untilDrain(ctx)
	defer stop()
	spec := dispatcher.BatchSpec{BatchRef: messages.BatchRef{Tenant: ref.Tenant, ID: r.ID}}
	return q.api.cfg.Client.Batches().Retry(ctx, ref, spec, r.Failed)
}

// batchResults streams how the lines of a batch ended.
func batchResults(w http.ResponseWriter, q *query) error {
	ref, err := q.batch()
	if err != nil {
		return err
	}
	order := dispatcher.BatchOrder(q.text("order"))
	if order != "" && order != dispatcher.ByInput && order != dispatcher.ByCompletion {
		return &messages.FieldError{Field: "order", Reason: "must be input or completion"}
	}
	wanted := map[messages.BatchStatus]bool{}
	for _, s := range q.list("status") {
		switch st := messages.BatchStatus(s); st {
		case messages.BatchCompleted, messages.BatchFailed, messages.BatchCancelled, messages.BatchExpired:
			wanted[st] = true
		default:
			return &messages.FieldError{Field: "status", Reason: "must be completed, failed, cancelled or expired"}
		}
	}
	ctx, stop := q.api.untilDrain(q.r.Context())
	defer stop()
	lookup, cancel := context.WithTimeout(ctx, requestTimeout)
	_, err = q.api.cfg.Client.Batches().Get(lookup, ref)
	cancel()
	if err != nil {
		return err
	}
	out := &lines{w: w, rc: http.NewResponseController(w)}
	for o, err := range q.api.cfg.Client.Batches().Results(ctx, ref, order) {
		if err != nil && !out.began {
			return err
		}
		if err != nil { // an answer that ends as if it were whole would be a lie
			panic(http.ErrAbortHandler)
		}
		if len(wanted) > 0 && !wanted[o.Status] {
			continue
		}
		if out.write(o) != nil {
			return nil
		}
	}
	if !out.began {
		w.Header().Set("Content-Type", mediaLines)
		w.WriteHeader(http.StatusOK)
	}
	return nil
}

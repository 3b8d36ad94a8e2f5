package runs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// result answers with the result of a run that has ended.
func (rs *Runs) result(ctx context.Context, req control.ResultRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	r, err := rs.ended(ctx, ref, time.Duration(req.Wait))
	if err != nil {
		return nil, err
	}
	if r, err = rs.withFiles(ctx, ref, r); err != nil {
		return nil, err
	}
	room := rs.cfg.Room.Beside(resultRoom)
	switch {
	case req.Format == control.FormatTaskResult:
		return rs.taskResult(ctx, ref, r, room)
	case !req.Transcript:
		return fitting(r, room), nil
	}
	after, err := messages.ParseTranscriptPlace(req.After)
	if err != nil {
		return nil, err
	}
	r = fitting(r, room/2)
	r.Transcript, err = rs.transcript(ctx, ref, after, min(request.MaxPageBytes, room/2))
	return r, err
}

// taskResult is a result in short, with the log entries that are stored, in room bytes.
func (rs *Runs) taskResult(ctx context.Context, ref messages.Ref, r *messages.AgentResult, room int) (any, error) {
	var logs []logentry.LogEntry
	for e, err := range rs.cfg.Logs.Read(ctx, ref, logentries.Query{}) {
		if err != nil {
			return nil, err
		}
		logs = append(logs, e.LogEntry)
	}
	t := control.NewTaskResult(r, logs)
	t.Fit(room)
	return t, nil
}

// ResultOf is the result in the last entry of a run that has ended.
func (rs *Runs) ResultOf(ctx context.Context, ref messages.Ref, last record.Entry) (*messages.AgentResult, error) {
	for e, err := range rs.cfg.Controller.Log.Read(ctx, ref, last.Seq-1, last.Seq) {
		if err != nil {
			return nil, err
		}
		return resultIn(&e)
	}
	return nil, runlog.ErrNotFound // purged meanwhile
}

// resultIn is the result in an entry that ends its run.
func resultIn(e *record.Entry) (*messages.AgentResult, error) {
	if n := len(e.Records); n > 0 {
		if f, ok := e.Records[n-1].(*record.Finished); ok {
			return &f.Result, nil
		}
	}
	return nil, runlog.ErrNotFound
}

// fitting is a result that can be sent, in room bytes: without its details if they are too much for one message, and then
// with the beginning of its texts. The run's log has the whole, and is read in pages.
func fitting(r *messages.AgentResult, room int) *messages.AgentResult {
	fits := func(r *messages.AgentResult) bool {
		body, err := json.Marshal(r)
		return err != nil || len(body) <= room
	}
	if fits(r) {
		return r
	}
	short := *r
	short.Actions, short.ModelCalls, short.Truncated = nil, nil, true
	if short.Files != nil {
		files := *short.Files
		files.List, short.Files = nil, &files
	}
	if fits(&short) {
		return &short
	}
	most := room / shortTexts / len(`\u0000`)
	if text, ok := short.Result.(string); ok {
		short.Result = strict.Clip(text, most)
	}
	short.Summary, short.Outputs, short.Attachments, short.Output = strict.Clip(short.Summary, most), nil, nil, nil
	if short.Error != nil {
		e := *short.Error
		e.Message = strict.Clip(e.Message, most)
		short.Error = &e
	}
	return &short
}

const (
	resultRoom = 1 << 10 // beside the texts of a result
	shortTexts = 4       // of a result, which may be of any length
)

// transcript is a page of what was said in a run after a position, in room bytes.
func (rs *Runs) transcript(ctx context.Context, ref messages.Ref, after messages.TranscriptPlace, room int) (*messages.Transcript, error) {
	page := &messages.Transcript{Messages: []messages.TranscriptMessage{}}
	from := after.Seq
	if from > 0 {
		from-- // the rest of that entry
	}
	most := room / 4 // so that a long message does not make a page of its own
	for e, err := range rs.cfg.Controller.Log.Read(ctx, ref, from, runlog.Tail) {
		if err != nil {
			return nil, err
		}
		for at, m := range record.Said(&e) {
			if at.Seq == after.Seq && at.N <= after.N {
				continue
			}
			m.Fit(most)
			body, err := json.Marshal(m)
			if err != nil {
				return nil, err
			}
			if room -= len(body) + len(","); room < 0 {
				page.Next = page.Messages[len(page.Messages)-1].At
				return page, nil
			}
			page.Messages = append(page.Messages, m)
		}
	}
	return page, nil
}

// Package feedback keeps what people think of runs.
package feedback

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is what Feedback works with.
type Config struct {
	Events *events.Store
	Runs   *runs.Runs
	Log    runlog.Log
	Now    func() time.Time
	NewID  func() string
	Room   request.Room
}

// Feedback keeps what people think of runs.
type Feedback struct{ cfg Config }

// New returns a Feedback.
func New(cfg Config) *Feedback { return &Feedback{cfg} }

// Handlers are the requests about feedback.
func (fb *Feedback) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectFeedback:     request.Read(fb.feedback),
		control.SubjectFeedbackList: fb.feedbackList,
	}
}

// feedback stores what a person thinks of a run as an event that is not one of the run's: nothing may come after the end
// of those, and the worker of the run need not know.
func (fb *Feedback) feedback(ctx context.Context, req control.FeedbackRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err == nil {
		err = req.Validate()
	}
	if err != nil {
		return nil, err
	}
	if _, _, err := fb.cfg.Runs.Find(ctx, ref); err != nil {
		return nil, err
	}
	if err := fb.planned(ctx, ref, req.StepID); err != nil {
		return nil, err
	}
	f := control.Feedback{
		Run: ref.Run, ID: cmp.Or(req.Control, fb.cfg.NewID()), At: fb.cfg.Now().UTC(), Score: req.Score, Comment: req.Comment,
		Labels: req.Labels, Step: req.Step, StepID: req.StepID, By: req.By,
	}
	if req.Control != "" { // it may have been stored before
		for old, err := range fb.said(ctx, ref) {
			switch {
			case err != nil:
				return nil, err
			case old.ID == f.ID && old.Says(&f):
				return old, nil
			case old.ID == f.ID:
				return nil, request.Conflict("the id is that of another feedback")
			}
		}
	}
	return f, fb.cfg.Events.AnnounceTo(ctx, ref.Tenant, control.EventFeedback, f)
}

// planned returns a *messages.FieldError unless a plan of the run has, or had, the step of an id.
func (fb *Feedback) planned(ctx context.Context, run messages.Ref, id string) error {
	if id == "" {
		return nil
	}
	has := func(r record.Record) bool {
		p, ok := r.(*record.Planned)
		return ok && p.Plan != nil && p.Plan.Find(id) != nil
	}
	for e, err := range fb.cfg.Log.Read(ctx, run, 0, runlog.Tail) {
		if err != nil {
			return err
		}
		for _, r := range e.Records {
			if begun, ok := r.(*record.Started); ok && slices.ContainsFunc(begun.Prefix, has) || has(r) {
				return nil
			}
		}
	}
	return &messages.FieldError{Field: "stepId", Reason: "the run has no plan with such a step"}
}

// said is all feedback on a run that is kept, oldest first. It looks at that on all runs of the tenant: there is less of
// it than of events of any other kind.
func (fb *Feedback) said(ctx context.Context, run messages.Ref) func(func(control.Feedback, error) bool) {
	return func(yield func(control.Feedback, error) bool) {
		about := messages.Ref{Tenant: run.Tenant, Run: messages.NoRun}
		for e, err := range fb.cfg.Events.Events(ctx, about.EventSubject(control.EventFeedback), time.Time{}) {
			var f control.Feedback
			if err == nil && (json.Unmarshal(e.Data, &f) != nil || f.Run != run.Run) {
				continue
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func (fb *Feedback) feedbackList(ctx context.Context, body []byte) (any, error) {
	ref, err := request.RunOf(body)
	if err != nil {
		return nil, err
	}
	list := control.FeedbackList{Feedback: []control.Feedback{}}
	seen := map[string]bool{}
	for f, err := range fb.said(ctx, ref) {
		switch {
		case err != nil:
			return nil, err
		case seen[f.ID]: // given twice at once
			continue
		}
		seen[f.ID] = true
		list.Feedback = append(list.Feedback, f)
		if len(list.Feedback) > control.MaxFeedback {
			list.Feedback, list.More = list.Feedback[1:], true
		}
	}
	slices.Reverse(list.Feedback)
	room := fb.cfg.Room.Beside(1 << 10) // beside the frame
	for i := range list.Feedback {
		size, err := json.Marshal(&list.Feedback[i])
		if err != nil {
			return nil, err
		}
		if room -= len(size) + 1; room < 0 {
			list.Feedback, list.More = list.Feedback[:i], true
			break
		}
	}
	if len(list.Feedback) == 0 {
		if _, _, err := fb.cfg.Runs.Find(ctx, ref); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Package feedback keeps what people think of runs.
package feedback

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what Feedback works with.
type Config struct {
	Events *events.Store
	Runs   *runs.Runs
	Log    runlog.Log
	Queue  *taskqueue.Queue
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
	learn, err := fb.learns(ctx, ref)
	if err != nil {
		return nil, err
	}
	f.Memory = follows(learn, ref, &f)
	if req.Control != "" { // it may have been stored before
		for old, err := range fb.said(ctx, ref) {
			switch {
			case err != nil:
				return nil, err
			case old.ID == f.ID && old.Says(&f):
				return old, fb.teach(ctx, ref, &old)
			case old.ID == f.ID:
				return nil, request.Conflict("the id is that of another feedback")
			}
		}
	}
	if err := fb.cfg.Events.AnnounceTo(ctx, ref.Tenant, control.EventFeedback, f); err != nil {
		return nil, err
	}
	return f, fb.teach(ctx, ref, &f)
}

// learns is what the agent of a run learns; nil: nothing, or the run has not begun.
func (fb *Feedback) learns(ctx context.Context, run messages.Ref) (*messages.LearnPolicy, error) {
	for e, err := range fb.cfg.Log.Read(ctx, run, 0, 1) {
		if err != nil {
			return nil, err
		}
		if begun, ok := e.Records[0].(*record.Started); ok {
			return begun.Agent.LearnPolicy(), nil
		}
	}
	return nil, nil
}

// follows is what becomes of a run's example when this is said of it; nil: nothing.
func follows(learn *messages.LearnPolicy, run messages.Ref, f *control.Feedback) *messages.MemoryChange {
	whole := f.Step == 0 && f.StepID == ""
	rated := f.Score != nil && *f.Score != 0
	if learn == nil || !rated && (whole || f.Comment == "") {
		return nil
	}
	change := &messages.MemoryChange{Memory: messages.MemoryLongTerm, Op: messages.MemoryWrite, Name: learn.Collection, ID: run.Example()}
	if whole && *f.Score < 0 {
		change.Op = messages.MemoryDelete
	}
	return change
}

// teach tells a worker of feedback that long-term memory follows. To tell it again changes nothing.
func (fb *Feedback) teach(ctx context.Context, run messages.Ref, f *control.Feedback) error {
	if f.Memory == nil {
		return nil
	}
	rating := messages.Rating{At: f.At, Step: f.StepID, Note: strict.Clip(f.Comment, maxNote)}
	if f.Step > 0 {
		rating.Step = strconv.Itoa(f.Step)
	}
	if f.Score != nil {
		rating.Score = *f.Score
	}
	return fb.cfg.Queue.Learn(ctx, run, f.ID, rating)
}

const maxNote = 2 << 10 // bytes of a comment that a worker is told

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

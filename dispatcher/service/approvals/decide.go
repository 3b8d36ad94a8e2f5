package approvals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// approve lets the call be made that a run waits with, or the run go beyond its budget.
func (ap *Approvals) approve(ctx context.Context, req control.DecisionRequest) (any, error) {
	return ap.decide(ctx, &req, false)
}

// deny has the call that a run waits with answered by a refusal, or ends the run at its budget.
func (ap *Approvals) deny(ctx context.Context, req control.DecisionRequest) (any, error) {
	return ap.decide(ctx, &req, true)
}

func (ap *Approvals) decide(ctx context.Context, req *control.DecisionRequest, denied bool) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err == nil {
		err = req.Validate()
	}
	if err != nil {
		return nil, err
	}
	id := cmp.Or(req.Control, ap.cfg.Controller.NewID())
	w, err := ap.waiting(ctx, ref)
	if err != nil {
		return nil, err
	}
	if denied && len(req.Arguments) > 0 {
		return nil, &messages.FieldError{Field: "arguments", Reason: "a call that is denied is not made: approve it with them"}
	}
	if req.Call == "" && w.parked != nil && w.parked.Reason == queue.ReasonBudget {
		text := messages.TextContent(req.Reason)
		if !denied {
			text = messages.TextContent("")
		}
		return ap.control(ctx, ref, w, &record.Answered{ID: id, Park: w.park, By: req.By, Content: text, IsError: denied})
	}
	asked := w.asked()
	switch {
	case req.Call == "" && asked != nil:
		return nil, &messages.FieldError{Field: "call", Reason: fmt.Sprintf("the run waits for an approval of call %q: name it", strict.Clip(w.parked.Call, 128))}
	case req.Call == "":
		return nil, request.Conflict("the run waits for no approval")
	case asked == nil || w.parked.Call != req.Call:
		return ap.decidedBefore(ctx, ref, w, req, id, denied)
	case req.Hash != "" && req.Hash != asked.Hash:
		return nil, request.Conflict("the arguments of the call differ from those that were decided about; review them again")
	}
	d := &record.Decided{
		ID: id, Park: w.park, Step: asked.Step, Call: req.Call, Hash: asked.Hash, Denied: denied, By: req.By, Reason: req.Reason,
		Until: w.parked.Until,
	}
	if err := ap.edit(ctx, ref, asked, req.Arguments, d); err != nil {
		return nil, err
	}
	return ap.control(ctx, ref, w, d)
}

// waits is what a run waited for last.
type waits struct {
	park   uint64         // sequence of the park
	parked *record.Parked // nil: it never waited, or is only queued
}

// asked is the approval that was asked for in that park.
func (w *waits) asked() *messages.Approval {
	if w.parked == nil {
		return nil
	}
	return w.parked.Approval
}

func (ap *Approvals) waiting(ctx context.Context, ref messages.Ref) (w waits, err error) {
	last, q, err := ap.cfg.Runs.Find(ctx, ref)
	if err != nil || q != nil {
		return w, err
	}
	w.park = last.Head.ParkSeq
	w.parked, _, err = ap.cfg.Controller.Park(ctx, ref, last)
	return w, err
}

// control writes the answer to a park. Of two answers the first counts, and the second learns whose that was.
func (ap *Approvals) control(ctx context.Context, ref messages.Ref, w waits, r record.Record) (any, error) {
	head, err := ap.cfg.Controller.Control(ctx, ref, r)
	switch {
	case errors.Is(err, runlog.ErrLate):
		return nil, request.Conflict("it is too late: the time for it was over at " + w.parked.Until.UTC().Format(time.RFC3339))
	case err != nil && !errors.Is(err, runlog.ErrNotWaiting) && !errors.Is(err, runlog.ErrEnded):
		return nil, err
	}
	by, at, err := ap.cfg.Controller.Answer(ctx, ref, w.park)
	switch {
	case err != nil:
		return nil, err
	case by == nil:
		return nil, request.Conflict("the run no longer waits for this")
	case controlID(by) == controlID(r) && same(by, r):
		if head.Phase == "" || head.Phase == record.PhaseFinished {
			return ap.afterwards(ctx, ref)
		}
		return ap.cfg.Runs.StatusOf(ctx, ref, record.Entry{Head: head})
	default:
		return nil, request.Conflict(told(by, at))
	}
}

func (ap *Approvals) afterwards(ctx context.Context, ref messages.Ref) (any, error) {
	last, ok, err := ap.cfg.Controller.Log.Last(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, runlog.ErrNotFound
	}
	return ap.cfg.Runs.StatusOf(ctx, ref, last)
}

// decidedBefore answers a decision about a call that the run does not wait with now: it may have been made already.
func (ap *Approvals) decidedBefore(
	ctx context.Context, ref messages.Ref, w waits, req *control.DecisionRequest, id string, denied bool,
) (any, error) {
	if w.park == 0 {
		return nil, request.Conflict("the run waits for no approval")
	}
	d, at, err := ap.cfg.Controller.Decision(ctx, ref, req.Call)
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, request.Conflict("the run does not wait for an approval of this call")
	case d.ID == id && d.Denied == denied && (req.Hash == "" || req.Hash == d.About()) && madeWith(d, req.Arguments):
		return ap.afterwards(ctx, ref)
	default:
		return nil, request.Conflict(told(d, at))
	}
}

// answerQuestion answers the question that a run waits with.
func (ap *Approvals) answerQuestion(ctx context.Context, req control.AnswerRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err == nil {
		err = req.Validate()
	}
	if err != nil {
		return nil, err
	}
	w, err := ap.waiting(ctx, ref)
	if err != nil {
		return nil, err
	}
	p := w.parked
	switch {
	case p == nil || p.Call == "" && p.Reason != queue.ReasonBudget || req.Call != "" && req.Call != p.Call:
		return nil, request.Conflict("the run waits for no such answer")
	case p.Reason == queue.ParkApproval:
		return nil, request.Conflict("the run waits for an approval, which an answer is not: approve or deny it")
	case req.Text == "" && p.Reason != queue.ReasonBudget:
		return nil, &messages.FieldError{Field: "text", Reason: "is empty"}
	}
	return ap.control(ctx, ref, w, &record.Answered{
		ID: cmp.Or(req.Control, ap.cfg.Controller.NewID()), Park: w.park, By: req.By, Content: messages.TextContent(req.Text), IsError: req.Deny,
	})
}

func controlID(r record.Record) string {
	switch r := r.(type) {
	case *record.Answered:
		return r.ID
	case *record.Decided:
		return r.ID
	default:
		return ""
	}
}

// same reports whether two records of one control id say the same.
func same(a, b record.Record) bool {
	switch a := a.(type) {
	case *record.Answered:
		b, ok := b.(*record.Answered)
		return ok && a.IsError == b.IsError
	case *record.Decided:
		b, ok := b.(*record.Decided)
		return ok && a.Denied == b.Denied && a.Hash == b.Hash
	default:
		return false
	}
}

// told is a sentence that says whose answer was first.
func told(r record.Record, at time.Time) string {
	what, who := "it was answered", ""
	switch r := r.(type) {
	case *record.Answered:
		who = r.By
	case *record.Decided:
		what, who = "it was "+r.Outcome(), r.By
	case *record.Expired:
		what = "it is too late: the time for it was over"
	case *record.CancelRequested:
		what, who = "the run was asked to stop", r.By
	}
	if who != "" {
		what += " by " + strict.Clip(who, 128)
	}
	return what + " at " + at.UTC().Format(time.RFC3339)
}

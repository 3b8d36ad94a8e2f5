package runlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// Tasks takes the tasks of children into the queue. Safe for concurrent use.
type Tasks interface {
	// Submit publishes a task unless its run has a message in the queue, which is no error.
	Submit(ctx context.Context, t *messages.Task, fresh bool) (duplicate bool, err error)
	// Nudge hints to who works a run that its log has grown. The hint may be lost.
	Nudge(ctx context.Context, run messages.Ref) error
}

// family is the children of a delegation, as far as the head of the parent knows them.
type family struct {
	parent messages.Ref
	of     *record.Awaited
	named  *record.Delegated // read once it is needed
}

func (f *family) child(index int) messages.Ref {
	return messages.Ref{Tenant: f.parent.Tenant, Run: record.ChildRun(f.parent, f.of.Number, index)}
}

// open calls do for each child whose end its parent has not been told.
func (f *family) open(do func(index int) error) error {
	if f.of == nil {
		return nil
	}
	for i := range f.of.Of {
		if f.of.Has(f.of.Number, i) {
			continue
		}
		if err := do(i); err != nil {
			return fmt.Errorf("child %d of %s: %w", i, f.parent, err)
		}
	}
	return nil
}

// started is the first record of a child.
func (k *Controller) started(ctx context.Context, f *family, index int) (*record.Started, error) {
	if f.named == nil {
		e, err := k.entry(ctx, f.parent, f.of.Seq)
		if err != nil {
			return nil, err
		}
		for _, r := range e.Records {
			if d, ok := r.(*record.Delegated); ok {
				f.named = d
			}
		}
	}
	if f.named == nil || index >= len(f.named.Children) {
		return nil, fmt.Errorf("entry %d does not name it", f.of.Seq)
	}
	return f.named.Started(f.parent, index), nil
}

// settleChildren makes the children of a parked run that do not exist yet, and repairs those that do.
func (k *Controller) settleChildren(ctx context.Context, run messages.Ref, h record.Head) (repaired bool, err error) {
	f := &family{parent: run, of: h.Children}
	err = f.open(func(i int) error {
		did, err := k.settleChild(ctx, f, i)
		repaired = repaired || did
		return err
	})
	return repaired, err
}

func (k *Controller) settleChild(ctx context.Context, f *family, index int) (repaired bool, err error) {
	child := f.child(index)
	last, ok, err := k.Log.Last(ctx, child)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", child, err)
	}
	if !ok {
		first, err := k.started(ctx, f, index)
		if err != nil {
			return false, err
		}
		last, err = k.Begin(ctx, child, first)
		if errors.Is(err, ErrConflict) { // another settles the park too, and may die before it submits; or has ended the child before it began
			last, _, err = k.Log.Last(ctx, child)
		}
		if err != nil {
			return false, err
		}
	}
	switch kin := last.Head.Parent; {
	case kin == nil || *kin != (record.Kin{Run: f.parent.Run, Number: f.of.Number, Index: index}):
		return true, k.orphan(ctx, f, index)
	case last.Head.Phase == record.PhaseFinished:
		return true, k.Settle(ctx, child)
	case last.Head.Phase != record.PhaseReady || last.Head.ClaimSeq != 0 || last.Head.Cancel:
		return false, nil // others see to it
	case k.Tasks == nil:
		return false, k.wakeIfReady(ctx, child, &last)
	}
	first, err := k.started(ctx, f, index)
	if err != nil {
		return false, err
	}
	if _, err := k.Tasks.Submit(ctx, &first.Task, true); err != nil {
		return false, fmt.Errorf("submit %s: %w", child, err)
	}
	return false, nil
}

// orphan tells a parent that the id of its child is that of another run: one whose task came from elsewhere, or which began anew from its
// ticket after the log of the child was deleted.
func (k *Controller) orphan(ctx context.Context, f *family, index int) error {
	return k.tell(ctx, f.parent, &record.ChildEnded{
		Number: f.of.Number, Index: index, Run: f.child(index).Run, Status: messages.StatusFailed,
		Error: &messages.RunError{Code: messages.CodeConflict, Message: "id: another run has it: its log was deleted before its parent learned of its end, or the task of that run came from elsewhere"},
	})
}

// EndChildren ends all that has not ended below a run which needs nothing of it any longer: because it has ended, will not continue, or has
// enough. What does not exist yet never begins. Doing it again is harmless.
func (k *Controller) EndChildren(ctx context.Context, run messages.Ref, h record.Head, reason string) error {
	for _, of := range h.Delegations() {
		f := &family{parent: run, of: &of}
		if err := f.open(func(i int) error { return k.endChild(ctx, f, i, reason) }); err != nil {
			return err
		}
	}
	return nil
}

func (k *Controller) endChild(ctx context.Context, f *family, index int, reason string) error {
	child, r := f.child(index), &record.Withdrawn{Parent: f.parent.Run, Reason: reason}
	for range maxConflicts {
		h, err := k.Control(ctx, child, r)
		switch {
		case errors.Is(err, ErrEnded):
			return k.Settle(ctx, child) // it may not have told its parent yet
		case err == nil:
			if h.Phase == record.PhaseActive && k.Tasks != nil {
				_ = k.Tasks.Nudge(ctx, child) // a hint: the heartbeat sees it too
			}
			// At once: the child needs a slot to end, which those below it may hold.
			return k.EndChildren(ctx, child, h, reason)
		case record.IsGone(err):
			return k.EndGone(ctx, child)
		case !errors.Is(err, ErrNotFound):
			return err
		}
		first, err := k.started(ctx, f, index)
		if record.OpensForNone(err) {
			return nil // so it is not made by any other process either
		}
		if err != nil {
			return err
		}
		now := k.Now()
		why := &messages.RunError{Code: messages.CodeCancelled, Message: r.Text()}
		res := messages.EndedResult(child, &first.Task, messages.StatusCancelled, why, now, now)
		res.CostEstimate = new(0.0)
		_, err = k.Begin(ctx, child, first, r, &record.Finished{Result: res})
		switch {
		case errors.Is(err, ErrConflict):
			continue // it has just begun
		case err != nil:
			return err
		}
		return k.Settle(ctx, child)
	}
	return fmt.Errorf("end %s: %w after %d tries", child, ErrConflict, maxConflicts)
}

// tellParent records the end of a child in the log of its parent, once, and wakes the parent if it waited for that.
func (k *Controller) tellParent(ctx context.Context, run messages.Ref, h record.Head, end *record.Finished) error {
	if h.Parent == nil {
		return nil
	}
	res := &end.Result
	r := &record.ChildEnded{
		Number: h.Parent.Number, Index: h.Parent.Index, Run: run.Run, Status: res.Status, Tokens: res.TokenUsage.Total, Used: end.Used,
	}
	if res.Error != nil {
		r.Error = &messages.RunError{Code: res.Error.Code, Message: strict.Clip(res.Error.Message, maxWhy)}
	}
	if text, ok := res.Result.(string); ok && res.Success {
		r.Output, r.Cut = head(text, record.MaxChildOutput)
	}
	if res.CostEstimate != nil {
		r.Cost = new(*res.CostEstimate)
	}
	if below := res.Below; below != nil {
		r.Tokens, r.Runs = r.Tokens+below.Tokens, below.Runs
		if r.Cost != nil {
			*r.Cost = messages.AddCost(*r.Cost, below.Cost)
		}
	}
	return k.tell(ctx, messages.Ref{Tenant: run.Tenant, Run: h.Parent.Run}, r)
}

func (k *Controller) tell(ctx context.Context, parent messages.Ref, r *record.ChildEnded) error {
	_, err := k.Control(ctx, parent, r)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrEnded) || record.IsGone(err) { // nothing waits for it, or ever will
		return nil
	}
	if err != nil {
		return fmt.Errorf("tell the end of %s: %w", r.Run, err)
	}
	return nil
}

// head is the beginning of a text, whole characters of it.
func head(text string, most int) (_ string, cut bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most], true
}

// strandedChild says why a parked run will never learn of the end of a child; empty: it will.
func (k *Controller) strandedChild(ctx context.Context, run messages.Ref, h record.Head) (why string, err error) {
	f := &family{parent: run, of: h.Children}
	err = f.open(func(i int) error {
		child := f.child(i)
		last, ok, err := k.Log.Last(ctx, child)
		switch {
		case err != nil || why != "":
			return err
		case !ok:
			why = "it waits for its child " + child.Run + ", which was not made"
		case last.Head.Phase == record.PhaseFinished:
			why = "it waits for its child " + child.Run + ", which has ended"
		}
		return nil
	})
	return why, err
}

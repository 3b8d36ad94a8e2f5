package batches

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// batchHold is how many lines are looked at before the batch says so.
const batchHold = 1000

// hold has the runs that lines are to be refer to the uploaded contents which the lines name, so that these stay until it is their turn. It
// looks at the lines once, before the first is submitted, and says in the head how far it came. A reference stays for as long as the line
// is stored, or the run.
func (bs *Batches) hold(ctx context.Context, head *messages.Batch) error {
	var holding errgroup.Group
	holding.SetLimit(batchTogether)
	for l, err := range bs.cfg.Store.Lines(ctx, head.BatchRef, head.Cursor.HeldLine) {
		if err != nil {
			return errors.Join(err, holding.Wait())
		}
		holding.Go(func() error { return bs.holdLine(ctx, head, l.Body) })
		head.Cursor.HeldLine = l.Seq
		head.Cursor.Held++
		if head.Cursor.Held%batchHold == 0 {
			break
		}
	}
	return holding.Wait()
}

// holdLine is hold for one line. What is wrong with it is told when it is its turn.
func (bs *Batches) holdLine(ctx context.Context, head *messages.Batch, body []byte) error {
	var l messages.BatchLine
	err := strict.Decode(body, &l)
	if bad := err != nil || l.Task.Tenant != head.Tenant; bad {
		return nil
	}
	err = bs.cfg.Admission.Keep(ctx, &l.Task)
	if _, wrong := errors.AsType[*messages.FieldError](err); wrong {
		return nil
	}
	return err
}

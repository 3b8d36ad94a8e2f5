package runner

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
)

// hint has the log looked at, because it may have grown. Any goroutine may call it; one look at a time goes on.
func (x *execution) hint() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.looking || x.ended {
		x.again = true
		return
	}
	x.looking = true
	x.looks.Go(x.look)
}

// finish ends the looks.
func (x *execution) finish() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	x.hooking.pumps.Wait() // each call in it has a timeout
	x.abort(nil)
	x.looks.Wait()
}

// look reads the heads that the owner does not know and aborts what it is doing when they say so. It changes nothing
// else: the state is the owner's.
func (x *execution) look() {
	for {
		seen, claim := x.position()
		for e, err := range x.log.Heads(x.ctx, x.run, seen, runlog.Tail) {
			switch {
			case err != nil:
			case claim == "": // it is being made; what the log says must be heeded first
				x.interrupt()
			case e.Head.Claim != claim:
				x.abort(errFenced)
			case e.Head.Cancel:
				x.interrupt()
			}
			if err != nil {
				break // the next heartbeat looks again
			}
		}
		x.mu.Lock()
		x.looking = x.again && x.ctx.Err() == nil
		x.again = false
		done := !x.looking
		x.mu.Unlock()
		if done {
			return
		}
	}
}

// listen makes abort the way to interrupt the call that begins now. The returned function ends that.
func (x *execution) listen(abort context.CancelCauseFunc) (end func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopCall = abort
	if x.interrupted {
		abort(errHeed)
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.stopCall = nil
	}
}

// interrupt aborts the call that goes on, or the next one: what was recorded meanwhile must be heeded first.
func (x *execution) interrupt() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interrupted = true
	if x.stopCall != nil {
		x.stopCall(errHeed)
	}
}

// replan reads what others appended and plans anew.
func (x *execution) replan(ctx context.Context) (agent.Action, error) {
	if err := x.catchUp(ctx, false); err != nil {
		return nil, err
	}
	return x.commit(ctx)
}

// catchUp folds what others appended and publishes its events, for only the owner does. With errFenced somebody else
// owns the run, or the log is not the one that was folded, and nothing of it is published. If there must be something
// and is not, the log is not ours either.
func (x *execution) catchUp(ctx context.Context, must bool) error {
	x.mu.Lock()
	x.interrupted = false
	x.mu.Unlock()
	var tail []record.Entry
	for e, err := range x.log.Read(ctx, x.run, x.state.Seq, runlog.Tail) {
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if e.Head.Claim != x.claimID || e.Head.Phase != record.PhaseActive {
			return errFenced
		}
		tail = append(tail, e)
	}
	if must && len(tail) == 0 { // shorter than what we know: another life of the log
		return errFenced
	}
	for i := range tail {
		e := &tail[i]
		if err := x.state.Apply(*e); err != nil {
			return err
		}
		x.moved(e.Seq, false)
		runlog.Publish(ctx, x.run, e, x.out)
	}
	return nil
}

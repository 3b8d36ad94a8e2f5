package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// ownership knows whether the run is still this execution's, and aborts what goes on when it is not, or when the log has news
// that change the plan. Any goroutine may use it.
type ownership struct {
	*job

	ctx   context.Context         //nolint:containedctx // of Run; for looks, which end before Run does
	abort context.CancelCauseFunc // of ctx

	looks sync.WaitGroup

	mu          sync.Mutex
	seen        uint64                  // last sequence known to this owner; written by moved
	claimed     bool                    // by this execution; written by moved
	stopCall    context.CancelCauseFunc // of the call that goes on; written by listen
	interrupted bool                    // a record was seen that must be applied before the next call; written by interrupt and resume
	looking     bool                    // a look at the log goes on; written by hint and look
	again       bool                    // and shall be followed by another; written by hint and look
	ended       bool                    // no look may begin; written by forbid
}

const (
	// A proof of ownership that took longer than this is no proof: the worker may have been stopped between the answer
	// and the moment it looked at it.
	proofAge = 500 * time.Millisecond
	// How often a proof is tried when each took too long.
	maxProofs = 20
)

var errNoProof = errors.New("the log did not answer in time to prove that the run is still ours")

// errStale means that the ticket was in hand for too long before the run was claimed: it is, or will be, another delivery's.
var errStale = errors.New("the ticket was delivered too long ago")

// position is the last sequence that this owner knows and its claim; the claim is empty before it is made.
func (x *ownership) position() (uint64, string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.claimed {
		return x.seen, ""
	}
	return x.seen, x.claimID
}

func (x *ownership) moved(seq uint64, claimed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen, x.claimed = seq, x.claimed || claimed
}

// hint has the log looked at, because it may have grown. Any goroutine may call it; one look at a time goes on.
func (x *ownership) hint() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.looking || x.ended {
		x.again = true
		return
	}
	x.looking = true
	x.looks.Go(x.look)
}

// look reads the heads that the owner does not know and aborts what it is doing when they say so. It changes nothing
// else: the state is the owner's.
func (x *ownership) look() {
	for {
		seen, claim := x.position()
		for e, err := range x.log.Heads(x.ctx, x.run, seen, runlog.Tail) {
			switch {
			case err != nil:
			case claim == "": // it is being made; what the log says must be applied first
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
func (x *ownership) listen(abort context.CancelCauseFunc) (end func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopCall = abort
	if x.interrupted {
		abort(errControl)
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.stopCall = nil
	}
}

// interrupt aborts the call that goes on, or the next one: what was recorded meanwhile must be applied first.
func (x *ownership) interrupt() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interrupted = true
	if x.stopCall != nil {
		x.stopCall(errControl)
	}
}

// prove returns nil when an effect (a model's request, a tool call, a hook) may begin at once: no other worker can have
// been given the run's ticket, or the log has just said that no other worker has claimed the run (rule 26). Any goroutine
// may call it. The error is errFenced when the run is another's, and its work is then aborted.
func (x *ownership) prove(ctx context.Context) error {
	for range maxProofs {
		if x.leased() {
			return nil
		}
		asked := time.Now()
		last, ok, err := x.log.Last(ctx, x.run)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("prove ownership: %w", err)
		case !ok || last.Head.Claim != x.claimID || last.Head.Phase != record.PhaseActive:
			x.abort(errFenced)
			return errFenced
		}
		x.r.count(func(s *Stats) { s.Proofs++ })
		if time.Since(asked) < proofAge {
			return nil
		}
	}
	return errNoProof
}

// leased reports whether no other worker can have the ticket.
func (x *ownership) leased() bool { return x.ticket.Lease == nil || x.ticket.Lease() > 0 }

// resume lets calls begin again: what was recorded is about to be applied.
func (x *ownership) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interrupted = false
}

// forbid lets no further look begin.
func (x *ownership) forbid() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
}

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

// ownership tracks whether this execution still owns the run. It aborts the work in progress when it does not, or when a new entry
// of the log changes the plan. Safe for concurrent use.
type ownership struct {
	*job

	ctx   context.Context         //nolint:containedctx // of Run; for reads of the log, which end before Run does
	abort context.CancelCauseFunc // of ctx

	looks sync.WaitGroup

	mu          sync.Mutex
	seen        uint64                  // last sequence known to this owner; written by moved
	claimed     bool                    // by this execution; written by moved
	stopCall    context.CancelCauseFunc // of the call in progress; written by listen
	interrupted bool                    // a record was seen that must be applied before the next call; written by interrupt and resume
	looking     bool                    // the log is being read; written by hint and look
	again       bool                    // read it once more afterwards; written by hint and look
	ended       bool                    // no read may begin; written by forbid
}

const (
	// A proof of ownership that took longer than this is void: the worker may have been suspended between the answer and its
	// evaluation.
	proofAge = 500 * time.Millisecond
	// How often a proof is repeated when it takes too long.
	maxProofs = 20
)

var errNoProof = errors.New("the log did not answer in time to prove that the run is still ours")

// errStale means that the ticket was held for too long before the claim: the message has been, or will be, delivered again.
var errStale = errors.New("the ticket was delivered too long ago")

// position returns the last sequence that this owner knows, and its claim, which is empty before the claim is appended.
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

// hint starts a read of the log, which may have grown. Any goroutine may call it; at most one read is in progress.
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

// look reads the heads that the owner has not seen and aborts its work if they require it. It changes nothing else: the state
// belongs to the owner.
func (x *ownership) look() {
	for {
		seen, claim := x.position()
		for e, err := range x.log.Heads(x.ctx, x.run, seen, runlog.Tail) {
			switch {
			case err != nil:
			case claim == "": // the claim is being appended; entries of the log must be applied first
				x.interrupt()
			case e.Head.Claim != claim:
				x.abort(errFenced)
			case e.Head.Cancel:
				x.interrupt()
			}
			if err != nil {
				break // the next heartbeat reads again
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

// listen registers abort as the way to interrupt the call that begins now. The returned function unregisters it, and the one before
// holds again.
func (x *ownership) listen(abort context.CancelCauseFunc) (end func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.stopCall
	x.stopCall = abort
	if x.interrupted {
		abort(errControl)
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.stopCall = before
	}
}

// interrupt aborts the call in progress or, if there is none, the next one: new entries must be applied first.
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
// may call it. The error is errFenced if another worker owns the run; the work is then aborted.
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

// leased reports whether the lease on the ticket is still valid, so that no other worker can have it.
func (x *ownership) leased() bool { return x.ticket.Lease == nil || x.ticket.Lease() > 0 }

// resume allows calls to begin again: the new entries are about to be applied.
func (x *ownership) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interrupted = false
}

// forbid prevents further reads.
func (x *ownership) forbid() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
}

package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

const (
	// A proof of ownership that took longer than this is no proof: the worker may have been stopped between the answer
	// and the moment it looked at it.
	proofAge = 500 * time.Millisecond
	// How often a proof is tried when each took too long.
	maxProofs = 20
)

var errNoProof = errors.New("the log did not answer in time to prove that the run is still ours")

// prove returns nil when an effect (a model's request, a tool call, a hook) may begin at once: no other worker can have
// been given the run's ticket, or the log has just said that no other worker has claimed the run (rule 26). Any goroutine
// may call it. The error is errFenced when the run is another's, and its work is then aborted.
func (x *execution) prove(ctx context.Context) error {
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
func (x *execution) leased() bool { return x.ticket.Lease == nil || x.ticket.Lease() > 0 }

// succeed takes over a run whose claim by this ticket is open, unless its owner is alive.
func (x *execution) succeed(ctx context.Context, last record.Entry) (bool, Outcome, error) {
	if x.ticket.Keeps != nil {
		kept, err := x.ticket.Keeps(ctx, last.Head.Claim)
		switch {
		case err != nil:
			return false, Return, err
		case kept:
			return false, Kept, nil
		}
	}
	return x.reclaim(ctx, last)
}

// takeOver appends the claim of a run that others have worked. It is not stored after the ticket may have been given to
// another worker, which then owns the run.
func (x *execution) takeOver(ctx context.Context, last *record.Entry, c *record.Claimed) (*record.Entry, error) {
	if x.ticket.Lease == nil {
		return x.append(ctx, last.Seq, &last.Head, c)
	}
	ctx, cancel := context.WithTimeout(ctx, max(0, x.ticket.Lease()))
	defer cancel()
	e, err := x.append(ctx, last.Seq, &last.Head, c)
	if err != nil && ctx.Err() != nil && !errors.Is(err, runlog.ErrConflict) {
		err = fmt.Errorf("%w: %w", errStale, err)
	}
	return e, err
}

// errStale means that the ticket was in hand for too long before the run was claimed: it is, or will be, another delivery's.
var errStale = errors.New("the ticket was delivered too long ago")

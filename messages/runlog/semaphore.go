package runlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// Semaphores stores who holds a permit of each semaphore and who waits for one. Safe for concurrent use. Reads are never stale.
type Semaphores interface {
	SemaphoreStore
	Waits
}

// SemaphoreStore stores the permits of each semaphore.
type SemaphoreStore interface {
	// Semaphore returns the holders and the revision; zero if there is none.
	Semaphore(ctx context.Context, name string) (l queue.Semaphore, revision uint64, err error)
	// PutSemaphore replaces a revision. ErrConflict: the stored revision is another.
	PutSemaphore(ctx context.Context, name string, revision uint64, l queue.Semaphore) error
	// Semaphores yields the names of all semaphores that were ever used.
	Semaphores(ctx context.Context) iter.Seq2[string, error]
}

// Waits stores the queue of runs that wait at each semaphore.
type Waits interface {
	// Wait appends a run to the queue. A run that waits already keeps its position.
	Wait(ctx context.Context, name string, run messages.Ref) error
	// Waiting returns the position of a run, a number that grows along the queue and is never reused; 0: it does not wait.
	Waiting(ctx context.Context, name string, run messages.Ref) (at uint64, err error)
	// First returns the run that has waited longest and its position; 0: no run waits.
	First(ctx context.Context, name string) (run messages.Ref, at uint64, err error)
	// Unwait ends the wait at a position. It is not an error if the wait is over.
	Unwait(ctx context.Context, name string, run messages.Ref, at uint64) error
}

// NoCap is the Cap of a semaphore without a limit.
const NoCap = -1

// Caps holds the number of permits of every semaphore except those of concurrency keys and workspaces. Reading it sends no request; it may be
// some seconds behind.
type Caps interface {
	Cap(name string) int
}

// SemaphoresOf returns the semaphores of which a run must hold a permit before it works. All runs acquire them in this order, so
// they cannot deadlock. The tenant's own come first: a tenant that waits for them holds nothing that other tenants need.
func (k *Controller) SemaphoresOf(t *messages.Task) []string {
	if k.Semaphores == nil {
		return nil
	}
	var out []string
	if t.Workspace != "" && k.Workspaces != nil {
		out = append(out, queue.WorkspaceSemaphore(t.Tenant, t.Workspace))
	}
	if t.Concurrency != nil {
		out = append(out, queue.KeySemaphore(t.Tenant, t.Concurrency.Key))
	}
	if k.Caps == nil {
		return out
	}
	for _, name := range []string{queue.TenantSemaphore(t.Tenant), queue.AgentSemaphore(t.Agent)} {
		if k.Caps.Cap(name) != NoCap {
			out = append(out, name)
		}
	}
	return out
}

// PausedFor returns the semaphore of the pause that keeps a run from its next step, or "". Provider, if not empty, is one that
// the run needs for it.
func (k *Controller) PausedFor(t *messages.Task, provider string) string {
	if k.Semaphores == nil || k.Caps == nil {
		return ""
	}
	for _, of := range []queue.QuotaRef{
		{Kind: queue.QuotaTenant, Name: t.Tenant}, {Kind: queue.QuotaAgent, Name: t.Agent}, {Kind: queue.QuotaProvider, Name: provider},
	} {
		if name := queue.PauseSemaphore(of); of.Name != "" && k.Caps.Cap(name) == 0 {
			return name
		}
	}
	return ""
}

func (k *Controller) capOf(name string, l *queue.Semaphore) int {
	switch _, workspace := queue.WorkspaceOfSemaphore(name); {
	case workspace:
		return 1
	case queue.IsKeySemaphore(name):
		return max(l.Limit, 1)
	case k.Caps == nil:
		return NoCap
	default:
		return k.Caps.Cap(name)
	}
}

// Acquire acquires a permit of each semaphore in order, for the claim at a sequence. It stops at the first that has no free
// permit and returns its name: the run waits there and keeps the permits it has. Limit, unless 0, becomes the number of permits
// of a concurrency key. Acquire is idempotent. A run that lacks a permit parks, and Close ensures that it is granted one later.
func (k *Controller) Acquire(ctx context.Context, run messages.Ref, claim uint64, names []string, limit int) (waits string, err error) {
	return k.acquireAll(ctx, run, claim, claim, names, limit)
}

// acquireAll is Acquire for a run whose last claim is last, which differs from claim only when the run is parked.
func (k *Controller) acquireAll(ctx context.Context, run messages.Ref, claim, last uint64, names []string, limit int) (waits string, err error) {
	for i, name := range names {
		has, err := k.acquire(ctx, run, claim, name, limit)
		if err != nil {
			return "", fmt.Errorf("semaphore %s: %w", name, err)
		}
		if has {
			continue
		}
		for _, later := range names[i+1:] {
			if err := k.dropPermit(ctx, run, last, later); err != nil {
				return "", fmt.Errorf("semaphore %s: %w", later, err)
			}
		}
		return name, nil
	}
	return "", nil
}

// dropPermit releases a permit that a run acquired before a cap was set on an earlier semaphore: a run that waits holds no later
// permits.
func (k *Controller) dropPermit(ctx context.Context, run messages.Ref, claim uint64, name string) error {
	had := false
	err := k.changeSemaphore(ctx, name, func(l *queue.Semaphore, _ bool) (bool, error) {
		i := l.Of(run)
		if had = i >= 0 && l.Permits[i].Claim <= claim; had {
			l.Permits = slices.Delete(l.Permits, i, i+1)
		}
		return had, nil
	})
	if err != nil || !had {
		return err
	}
	return k.lookAt(ctx, name, maxGiven)
}

// acquire acquires one permit for a claim, or for a parked run if claim is 0.
func (k *Controller) acquire(ctx context.Context, run messages.Ref, claim uint64, name string, limit int) (has bool, err error) {
	if !queue.IsKeySemaphore(name) {
		limit = 0
	}
	for waits := false; ; waits = true { // once before it waits, and once after
		var at uint64 // where it still waits
		err = k.changeSemaphore(ctx, name, func(l *queue.Semaphore, isNew bool) (bool, error) {
			changed := limit > 0 && l.Limit != limit
			if changed {
				l.Limit = limit
			}
			got, where, err := k.enter(ctx, run, claim, name, l)
			has, at = got != noPermit, where
			return changed || got == newPermit || !has && isNew, err // sweeps must find a semaphore that has waiters
		})
		switch {
		case err != nil:
			return false, err
		case at != 0:
			return has, k.Semaphores.Unwait(ctx, name, run, at)
		case has || waits:
			return has, nil
		}
		if err := k.wait(ctx, run, claim, name); err != nil {
			return false, err
		}
		if err := k.lookAt(ctx, name, maxGiven); err != nil {
			return false, err
		}
	}
}

// wait appends a run to the queue. Each claim gets a new position, so that a slow writer that ends an earlier wait cannot end this
// one.
func (k *Controller) wait(ctx context.Context, run messages.Ref, claim uint64, name string) error {
	if claim != 0 {
		at, err := k.Semaphores.Waiting(ctx, name, run)
		if err != nil {
			return err
		}
		if at != 0 {
			if err := k.owns(ctx, run, claim); err != nil {
				return err
			}
			if err := k.Semaphores.Unwait(ctx, name, run, at); err != nil {
				return err
			}
		}
	}
	return k.Semaphores.Wait(ctx, name, run)
}

// enter gives a run a permit if one is free and no other run has waited longer. It returns the position at which the run still
// waits.
func (k *Controller) enter(ctx context.Context, run messages.Ref, claim uint64, name string, l *queue.Semaphore) (got int, at uint64, err error) {
	permits, i := k.capOf(name, l), l.Of(run)
	switch {
	case permits == NoCap:
		return hasPermit, 0, nil
	case i >= 0 && l.Permits[i].Claim >= claim:
		return hasPermit, 0, nil
	case i >= 0:
		l.Permits[i].Claim = claim
		if at, err = k.Semaphores.Waiting(ctx, name, run); err != nil {
			return noPermit, 0, err
		}
	case len(l.Permits) >= permits:
		return noPermit, 0, nil
	default:
		var first messages.Ref
		if first, at, err = k.Semaphores.First(ctx, name); err != nil || at != 0 && first != run {
			return noPermit, 0, err
		}
		if err := k.addPermit(ctx, name, l, queue.Permit{Run: queue.HolderOf(run), Claim: claim}); err != nil {
			return noPermit, 0, err
		}
		if claim == 0 {
			at = 0 // the caller that grants it ends the wait
		}
	}
	return newPermit, at, k.owns(ctx, run, claim)
}

// owns returns errGone unless the claim at a sequence still owns the run or, for 0, the run is parked. It must be called between
// reading the semaphore and storing it: a later end or park of the run then conflicts, or removes the run again.
func (k *Controller) owns(ctx context.Context, run messages.Ref, claim uint64) error {
	last, ok, err := k.Log.Last(ctx, run)
	if err != nil {
		return fmt.Errorf("read %s: %w", run, err)
	}
	h := last.Head
	if !ok || claim != 0 && (h.ClaimSeq != claim || h.Phase != record.PhaseActive) || claim == 0 && waitsIn(h) == nil {
		return errGone
	}
	return nil
}

// errGone means that the caller no longer owns the run, or that it has ended.
var errGone = errors.New("another worker owns the run")

// changeSemaphore stores what change makes of a semaphore, unless it is false.
func (k *Controller) changeSemaphore(ctx context.Context, name string, change func(l *queue.Semaphore, isNew bool) (bool, error)) error {
	permits := stored[queue.Semaphore]{
		read: func() (queue.Semaphore, uint64, error) { return k.Semaphores.Semaphore(ctx, name) },
		put: func(revision uint64, l queue.Semaphore) error {
			l.Time = k.Now()
			return k.Semaphores.PutSemaphore(ctx, name, revision, l)
		},
	}
	return permits.update(ctx, func(l *queue.Semaphore, isNew bool) (bool, error) {
		l.Permits = slices.Clone(l.Permits)
		return change(l, isNew)
	})
}

// releaseAll releases the permits of a run and grants them to the next in the queue. A park releases only those of its own claim
// and those not claimed yet: a later claim may hold the others.
func (k *Controller) releaseAll(ctx context.Context, run messages.Ref, h record.Head) error {
	if k.Semaphores == nil {
		return nil
	}
	for _, name := range h.Semaphores {
		if queue.IsPauseSemaphore(name) {
			continue // it has no permits
		}
		if err := k.release(ctx, run, h, name); err != nil {
			return fmt.Errorf("semaphore %s: %w", name, err)
		}
		if err := k.lookAt(ctx, name, maxGiven); err != nil {
			return fmt.Errorf("semaphore %s: %w", name, err)
		}
	}
	return nil
}

func (k *Controller) release(ctx context.Context, run messages.Ref, h record.Head, name string) error {
	if err := k.leaveWorkspace(ctx, run, h, name); err != nil {
		return err
	}
	return k.changeSemaphore(ctx, name, func(l *queue.Semaphore, _ bool) (bool, error) {
		switch i := l.Of(run); {
		case i < 0: // stored all the same, so that an earlier owner that is about to acquire conflicts
		case h.Phase != record.PhaseFinished && l.Permits[i].Claim > h.ClaimSeq:
			return false, nil
		default:
			l.Permits = slices.Delete(l.Permits, i, i+1)
		}
		return true, nil
	})
}

// settlePermits releases the permits of a parked run. A run that waits at a semaphore keeps them, and is woken if it has been
// granted its permit meanwhile. Its park is already in the log, so either this call sees the grant or the grant sees the park.
func (k *Controller) settlePermits(ctx context.Context, run messages.Ref, h record.Head) error {
	if k.Semaphores == nil || len(h.Semaphores) == 0 {
		return nil
	}
	if h.Waits != queue.ParkSemaphore {
		if err := k.releaseAll(ctx, run, h); err != nil {
			return err
		}
	}
	names := waitsIn(h)
	if names == nil {
		return nil
	}
	waits, err := k.acquireAll(ctx, run, 0, h.ClaimSeq, names, 0)
	if errors.Is(err, errGone) {
		return nil // it was woken already
	}
	if err != nil || waits != "" {
		return err
	}
	return k.give(ctx, run)
}

// waitsIn returns the semaphores that a parked run may wait at, in order.
func waitsIn(h record.Head) []string {
	if h.Waits != queue.ParkSemaphore && h.Waits != queue.ParkPaused {
		return nil
	}
	var out []string
	for _, name := range h.Semaphores {
		if queue.IsPauseSemaphore(name) == (h.Waits == queue.ParkPaused) {
			out = append(out, name)
		}
	}
	rank := func(name string) int {
		of, _ := queue.QuotaOfSemaphore(name)
		return slices.Index([]queue.QuotaKind{queue.QuotaTenant, queue.QuotaAgent}, of.Kind)
	}
	slices.SortStableFunc(out, func(a, b string) int { return rank(a) - rank(b) })
	return out
}

// maxGiven bounds the permits that one release grants; a run that was granted one looks again when it releases it. Runs that no
// longer wait do not count: with a thousand of them at the head of the queue, the runs behind would never be reached.
const maxGiven = 1000

// LookAt grants the free permits of a semaphore to the runs that wait, in order, and wakes them. Without a cap it wakes all of
// them, which may take a while.
func (k *Controller) LookAt(ctx context.Context, name string) error {
	return k.lookAt(ctx, name, math.MaxInt)
}

func (k *Controller) lookAt(ctx context.Context, name string, most int) error {
	for given := 0; given < most; {
		run, at, err := k.Semaphores.First(ctx, name)
		if err != nil || at == 0 {
			return err
		}
		switch got, err := k.grant(ctx, name, run); {
		case err != nil:
			return err
		case got == noPermit:
			return nil
		case got != noNeed:
			given++
			err := k.give(ctx, run)
			if record.IsGone(err) {
				err = k.endWaiting(ctx, run, name)
			}
			if err != nil {
				return err
			}
		}
		if err := k.Semaphores.Unwait(ctx, name, run, at); err != nil {
			return err
		}
	}
	return nil
}

// mayWait reports whether a run may wait at a semaphore or be about to.
func mayWait(h record.Head, name string) bool {
	switch h.Phase {
	case record.PhaseFinished:
		return false
	case record.PhaseParked:
		return slices.Contains(waitsIn(h), name)
	default:
		return true
	}
}

// Outcomes of an attempt to give a run a permit.
const (
	noPermit  = iota // none is free
	newPermit        // granted now
	hasPermit        // held already, or none is needed
	noNeed           // the run no longer waits
)

// grant gives a permit to the first run in the queue. Whether it still waits is read between reading the semaphore and storing
// it, as in owns.
func (k *Controller) grant(ctx context.Context, name string, run messages.Ref) (got int, err error) {
	err = k.changeSemaphore(ctx, name, func(l *queue.Semaphore, _ bool) (bool, error) {
		permits, has := k.capOf(name, l), l.Of(run) >= 0
		if got = noPermit; permits != NoCap && !has && len(l.Permits) >= permits && permits > 0 {
			return false, nil
		}
		last, ok, err := k.Log.Last(ctx, run)
		switch {
		case err != nil:
			return false, fmt.Errorf("read %s: %w", run, err)
		case !ok || !mayWait(last.Head, name):
			got = noNeed
			return false, nil
		case has || permits == NoCap:
			got = hasPermit
			return false, nil
		case len(l.Permits) >= permits:
			return false, nil
		}
		got = newPermit
		return true, k.addPermit(ctx, name, l, queue.Permit{Run: queue.HolderOf(run)})
	})
	return got, err
}

// give wakes a run that is parked for a permit. A run that has not parked yet finds the permit itself.
func (k *Controller) give(ctx context.Context, run messages.Ref) error {
	for range maxConflicts {
		last, ok, err := k.Log.Last(ctx, run)
		if err != nil || !ok {
			return err
		}
		if last.Head.Phase == record.PhaseParked && waitsIn(last.Head) != nil {
			last, err = k.append(ctx, run, last, &record.SessionGranted{Park: last.Head.ParkSeq})
			if errors.Is(err, ErrConflict) {
				continue
			}
			if err != nil {
				return err
			}
		}
		return k.wakeIfReady(ctx, run, &last)
	}
	return fmt.Errorf("give %s its permit: %w after %d tries", run, ErrConflict, maxConflicts)
}

// LookAtAll is LookAt at every semaphore.
func (k *Controller) LookAtAll(ctx context.Context) error {
	if k.Semaphores == nil {
		return nil
	}
	return k.eachSemaphore(ctx, k.LookAt)
}

// SweepSemaphores repairs semaphores: it releases permits of runs that have ended or wait for something else, and grants free permits
// whose release was lost.
func (k *Controller) SweepSemaphores(ctx context.Context) error {
	if k.Semaphores == nil {
		return nil
	}
	return k.eachSemaphore(ctx, k.sweepSemaphore)
}

// eachSemaphore calls do for every semaphore. An error does not stop it.
func (k *Controller) eachSemaphore(ctx context.Context, do func(ctx context.Context, name string) error) error {
	var failed []error
	for name, err := range k.Semaphores.Semaphores(ctx) {
		if err == nil {
			err = do(ctx, name)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && len(failed) < maxSweepErrors {
			failed = append(failed, fmt.Errorf("semaphore %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

func (k *Controller) sweepSemaphore(ctx context.Context, name string) error {
	l, _, err := k.Semaphores.Semaphore(ctx, name)
	if err != nil {
		return err
	}
	for _, p := range l.Permits {
		run := p.Ref()
		if run.Run == messages.NoRun && k.Now().Sub(l.Time) < forgetAge {
			continue // a removal is under way
		}
		last, ok, err := k.Log.Last(ctx, run)
		if err != nil {
			return fmt.Errorf("read %s: %w", run, err)
		}
		h := last.Head
		if !ok {
			h.Phase = record.PhaseFinished // purged
		}
		if h.Phase != record.PhaseFinished && (h.Phase != record.PhaseParked || h.Waits == queue.ParkSemaphore) {
			continue
		}
		if err := k.release(ctx, run, h, name); err != nil {
			return err
		}
	}
	return k.LookAt(ctx, name)
}

// repairPermits is settlePermits for a sweep. It leaves a run alone that is in its queue.
func (k *Controller) repairPermits(ctx context.Context, run messages.Ref, h record.Head) error {
	if k.Semaphores == nil {
		return nil
	}
	for _, name := range waitsIn(h) {
		at, err := k.Semaphores.Waiting(ctx, name, run)
		if err != nil || at != 0 {
			return err
		}
	}
	return k.settlePermits(ctx, run, h)
}

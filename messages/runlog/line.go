package runlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Lines keeps who has a place in each line and who waits for one. Safe for concurrent use. No read is stale.
type Lines interface {
	Places
	Waits
}

// Places are those of each line.
type Places interface {
	// Line is who has the places of a line and the revision of that; nobody and 0 for one that nobody knows.
	Line(ctx context.Context, line string) (l messages.Line, revision uint64, err error)
	// PutLine stores it in place of a revision. ErrConflict: another one is stored.
	PutLine(ctx context.Context, line string, revision uint64, l messages.Line) error
	// Lines are the lines that somebody had a place in or waited in, by name.
	Lines(ctx context.Context) iter.Seq2[string, error]
}

// Waits are those for a place of each line.
type Waits interface {
	// Wait puts a run at the end of those that wait. One that waits already keeps its position.
	Wait(ctx context.Context, line string, run messages.Ref) error
	// Waiting is the position of a run, a number that grows along the line and is never given again; 0: it does not wait.
	Waiting(ctx context.Context, line string, run messages.Ref) (at uint64, err error)
	// First is who has waited longest, and its position; 0: nobody waits.
	First(ctx context.Context, line string) (run messages.Ref, at uint64, err error)
	// Unwait ends the wait at a position. One that is over is no error.
	Unwait(ctx context.Context, line string, run messages.Ref, at uint64) error
}

// NoCap is the Cap of a line that lets everybody pass.
const NoCap = -1

// Caps says how many places lines have, of all but those of concurrency keys. It costs no request and may be some
// seconds behind.
type Caps interface {
	Cap(line string) int
}

// LinesOf are the lines in which a run must have a place before it works, in the one order in which all runs ask for
// them: so no two ever wait for each other. What is its tenant's own comes first, so that a tenant which waits holds
// nothing that others want.
func (k *Controller) LinesOf(t *messages.Task) []string {
	if k.Lines == nil {
		return nil
	}
	var out []string
	if t.Concurrency != nil {
		out = append(out, messages.KeyLine(t.Tenant, t.Concurrency.Key))
	}
	if k.Caps == nil {
		return out
	}
	for _, line := range []string{messages.TenantLine(t.Tenant), messages.AgentLine(t.Agent)} {
		if k.Caps.Cap(line) != NoCap {
			out = append(out, line)
		}
	}
	return out
}

// PausedFor is the line of the pause that keeps a run from its next step; empty: there is none. Provider, unless it
// is empty, is one without which the run cannot go on.
func (k *Controller) PausedFor(t *messages.Task, provider string) string {
	if k.Lines == nil || k.Caps == nil {
		return ""
	}
	for _, of := range []messages.QuotaRef{
		{Kind: messages.QuotaTenant, Name: t.Tenant}, {Kind: messages.QuotaAgent, Name: t.Agent}, {Kind: messages.QuotaProvider, Name: provider},
	} {
		if line := messages.PausedLine(of); of.Name != "" && k.Caps.Cap(line) == 0 {
			return line
		}
	}
	return ""
}

func (k *Controller) capOf(line string, l *messages.Line) int {
	switch {
	case messages.IsKeyLine(line):
		return max(l.Limit, 1)
	case k.Caps == nil:
		return NoCap
	default:
		return k.Caps.Cap(line)
	}
}

// JoinLines asks for a place in each of some lines, in their order, for the claim at a sequence. It stops at the first
// that has none and returns its name: the run waits there, and holds what it has. Limit, unless it is 0, is how many
// places a line of a key has from now on. Doing it again is harmless. A run without its place parks; Close then sees to
// it that it is given one.
func (k *Controller) JoinLines(ctx context.Context, run messages.Ref, claim uint64, lines []string, limit int) (waits string, err error) {
	return k.joinLines(ctx, run, claim, claim, lines, limit)
}

// joinLines is JoinLines with the last claim of the run, which is claim itself unless the run is parked.
func (k *Controller) joinLines(ctx context.Context, run messages.Ref, claim, last uint64, lines []string, limit int) (waits string, err error) {
	for i, line := range lines {
		has, err := k.joinLine(ctx, run, claim, line, limit)
		if err != nil {
			return "", fmt.Errorf("line %s: %w", line, err)
		}
		if has {
			continue
		}
		for _, later := range lines[i+1:] {
			if err := k.dropPlace(ctx, run, last, later); err != nil {
				return "", fmt.Errorf("line %s: %w", later, err)
			}
		}
		return line, nil
	}
	return "", nil
}

// dropPlace gives up a place that a run got before a cap was set on an earlier line: who waits holds no later ones.
func (k *Controller) dropPlace(ctx context.Context, run messages.Ref, claim uint64, line string) error {
	had := false
	err := k.changeLine(ctx, line, func(l *messages.Line, _ bool) (bool, error) {
		i := l.Of(run)
		if had = i >= 0 && l.Places[i].Claim <= claim; had {
			l.Places = slices.Delete(l.Places, i, i+1)
		}
		return had, nil
	})
	if err != nil || !had {
		return err
	}
	return k.lookAt(ctx, line, maxGiven)
}

// joinLine asks for a place in one line, for a claim, or for a parked run with the claim 0.
func (k *Controller) joinLine(ctx context.Context, run messages.Ref, claim uint64, line string, limit int) (has bool, err error) {
	if !messages.IsKeyLine(line) {
		limit = 0
	}
	for waits := false; ; waits = true { // once before it waits, and once after
		var at uint64 // where it still waits
		err = k.changeLine(ctx, line, func(l *messages.Line, isNew bool) (bool, error) {
			changed := limit > 0 && l.Limit != limit
			if changed {
				l.Limit = limit
			}
			got, where, err := k.enter(ctx, run, claim, line, l)
			has, at = got != noPlace, where
			return changed || got == newPlace || !has && isNew, err // a line that somebody waits in must be found
		})
		switch {
		case err != nil:
			return false, err
		case at != 0:
			return has, k.Lines.Unwait(ctx, line, run, at)
		case has || waits:
			return has, nil
		}
		if err := k.wait(ctx, run, claim, line); err != nil {
			return false, err
		}
		if err := k.lookAt(ctx, line, maxGiven); err != nil {
			return false, err
		}
	}
}

// wait puts a run at the end of those that wait. Each claim waits anew: whoever is about to end an earlier wait, and was
// slow, must not end this one.
func (k *Controller) wait(ctx context.Context, run messages.Ref, claim uint64, line string) error {
	if claim != 0 {
		at, err := k.Lines.Waiting(ctx, line, run)
		if err != nil {
			return err
		}
		if at != 0 {
			if err := k.owns(ctx, run, claim); err != nil {
				return err
			}
			if err := k.Lines.Unwait(ctx, line, run, at); err != nil {
				return err
			}
		}
	}
	return k.Lines.Wait(ctx, line, run)
}

// enter puts a run into the places of a line if one is free and nobody waits for it longer, and tells where the run
// still waits.
func (k *Controller) enter(ctx context.Context, run messages.Ref, claim uint64, line string, l *messages.Line) (got int, at uint64, err error) {
	places, i := k.capOf(line, l), l.Of(run)
	switch {
	case places == NoCap:
		return itsPlace, 0, nil
	case i >= 0 && l.Places[i].Claim >= claim:
		return itsPlace, 0, nil
	case i >= 0:
		l.Places[i].Claim = claim
		if at, err = k.Lines.Waiting(ctx, line, run); err != nil {
			return noPlace, 0, err
		}
	case len(l.Places) >= places:
		return noPlace, 0, nil
	default:
		var first messages.Ref
		if first, at, err = k.Lines.First(ctx, line); err != nil || at != 0 && first != run {
			return noPlace, 0, err
		}
		l.Places = append(l.Places, messages.Place{Run: messages.PlaceOf(run), Claim: claim})
		if claim == 0 {
			at = 0 // whoever gives it sees to that
		}
	}
	return newPlace, at, k.owns(ctx, run, claim)
}

// owns fails unless the claim at a sequence is still the run's, or the run is parked for 0. It is asked after the line
// was read and before it is stored: whoever ends or parks the run later changes the line or takes the run out of it.
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

// errGone means that somebody else has the run by now, or it has ended.
var errGone = errors.New("another worker owns the run")

// changeLine stores what change makes of a line, unless it is false.
func (k *Controller) changeLine(ctx context.Context, line string, change func(l *messages.Line, isNew bool) (bool, error)) error {
	for try := range maxConflicts {
		l, revision, err := k.Lines.Line(ctx, line)
		if err != nil {
			return err
		}
		l.Places = slices.Clone(l.Places)
		changed, err := change(&l, revision == 0)
		if err != nil || !changed {
			return err
		}
		l.Time = k.Now()
		if err = k.Lines.PutLine(ctx, line, revision, l); !errors.Is(err, ErrConflict) {
			return err
		}
		if err := pause(ctx, rand.N(time.Duration(min(try, 20)+1)*time.Millisecond)); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w after %d tries", ErrConflict, maxConflicts)
}

// leaveLines gives the places of a run back and passes them on. A park gives back only what its own claim used, or
// nobody came for: a later claim may have the others by now.
func (k *Controller) leaveLines(ctx context.Context, run messages.Ref, h record.Head) error {
	if k.Lines == nil {
		return nil
	}
	for _, line := range h.Lines {
		if messages.IsPausedLine(line) {
			continue // there are no places in it
		}
		if err := k.leaveLine(ctx, run, h, line); err != nil {
			return fmt.Errorf("line %s: %w", line, err)
		}
		if err := k.lookAt(ctx, line, maxGiven); err != nil {
			return fmt.Errorf("line %s: %w", line, err)
		}
	}
	return nil
}

func (k *Controller) leaveLine(ctx context.Context, run messages.Ref, h record.Head, line string) error {
	return k.changeLine(ctx, line, func(l *messages.Line, _ bool) (bool, error) {
		switch i := l.Of(run); {
		case i < 0: // stored all the same, so that an earlier owner that is about to join fails
		case h.Phase != record.PhaseFinished && l.Places[i].Claim > h.ClaimSeq:
			return false, nil
		default:
			l.Places = slices.Delete(l.Places, i, i+1)
		}
		return true, nil
	})
}

// settlePlaces is for a run that is parked: it gives its places back, unless it waits in a line, where whoever has a
// place is to be woken. Its park is in the log by now, so either this sees that it has one, or whoever gives it sees
// the park.
func (k *Controller) settlePlaces(ctx context.Context, run messages.Ref, h record.Head) error {
	if k.Lines == nil || len(h.Lines) == 0 {
		return nil
	}
	if h.Waits != messages.ParkLine {
		if err := k.leaveLines(ctx, run, h); err != nil {
			return err
		}
	}
	lines := waitsIn(h)
	if lines == nil {
		return nil
	}
	waits, err := k.joinLines(ctx, run, 0, h.ClaimSeq, lines, 0)
	if errors.Is(err, errGone) {
		return nil // it goes on already
	}
	if err != nil || waits != "" {
		return err
	}
	return k.give(ctx, run)
}

// waitsIn are the lines that a parked run may wait in, in their order.
func waitsIn(h record.Head) []string {
	if h.Waits != messages.ParkLine && h.Waits != messages.ParkPaused {
		return nil
	}
	var out []string
	for _, line := range h.Lines {
		if messages.IsPausedLine(line) == (h.Waits == messages.ParkPaused) {
			out = append(out, line)
		}
	}
	rank := func(line string) int {
		of, _ := messages.QuotaOfLine(line)
		return slices.Index([]messages.QuotaKind{messages.QuotaTenant, messages.QuotaAgent}, of.Kind)
	}
	slices.SortStableFunc(out, func(a, b string) int { return rank(a) - rank(b) })
	return out
}

// maxGiven bounds the places that one look gives on the way. Whoever was given one looks again when it leaves. Those
// that do not wait any more are not counted: nobody would look for who stands behind a thousand of them.
const maxGiven = 1000

// LookAt gives the free places of a line to those that wait for one, in their order, and wakes them. Without a cap
// these are all, which may take a while.
func (k *Controller) LookAt(ctx context.Context, line string) error {
	return k.lookAt(ctx, line, math.MaxInt)
}

func (k *Controller) lookAt(ctx context.Context, line string, most int) error {
	for given := 0; given < most; {
		run, at, err := k.Lines.First(ctx, line)
		if err != nil || at == 0 {
			return err
		}
		switch got, err := k.place(ctx, line, run); {
		case err != nil:
			return err
		case got == noPlace:
			return nil
		case got != noNeed:
			given++
			if err := k.give(ctx, run); err != nil {
				return err
			}
		}
		if err := k.Lines.Unwait(ctx, line, run, at); err != nil {
			return err
		}
	}
	return nil
}

// mayWait reports whether a run can be one that waits in a line, or is about to.
func mayWait(h record.Head, line string) bool {
	switch h.Phase {
	case record.PhaseFinished:
		return false
	case record.PhaseParked:
		return slices.Contains(waitsIn(h), line)
	default:
		return true
	}
}

// What came of the attempt to give a run a place.
const (
	noPlace  = iota // there is none
	newPlace        // the line changed: it has one
	itsPlace        // it had one, or needs none
	noNeed          // it does not wait any more
)

// place gives the first that waits a place. Whether it still waits is asked after the line was read and before it is
// stored, as in owns.
func (k *Controller) place(ctx context.Context, line string, run messages.Ref) (got int, err error) {
	err = k.changeLine(ctx, line, func(l *messages.Line, _ bool) (bool, error) {
		places, has := k.capOf(line, l), l.Of(run) >= 0
		if got = noPlace; places != NoCap && !has && len(l.Places) >= places && places > 0 {
			return false, nil
		}
		last, ok, err := k.Log.Last(ctx, run)
		switch {
		case err != nil:
			return false, fmt.Errorf("read %s: %w", run, err)
		case !ok || !mayWait(last.Head, line):
			got = noNeed
			return false, nil
		case has || places == NoCap:
			got = itsPlace
			return false, nil
		case len(l.Places) >= places:
			return false, nil
		}
		got = newPlace
		l.Places = append(l.Places, messages.Place{Run: messages.PlaceOf(run)})
		return true, nil
	})
	return got, err
}

// give wakes a run that is parked until it has a place. One that has not parked yet looks itself.
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
	return fmt.Errorf("give %s its place: %w after %d tries", run, ErrConflict, maxConflicts)
}

// LookAtAll is LookAt at every line.
func (k *Controller) LookAtAll(ctx context.Context) error {
	if k.Lines == nil {
		return nil
	}
	return k.eachLine(ctx, k.LookAt)
}

// SweepLines repairs what was lost of lines: places of runs that have ended or wait for something else, and places
// that nobody passed on.
func (k *Controller) SweepLines(ctx context.Context) error {
	if k.Lines == nil {
		return nil
	}
	return k.eachLine(ctx, k.sweepLine)
}

// eachLine does something with every line. One that fails does not keep it from the others.
func (k *Controller) eachLine(ctx context.Context, do func(ctx context.Context, line string) error) error {
	var failed []error
	for line, err := range k.Lines.Lines(ctx) {
		if err == nil {
			err = do(ctx, line)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && len(failed) < maxSweepErrors {
			failed = append(failed, fmt.Errorf("line %s: %w", line, err))
		}
	}
	return errors.Join(failed...)
}

func (k *Controller) sweepLine(ctx context.Context, line string) error {
	l, _, err := k.Lines.Line(ctx, line)
	if err != nil {
		return err
	}
	for _, p := range l.Places {
		run := p.Ref()
		last, ok, err := k.Log.Last(ctx, run)
		if err != nil {
			return fmt.Errorf("read %s: %w", run, err)
		}
		h := last.Head
		if !ok {
			h.Phase = record.PhaseFinished // purged
		}
		if h.Phase != record.PhaseFinished && (h.Phase != record.PhaseParked || h.Waits == messages.ParkLine) {
			continue
		}
		if err := k.leaveLine(ctx, run, h, line); err != nil {
			return err
		}
	}
	return k.LookAt(ctx, line)
}

// repairPermits is settlePlaces for a sweep, which leaves alone who waits as it should.
func (k *Controller) repairPermits(ctx context.Context, run messages.Ref, h record.Head) error {
	if k.Lines == nil {
		return nil
	}
	for _, line := range waitsIn(h) {
		at, err := k.Lines.Waiting(ctx, line, run)
		if err != nil || at != 0 {
			return err
		}
	}
	return k.settlePlaces(ctx, run, h)
}

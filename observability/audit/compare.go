package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	maxNumbers     = 100             // that a comparison lists
	compareTries   = 4               // for reads are answered by replicas that may be behind
	compareTimeout = 2 * time.Minute // of one run
	maxReason      = 512
)

// comparer compares the events of runs with their logs. An attacker who forges or omits events would have to change the log as
// well, which only the owner of the run can.
type comparer struct {
	bus    *bus.Bus
	logs   *runlogs.Store
	recent *runlogs.Recent
	pause  time.Duration // between tries
}

func newComparer(cfg *Config) comparer {
	logs := runlogs.New(cfg.Bus, runlogs.Config{Sealer: cfg.Sealer})
	return comparer{cfg.Bus, logs, logs.Recent(), cfg.Pause}
}

// ended compares what was seen of the events and of the log of a run that has ended, and if that is not the same, or not all, what is stored. An
// error is that of NATS.
func (c *comparer) ended(ctx context.Context, run messages.Ref, seen map[uint64]Hash, live bool) (*Comparison, error) {
	if len(seen) > 0 {
		ctx, cancel := context.WithTimeout(ctx, compareTimeout)
		defer cancel()
		out := &Comparison{Outcome: OutcomeComplete, run: run}
		want, err := c.recently(ctx, run, out, live)
		if err != nil {
			*out = Comparison{Outcome: OutcomeComplete, run: run}
			want, err = c.stored(ctx, run, out, false)
		}
		if err == nil && out.Entries > 0 && maps.Equal(want, seen) {
			return out, nil
		}
	}
	return c.compare(ctx, run, false)
}

// How often a log is looked for that may be on its way: the end of a run is stored before its event, but comes by another consumer.
const (
	recentTries = 20
	recentPause = 10 * time.Millisecond
)

// recently are the hashes of the events that a log gives, as it came. An error says that it must be read. The log of a run that ended long ago will
// come no more, so it is waited for only if some of it has come, or with live.
func (c *comparer) recently(ctx context.Context, run messages.Ref, out *Comparison, live bool) (map[uint64]Hash, error) {
	for range recentTries {
		if log, ok := c.recent.Take(ctx, run); ok {
			return derived(run, log, runlog.Tail, out)
		}
		if !live && !c.recent.Holds(run) {
			break
		}
		if err := bus.Pause(ctx, recentPause); err != nil {
			return nil, err
		}
	}
	return nil, runlog.ErrNotFound
}

// compare compares a run that has ended, or with through those of its events that its log says are stored. An error is
// that of NATS.
func (c *comparer) compare(ctx context.Context, run messages.Ref, through bool) (*Comparison, error) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	var out *Comparison
	for try := range compareTries {
		if try > 0 {
			if err := bus.Pause(ctx, c.pause); err != nil {
				return nil, err
			}
		}
		var err error
		if out, err = c.once(ctx, run, through); err != nil {
			return nil, err
		}
		if out.Outcome == OutcomeComplete || out.Outcome == OutcomeGone {
			break
		}
	}
	return out, nil
}

func (c *comparer) once(ctx context.Context, run messages.Ref, through bool) (*Comparison, error) {
	out := &Comparison{Outcome: OutcomeComplete, run: run}
	want, err := c.stored(ctx, run, out, through)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		out.Outcome, out.Reason = OutcomeUnreadable, strict.Clip(err.Error(), maxReason)
		return out, nil
	case out.Entries == 0:
		out.Outcome = OutcomeGone
		return out, nil
	}
	seen := map[uint64]bool{} // whether it is right
	for f, err := range events.New(c.bus).FeedRun(ctx, run) {
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", run, err)
		}
		for e, text := range f.Events() { // what is none stands in the chain as what it is
			n := e.Number()
			sum, expected := want[n]
			if !expected {
				if !through {
					out.note(&out.Extra, n)
				}
				continue
			}
			right := sum == sha256.Sum256(text)
			if before, again := seen[n]; !again || before {
				seen[n] = right // all that are stored must be
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(want)) {
		right, there := seen[n]
		switch {
		case !there:
			out.note(&out.Missing, n)
		case !right:
			out.note(&out.Altered, n)
		}
	}
	return out, nil
}

// stored are the hashes of the events that a log gives as it is stored.
func (c *comparer) stored(ctx context.Context, run messages.Ref, out *Comparison, through bool) (map[uint64]Hash, error) {
	limit := uint64(runlog.Tail)
	if through {
		last, ok, err := c.logs.Last(ctx, run)
		if err != nil || !ok {
			return nil, err
		}
		limit = last.Head.EventsThrough
	}
	return derived(run, c.logs.Read(ctx, run, 0, limit), limit, out)
}

// derived are the hashes of the events of the entries up to limit.
func derived(run messages.Ref, log iter.Seq2[record.Entry, error], limit uint64, out *Comparison) (map[uint64]Hash, error) {
	want := map[uint64]Hash{}
	var text []byte
	for e, err := range log {
		if err != nil {
			return nil, err
		}
		if e.Seq > limit {
			break
		}
		out.Entries++
		for _, event := range record.Events(run, e) {
			text = record.AppendEvent(text[:0], &event)
			want[event.Number()] = sha256.Sum256(text)
			out.Events++
		}
	}
	return want, nil
}

func (c *Comparison) note(list *[]uint64, n uint64) {
	c.Outcome = OutcomeDiffers
	switch {
	case slices.Contains(*list, n):
	case len(*list) < maxNumbers:
		*list = append(*list, n)
	default:
		c.More = true
	}
}

// same reports whether two comparisons of a run came out alike.
func (c *Comparison) same(d *Comparison) bool {
	return d != nil && c.Outcome == d.Outcome && slices.Equal(c.Missing, d.Missing) && slices.Equal(c.Altered, d.Altered) && slices.Equal(c.Extra, d.Extra)
}

// sweep compares what no end of a run calls for: runs that ended a while ago and have no run_finished, and what the logs
// of the others say is stored. It hands on what is wrong.
func (c *comparer) sweep(ctx context.Context, settled time.Duration, found func(*Comparison)) error {
	for run, err := range c.logs.Runs(ctx) {
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		last, ok, err := c.logs.Last(ctx, run)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !ok || time.Since(last.Head.Time) < settled {
			continue // what cannot be read is found at the run's end
		}
		ended := last.Head.Phase == record.PhaseFinished
		if ended {
			told, err := c.logs.Ended(ctx, run)
			if err != nil {
				return fmt.Errorf("sweep: %w", err)
			}
			if told { // it was compared then
				continue
			}
		}
		out, err := c.compare(ctx, run, !ended)
		if err != nil {
			return err
		}
		if out.Outcome == OutcomeDiffers || out.Outcome == OutcomeUnreadable {
			found(out)
		}
	}
	return nil
}

// tenantToken returns the tenant in a subject of EVENTS, or "". The subject may be anything: any publisher may have chosen it.
func tenantToken(subject string) string {
	t := strings.Split(subject, ".")
	const tokens = 4
	if len(t) != tokens || !strict.ValidToken(t[1]) {
		return ""
	}
	return t[1]
}

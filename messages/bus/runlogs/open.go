package runlogs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

const (
	// How old an entry must be for the record of open runs to build on it: a loss of power may take the newest entries,
	// and others then get their sequences. It is more than the two minutes after which NATS syncs by default.
	settleTime = 5 * time.Minute
	// How long ago a run may have ended that is looked at while nothing is recorded, as with runlog.Controller.
	endedFor = time.Hour

	openWindow  = 100_000         // entries that are read at once
	openSilence = 5 * time.Second // after which what was not read is left to the next pass
	checkWindow = 20_000          // entries of the background check, each pass
	checkMost   = 2_000           // runs that it looks at
)

// OpenRuns knows the runs that have not ended, so that a sweep need not look at every run that has a log. The logs alone are the
// truth. What is recorded, in OPEN, is the set of open runs as of a position in RUNS; the entries after it are read again in each pass. Each
// partition of RUNS has a set and a position of its own.
// No writer of a log writes there, so a crash between the two can hide no run.
//
//   - The entry at the position is older than some minutes, so an end of RUNS that is lost with its machine's power is behind it.
//   - A record of another stream, one that is ahead of RUNS, or one of which a part is missing is given up. RUNS is then read from its
//     beginning, headers alone, and the set is recorded from time to time, so that a pass that is interrupted is not for nothing.
//   - Two passes at once do no harm: the position moves by compare-and-set, and the parts of a set belong to one pass.
//   - Each pass compares some older entries with the set, round and round.
type OpenRuns struct {
	Logs *Store
	// Look looks at a run, and may repair it. A run for which it fails is looked at again in the next pass.
	Look   func(ctx context.Context, run messages.Ref) (runlog.Swept, error)
	Keep   bool          // compare, and record what was found, which needs the right to write to OPEN
	Settle time.Duration // default 5 min
}

// Looked is what a pass over the open runs did.
type Looked struct {
	Runs   int // that were looked at
	Read   int // entries of RUNS, without their records
	Missed int // open runs that were not in the set, found by comparing
}

// Each looks at every run that has not ended, and at those that ended a short while ago. An error says that not all could be listed:
// the caller may look at all runs that have a log instead. What Look returns is not part of it.
func (o *OpenRuns) Each(ctx context.Context) (Looked, error) {
	var did Looked
	for _, stream := range o.Logs.bus.Partitions(bus.StreamRuns).Names() {
		p := &openPass{OpenRuns: o, stream: stream, failed: map[messages.Ref]bool{}}
		if p.Settle == 0 {
			p.Settle = settleTime
		}
		err := p.run(ctx)
		did.Runs, did.Read, did.Missed = did.Runs+p.did.Runs, did.Read+p.did.Read, did.Missed+p.did.Missed
		if err != nil {
			return did, err
		}
	}
	return did, nil
}

// openPass is one pass over one stream of logs.
type openPass struct {
	*OpenRuns

	stream string
	is     runsState
	kept   openRecord // as it is stored, or as it is to be
	now    openSet    // with the entries after it
	did    Looked

	failed map[messages.Ref]bool // ended runs at which this pass could not look
}

func (p *openPass) run(ctx context.Context) (err error) {
	if p.is, err = p.Logs.state(ctx, p.stream); err != nil {
		return err
	}
	if p.kept, err = p.Logs.loadOpen(ctx, p.stream, p.is); err != nil {
		return err
	}
	p.now = p.kept.openSet
	if err := p.follow(ctx); err != nil {
		return err
	}
	if err := p.lookAtOpen(ctx); err != nil {
		return err
	}
	if !p.Keep {
		return nil
	}
	if err := p.compare(ctx); err != nil {
		return err
	}
	return p.Logs.storeOpen(ctx, &p.kept)
}

// follow reads the entries after the record. As long as they have settled they are for the record too.
func (p *openPass) follow(ctx context.Context) error {
	settled := p.is.Newest.Add(-p.Settle)
	fresh, stopped := false, false
	for position := p.kept.Position; position < p.is.Last && !stopped; {
		n, cut := 0, false
		for m, err := range p.Logs.heads(ctx, p.stream, position, p.is.Last) {
			if err != nil {
				return err
			}
			if cut = !fresh && m.Time.After(settled); cut {
				break
			}
			p.add(m)
			position = m.Seq
			if n++; n == openWindow {
				break
			}
		}
		p.did.Read += n
		if err := p.lookAtEnded(ctx); err != nil {
			return err
		}
		if !fresh {
			p.kept.Position = position
		}
		if n == openWindow && !fresh && p.Keep {
			if err := p.Logs.storeOpen(ctx, &p.kept); err != nil {
				return err
			}
		}
		if cut {
			fresh = true
			p.now = p.kept.clone()
		}
		stopped = n == 0 && !cut // what is left was removed, or has not come here yet
	}
	if !fresh {
		p.now = p.kept.clone()
	}
	return nil
}

// add takes an entry into account. One that cannot be read is of an open run, until Look says otherwise.
func (p *openPass) add(m bus.Message) {
	run, ok := runOfLog(m.Subject)
	if !ok || !p.Logs.bus.Partitions(bus.StreamRuns).Owns(p.stream, run) {
		return
	}
	head, err := record.DecodeHead(m.Header.Get(headerHead))
	switch {
	case err != nil || head.Phase != record.PhaseFinished:
		delete(p.now.Ended, run)
		p.now.Open[run] = true
	case m.Time.Before(p.is.Newest.Add(-endedFor)):
		delete(p.now.Open, run)
		delete(p.now.Ended, run)
	default:
		delete(p.now.Open, run)
		p.now.Ended[run] = true
	}
}

// lookAtEnded looks at the runs that have ended, so that few are remembered at a time.
func (p *openPass) lookAtEnded(ctx context.Context) error {
	for run := range p.now.Ended {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.failed[run] {
			continue
		}
		p.did.Runs++
		switch s, err := p.Look(ctx, run); {
		case err != nil:
			p.failed[run] = true
		case s.Over:
			delete(p.now.Ended, run)
		case !s.Ended: // the entry that says so does not count
			delete(p.now.Ended, run)
			p.now.Open[run] = true
		}
	}
	return nil
}

// lookAtOpen looks at the runs that have not ended. One that is over leaves the record, unless it ended with an entry that the record
// does not cover: that entry may yet be lost.
func (p *openPass) lookAtOpen(ctx context.Context) error {
	for run := range p.now.Open {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.did.Runs++
		if s, err := p.Look(ctx, run); err == nil && s.Over && s.Seq <= p.kept.Position {
			delete(p.kept.Open, run)
		}
	}
	return nil
}

// compare reads some of the entries before the position again, and adds the open runs that are missing.
func (p *openPass) compare(ctx context.Context) error {
	if p.kept.Compared >= p.kept.Position {
		p.kept.Compared = 0
	}
	seen := &openPass{OpenRuns: p.OpenRuns, stream: p.stream, is: p.is, now: newOpenSet()}
	n := 0
	for m, err := range p.Logs.heads(ctx, p.stream, p.kept.Compared, p.kept.Position) {
		if err != nil {
			return err
		}
		seen.add(m)
		p.kept.Compared = m.Seq
		if n++; n == checkWindow || len(seen.now.Open) == checkMost {
			break
		}
	}
	if n == 0 {
		p.kept.Compared = p.kept.Position
	}
	p.did.Read += n
	for run := range seen.now.Open {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.kept.Open[run] || p.kept.Ended[run] {
			continue
		}
		p.did.Runs++
		if s, err := p.Look(ctx, run); err != nil || !s.Over {
			p.did.Missed++
			p.kept.Open[run] = true
		}
	}
	return nil
}

// runsState is where a stream of logs ends.
type runsState struct {
	Last    uint64
	Newest  time.Time
	Created time.Time
}

func (st *Store) state(ctx context.Context, stream string) (runsState, error) {
	var info struct {
		Created time.Time `json:"created"`
		State   struct {
			Last   uint64    `json:"last_seq"`
			Newest time.Time `json:"last_ts"`
		} `json:"state"`
	}
	if err := st.bus.Call(ctx, "STREAM.INFO."+stream, struct{}{}, &info); err != nil {
		return runsState{}, fmt.Errorf("look at %s: %w", stream, err)
	}
	return runsState{info.State.Last, info.State.Newest, info.Created}, nil
}

// heads yields the entries of all runs of a stream after a position and up to another, without their records.
func (st *Store) heads(ctx context.Context, stream string, after, through uint64) func(yield func(bus.Message, error) bool) {
	return func(yield func(bus.Message, error) bool) {
		if after >= through {
			return
		}
		t := &bus.Tail{Bus: st.bus, Stream: stream, Filter: everyLog, Room: bus.FollowRoom, Last: after}
		t.Start.DeliverPolicy, t.Start.HeadersOnly = jetstream.DeliverAllPolicy, true
		defer t.Close()
		for more := true; more; {
			m, err := t.Next(ctx, time.Now().Add(openSilence))
			if errors.Is(err, bus.ErrNothing) {
				return
			}
			if err != nil {
				yield(bus.Message{}, fmt.Errorf("read %s: %w", stream, err))
				return
			}
			if m.Seq > through || !yield(m.Message, nil) {
				return
			}
			more = m.Seq < through && m.Pending > 0
		}
	}
}

// openSet is runs that have not ended, and runs that have and were not found to be over since.
type openSet struct{ Open, Ended map[messages.Ref]bool }

func newOpenSet() openSet { return openSet{map[messages.Ref]bool{}, map[messages.Ref]bool{}} }

func (s openSet) clone() openSet { return openSet{maps.Clone(s.Open), maps.Clone(s.Ended)} }

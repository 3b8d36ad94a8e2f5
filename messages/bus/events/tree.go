package events

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// MaxTreeRuns bounds the runs below a run that are watched: no agent's delegate.total allows more.
const MaxTreeRuns = 1000

const (
	maxTreeWatched = 32              // runs of a tree that are watched at once; the others follow as these end
	treeSilence    = 5 * time.Second // after which a run that has ended and shows no event has none left
)

// Tree is how the events of a run and of all below it are watched.
type Tree struct {
	// Watch watches one run, as Store.Watch does.
	Watch func(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error]
	// Over reports whether a run has ended, or is gone.
	Over func(ctx context.Context, run messages.Ref) (bool, error)
}

// Events yields the events of a run and of all runs below it: those of each run as Watch does, and after the event with which its
// parent delegated. There is no other order among the events of different runs. It ends when all of these runs have ended. A run
// below of which no event is kept is an event of TypeEventsExpired.
func (how Tree) Events(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		t := &tree{Tree: how, tenant: run.Tenant, members: map[string]*member{}, heard: make(chan heardOf)}
		defer t.watching.Wait()
		defer cancel()
		t.add(&member{run: run})
		if err := t.follow(ctx, yield); err != nil {
			yield(messages.Event{}, err)
		}
	}
}

// tree is a run and all below it that are known so far. It belongs to the goroutine of the caller; each run that is watched has a
// goroutine that hands its events over.
type tree struct {
	Tree

	tenant   string
	members  map[string]*member
	waiting  []*member // to be watched
	heard    chan heardOf
	watching sync.WaitGroup
	active   int
}

// member is a run of a tree.
type member struct {
	run    messages.Ref
	parent string // empty: the root
	stop   context.CancelFunc
	since  time.Time       // watched since then
	told   time.Time       // its parent said then that it has ended, or has itself
	shown  bool            // an event has come
	held   *messages.Event // run_queued, until run_started says whose child it is
	over   bool
}

// heardOf is an event of a run, or the end of its watch.
type heardOf struct {
	*member

	event messages.Event
	err   error
	over  bool
}

func (t *tree) add(m *member) {
	if t.members[m.run.Run] != nil || len(t.members) > MaxTreeRuns {
		return
	}
	t.members[m.run.Run] = m
	t.waiting = append(t.waiting, m)
}

func (t *tree) follow(ctx context.Context, yield func(messages.Event, error) bool) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		for t.active < maxTreeWatched && len(t.waiting) > 0 {
			t.begin(ctx, t.waiting[0])
			t.waiting = t.waiting[1:]
		}
		if t.active == 0 {
			return nil
		}
		select {
		case h := <-t.heard:
			on, err := t.hear(h, yield)
			if err != nil || !on {
				return err
			}
		case now := <-look.C:
			on, err := t.giveUp(ctx, now, yield)
			if err != nil || !on {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin watches a run until it has ended.
func (t *tree) begin(ctx context.Context, m *member) {
	ctx, m.stop = context.WithCancel(ctx)
	m.since = time.Now()
	t.active++
	t.watching.Go(func() {
		defer m.stop()
		var failure error
		for e, err := range t.Watch(ctx, m.run) {
			if failure = err; err != nil {
				break
			}
			select {
			case t.heard <- heardOf{member: m, event: e}:
				continue
			case <-ctx.Done():
			}
			break
		}
		select {
		case t.heard <- heardOf{member: m, err: failure, over: true}:
		case <-ctx.Done():
		}
	})
}

// hear takes what came of a run into account, and hands its event on. It reports whether the caller wants more.
func (t *tree) hear(h heardOf, yield func(messages.Event, error) bool) (on bool, err error) {
	m := h.member
	switch {
	case m.over: // it was given up
		return true, nil
	case h.over:
		t.end(m)
		return true, h.err
	}
	m.shown = true
	e := &h.event
	if m.parent != "" && e.Name() == messages.EventRunQueued {
		m.held = e
		return true, nil
	}
	if e.Name() == messages.EventRunStarted && !m.isChild(e) {
		t.end(m)
		return true, nil
	}
	if m.held != nil {
		held := m.held
		if m.held = nil; !yield(*held, nil) {
			return false, nil
		}
	}
	t.learn(m, e)
	return yield(*e, nil), nil
}

// isChild reports whether run_started names the parent that was announced. The id of a child may be that of another run, whose task
// came from elsewhere.
func (m *member) isChild(started *messages.Event) bool {
	var d messages.RunStarted
	return m.parent == "" || json.Unmarshal(started.Data, &d) == nil && d.Parent != nil && d.Parent.Run == m.parent
}

// learn finds out from an event which runs there are below, and which of them have ended.
func (t *tree) learn(m *member, e *messages.Event) {
	switch e.Name() {
	case messages.EventDelegated:
		var d messages.DelegatedData
		if json.Unmarshal(e.Data, &d) != nil {
			return // of another version
		}
		for _, c := range d.Children {
			run := messages.Ref{Tenant: t.tenant, Run: c.Run}
			if run.Check() == nil {
				t.add(&member{run: run, parent: m.run.Run})
			}
		}
	case messages.EventChildEnded:
		var d messages.ChildEndedData
		if json.Unmarshal(e.Data, &d) != nil {
			return
		}
		if child := t.members[d.Run]; child != nil && child.parent == m.run.Run && child.told.IsZero() {
			child.told = time.Now()
		}
	default:
	}
}

// giveUp ends the watches of runs that ended so long ago that none of their events is left.
func (t *tree) giveUp(ctx context.Context, now time.Time, yield func(messages.Event, error) bool) (on bool, err error) {
	for _, m := range t.members {
		if m.over || m.shown || m.told.IsZero() || m.since.IsZero() || now.Sub(m.told) < treeSilence || now.Sub(m.since) < treeSilence {
			continue
		}
		over, err := t.Over(ctx, m.run)
		if err != nil {
			return false, fmt.Errorf("look for run %s: %w", m.run.Run, err)
		}
		if !over { // it is about to end
			m.told = now
			continue
		}
		t.end(m)
		if !yield(expired(m.run, now), nil) {
			return false, nil
		}
	}
	return true, nil
}

// expired stands for the events of a run of which none is kept.
func expired(run messages.Ref, now time.Time) messages.Event {
	return messages.Event{
		SpecVersion: "1.0", ID: run.Run + ".1", Source: "/tenants/" + run.Tenant, Type: TypeEventsExpired, Subject: run.Run, Time: now,
		DataContentType: "application/json", Sequence: "1", Data: json.RawMessage(`{"first":1,"last":1}`),
	}
}

// end ends the watch of a run. When a run has ended, so have those below it, or are about to.
func (t *tree) end(m *member) {
	m.over = true
	m.stop()
	t.active--
	for _, child := range t.members {
		if child.parent == m.run.Run && child.told.IsZero() {
			child.told = time.Now()
		}
	}
}

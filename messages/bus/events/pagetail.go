package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
)

// Timing of who reads events by pages.
const (
	pageAnswer = 5 * time.Second // of one request
	minQuiet   = time.Second     // without an event, before a page is asked for: a message may have been lost
	maxQuiet   = 30 * time.Second
)

// pageTailRoom is how many new events wait for a watcher; one that is slower reads them from pages.
const pageTailRoom = 128

// pageTail is the source of a watcher who may read no stream. What is stored comes in pages, what comes from then on by a
// plain subscription, whose messages have no place: where a running number is missing, a page is read again, and so it is
// from time to time, for the last message may be lost too. It belongs to one goroutine.
type pageTail struct {
	from *Store
	run  messages.Ref

	in     *bus.Inbox // of the run's events as they are published; nil: to be opened
	losses uint64     // of messages, as far as this side knows
	number uint64     // the highest running number that was given

	behind  bool // more is stored than was given, as far as is known
	after   uint64
	ready   []bus.TailMessage
	ahead   *bus.TailMessage // a message after a gap, which is given after the pages
	expired bool             // the first events are kept no more

	look   time.Time     // when to ask for a page
	quiet  time.Duration // until then, when there is nothing
	read   time.Time     // when the last page was asked for that came
	tries  int           // without an answer, in a row
	begin  time.Time     // of them
	opened bool          // a page has come, once
}

func (p *pageTail) Close() {
	if p.in != nil {
		p.in.Close()
		p.in = nil
	}
}

// Next implements source.
func (p *pageTail) Next(ctx context.Context, until time.Time) (bus.TailMessage, error) {
	for {
		if ctx.Err() != nil {
			return bus.TailMessage{}, context.Cause(ctx)
		}
		if err := p.open(ctx); err != nil {
			return bus.TailMessage{}, err
		}
		switch now := time.Now(); {
		case len(p.ready) > 0:
			m := p.ready[0]
			p.ready = p.ready[1:]
			return m, nil
		case p.ahead != nil && !p.behind:
			m := *p.ahead
			p.ahead = nil
			return m, nil
		case !now.Before(p.look):
			if err := p.page(ctx, now); err != nil {
				return bus.TailMessage{}, err
			}
			continue
		case until.IsZero() || p.behind || now.Before(until): // without an answer nothing is given up
		case p.read.Before(until):
			p.look = now
			continue
		default:
			return bus.TailMessage{}, bus.ErrNothing
		}
		if m := p.listen(ctx, until); m != nil {
			return *m, nil
		}
	}
}

// open subscribes, before the first page is asked for: nothing falls between the two but what a cluster does not know yet
// to be wanted here.
func (p *pageTail) open(ctx context.Context) error {
	if p.in != nil {
		return nil
	}
	in, err := bus.OpenInboxAt(p.from.bus.Conn(), p.run.EventFilter(), pageTailRoom)
	if err != nil {
		return fmt.Errorf("subscribe to events: %w", err)
	}
	p.in, p.behind, p.quiet, p.begin = in, true, minQuiet, time.Now()
	p.losses = p.lost()
	attempt, cancel := context.WithTimeout(ctx, p.from.bus.Answer())
	defer cancel()
	_ = p.from.bus.Conn().FlushWithContext(attempt) // without a connection it subscribes as soon as there is one
	return nil
}

// listen waits for an event, but no longer than until a page is to be asked for, or the caller's time. Nil: none that is
// next.
func (p *pageTail) listen(ctx context.Context, until time.Time) *bus.TailMessage {
	wait := min(time.Until(p.look), minQuiet)
	if !until.IsZero() && !p.behind {
		wait = min(wait, time.Until(until))
	}
	in, err := p.in.Next(ctx, wait)
	if n := p.lost(); n != p.losses {
		p.losses, p.behind, p.look, p.quiet = n, true, time.Now(), minQuiet
	}
	if err != nil {
		return nil // the caller looks why
	}
	m := &bus.TailMessage{Message: bus.Message{Subject: in.Subject, Data: in.Data, Time: time.Now()}}
	first, last := uint64(0), uint64(0)
	for e := range p.from.bus.Each(m.Message) {
		if last = e.Number(); first == 0 {
			first = last
		}
	}
	switch {
	case last <= p.number:
		return nil
	case first <= p.number+1: // the watcher passes over what it has had
		p.number, p.quiet = last, minQuiet
		if !p.behind {
			p.look = time.Now().Add(p.quiet)
		}
		return m
	case p.ahead == nil:
		p.ahead = m
	}
	p.behind, p.look = true, time.Now()
	return nil
}

// lost grows whenever messages may have been lost: the watcher was too slow, or there was no connection.
func (p *pageTail) lost() uint64 {
	dropped, _ := p.in.Sub.Dropped() // fails only when the connection is closed
	return p.from.bus.Conn().Stats().Reconnects + uint64(max(dropped, 0))
}

// page asks for a page once. Its error is final.
func (p *pageTail) page(ctx context.Context, now time.Time) error {
	attempt, cancel := context.WithTimeout(ctx, pageAnswer)
	defer cancel()
	page, err := p.from.bus.Pages()(attempt, &control.EventsRequest{Tenant: p.run.Tenant, ID: p.run.Run, After: p.after})
	if err != nil {
		return p.failed(ctx, err)
	}
	if page.More && page.Next <= p.after {
		return fmt.Errorf("follow %s: a page of events does not advance", p.run)
	}
	p.expired = p.expired || page.Expired
	for i, s := range page.Events {
		m, e, ok := p.from.paged(p.run, s)
		if !ok {
			continue
		}
		if p.number = max(p.number, e.Number()); page.More || i < len(page.Events)-1 {
			m.Pending = 1 // at least
		}
		p.ready = append(p.ready, m)
	}
	if len(page.Events) > 0 {
		p.quiet = minQuiet
	}
	p.after, p.behind, p.read, p.look, p.tries, p.opened = max(p.after, page.Next), page.More, now, now, 0, true
	if !page.More {
		p.look = now.Add(p.quiet)
		p.quiet = min(2*p.quiet, maxQuiet)
	}
	return nil
}

// failed plans the next try, unless there is to be none.
func (p *pageTail) failed(ctx context.Context, err error) error {
	var (
		problem *messages.Problem
		field   *messages.FieldError
	)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &field), errors.As(err, &problem) && !problem.Retryable, !p.opened && time.Since(p.begin) > p.from.bus.Budget():
		return fmt.Errorf("follow %s: %w", p.run, err)
	}
	p.behind, p.look = true, time.Now().Add(bus.Backoff(p.tries))
	p.tries++
	return nil
}

// paged is an event of a page as a message of the stream, if it is one of the run.
func (st *Store) paged(run messages.Ref, s control.StoredEvent) (bus.TailMessage, messages.Event, bool) {
	var e messages.Event
	if json.Unmarshal(s.Event, &e) != nil || !bus.IsOf(&e, run, e.Name()) {
		st.bus.Foreign()
		return bus.TailMessage{}, e, false
	}
	return bus.TailMessage{Message: bus.Message{Subject: run.EventSubject(e.Name()), Seq: s.Seq, Data: s.Event, Time: s.Time}}, e, true
}

// EventsOf is Events of all runs of a tenant, also for who may read no stream. Lists of runs are made of them.
func (st *Store) EventsOf(ctx context.Context, tenant string, since time.Time) iter.Seq2[messages.Event, error] {
	if st.bus.Pages() != nil {
		return st.eventsByPages(ctx, tenant, since)
	}
	return st.Events(ctx, (&control.EventsRequest{Tenant: tenant}).Filter(), since)
}

func (st *Store) eventsByPages(ctx context.Context, tenant string, since time.Time) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		r := control.EventsRequest{Tenant: tenant}
		if !since.IsZero() {
			r.Since = &since
		}
		for more := true; more; {
			page, err := st.bus.Pages()(ctx, &r)
			if err == nil && !r.Follow(page) && page.More {
				err = errors.New("a page does not advance")
			}
			if err != nil {
				yield(messages.Event{}, fmt.Errorf("read events: %w", err))
				return
			}
			for _, s := range page.Events {
				var e messages.Event
				if json.Unmarshal(s.Event, &e) != nil || !bus.IsOf(&e, messages.Ref{Tenant: tenant, Run: e.Subject}, e.Name()) {
					st.bus.Foreign()
					continue
				}
				if !yield(e, nil) {
					return
				}
			}
			more = page.More
		}
	}
}

package deadletters

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// ErrNoLetter means that there is no such dead letter, or it belongs to another tenant.
var ErrNoLetter = control.ErrNoLetter

// Letter is a dead letter as the stream has it.
type Letter struct {
	Seq uint64
	Of  control.DeadOf
	messages.Dead
}

// List yields dead letters, oldest first, that were stored after a sequence, or since a time if that is not nil: those
// of a tenant, or with an empty one those that name none. Of those stored a moment ago the newest may be missing.
func (st *Store) List(ctx context.Context, tenant string, after uint64, since *time.Time) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		filter := control.DeadUnaddressed
		if tenant != "" {
			if err := (messages.Ref{Tenant: tenant, Run: messages.NoRun}).Check(); err != nil {
				yield(Letter{}, err)
				return
			}
			filter = "dead." + tenant + ".>"
		}
		p := bus.Page{Seq: after + 1, Next: filter, Batch: bus.FirstPage, Bytes: bus.PageBytes}
		if since != nil && after == 0 {
			p.Seq, p.Since = 0, bus.StartTime(*since)
		}
		for m, err := range st.bus.Stream(bus.StreamDead).ScanPages(ctx, p) {
			if err != nil {
				yield(Letter{}, fmt.Errorf("read dead letters: %w", err))
				return
			}
			if d, ok := st.Read(m); ok && !yield(d, nil) {
				return
			}
		}
	}
}

// Read reads a letter; what is none is counted.
func (st *Store) Read(m bus.Message) (d Letter, ok bool) {
	d = Letter{Seq: m.Seq}
	if d.Of, ok = control.ParseDeadSubject(m.Subject); !ok || strict.Decode(m.Data, &d.Dead) != nil {
		st.bus.Foreign()
		return d, false
	}
	return d, true
}

// Get reads a letter from the stream's leader: one of the tenant, or with an empty one a letter that names none.
func (st *Store) Get(ctx context.Context, tenant string, seq uint64) (Letter, error) {
	m, ok, err := st.bus.Stream(bus.StreamDead).Get(ctx, bus.Lookup{Seq: seq})
	if err != nil {
		return Letter{}, fmt.Errorf("read dead letter %d: %w", seq, err)
	}
	if !ok || seq == 0 {
		return Letter{}, ErrNoLetter
	}
	d, ok := st.Read(m)
	if !ok || d.Of.Tenant != tenant {
		return Letter{}, ErrNoLetter
	}
	return d, nil
}

// OfRun reads the oldest letter of a run.
func (st *Store) OfRun(ctx context.Context, run messages.Ref) (Letter, bool, error) {
	if err := run.Check(); err != nil {
		return Letter{}, false, err
	}
	m, ok, err := st.bus.Stream(bus.StreamDead).Get(ctx, bus.Lookup{Seq: 1, Next: run.DeadSubject("*")})
	if err != nil || !ok {
		return Letter{}, false, err
	}
	d, ok := st.Read(m)
	return d, ok, nil
}

// Remove removes a letter; that it is gone already is a success.
func (st *Store) Remove(ctx context.Context, seq uint64) error {
	return st.bus.Stream(bus.StreamDead).Remove(ctx, seq)
}

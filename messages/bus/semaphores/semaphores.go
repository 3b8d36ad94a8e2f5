package semaphores

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	headerTTL   = "Nats-TTL"
	emptyKeyTTL = "1h" // how long the semaphore of a concurrency key or a workspace is kept without a holder: there may be many
)

var _ runlog.Semaphores = (*Store)(nil)

// Semaphore implements runlog.Semaphores.
func (st *Store) Semaphore(ctx context.Context, name string) (l queue.Semaphore, revision uint64, err error) {
	if err := queue.CheckSemaphore(name); err != nil {
		return l, 0, err
	}
	m, ok, err := st.bus.Stream(bus.StreamSemaphores).Get(ctx, bus.Lookup{Last: bus.HoldersPrefix + name})
	if err != nil || !ok {
		return l, 0, err
	}
	if err := strict.Decode(m.Data, &l); err != nil {
		return queue.Semaphore{}, 0, fmt.Errorf("it is unreadable: %w", err)
	}
	return l, m.Seq, nil
}

// PutSemaphore implements runlog.Semaphores.
func (st *Store) PutSemaphore(ctx context.Context, name string, revision uint64, l queue.Semaphore) error {
	if err := queue.CheckSemaphore(name); err != nil {
		return err
	}
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode name: %w", err)
	}
	m := &nats.Msg{Subject: bus.HoldersPrefix + name, Header: nats.Header{}, Data: body}
	_, workspace := queue.WorkspaceOfSemaphore(name)
	if (workspace || queue.IsKeySemaphore(name)) && len(l.Permits) == 0 {
		m.Header.Set(headerTTL, emptyKeyTTL)
	}
	bus.Expect(m, revision)
	_, err = st.bus.Store(ctx, m)
	if bus.Refused(err, bus.CodeWrongLast) {
		return runlog.ErrConflict // or stored, and the answer was lost: the next attempt sees it
	}
	return err
}

func waitSubject(name string, run messages.Ref) (string, error) {
	if err := queue.CheckSemaphore(name); err != nil {
		return "", err
	}
	if err := run.Check(); err != nil {
		return "", err
	}
	return bus.WaitPrefix + name + "." + run.Tenant + "." + run.Run, nil
}

// Wait implements runlog.Semaphores.
func (st *Store) Wait(ctx context.Context, name string, run messages.Ref) error {
	subject, err := waitSubject(name, run)
	if err != nil {
		return err
	}
	return st.bus.StoreFirst(ctx, &nats.Msg{Subject: subject, Header: nats.Header{}})
}

// Waiting implements runlog.Semaphores.
func (st *Store) Waiting(ctx context.Context, name string, run messages.Ref) (uint64, error) {
	subject, err := waitSubject(name, run)
	if err != nil {
		return 0, err
	}
	m, _, err := st.bus.Stream(bus.StreamSemaphores).Get(ctx, bus.Lookup{Last: subject})
	return m.Seq, err
}

// First implements runlog.Semaphores.
func (st *Store) First(ctx context.Context, name string) (run messages.Ref, at uint64, err error) {
	return st.NextIn(ctx, name, 0)
}

// Standing is where a run stands in a semaphore.
type Standing struct {
	Run messages.Ref
	At  uint64 // its position
}

// Standing yields the runs of a tenant that stand in a semaphore, in its order. A replica may answer, some milliseconds late.
func (st *Store) Standing(ctx context.Context, name, tenant string) iter.Seq2[Standing, error] {
	return func(yield func(Standing, error) bool) {
		if err := queue.CheckSemaphore(name); err != nil {
			yield(Standing{}, err)
			return
		}
		if !strict.ValidToken(tenant) {
			yield(Standing{}, &messages.FieldError{Field: "tenant", Reason: "must be a token"})
			return
		}
		for m, err := range st.bus.Stream(bus.StreamSemaphores).Scan(ctx, bus.WaitPrefix+name+"."+tenant+".*", 1) {
			if err != nil {
				yield(Standing{}, fmt.Errorf("read name %s: %w", name, err))
				return
			}
			if !yield(Standing{runThatWaits(m.Subject), m.Seq}, nil) {
				return
			}
		}
	}
}

// NextIn is who stands in a semaphore first after a position, and where; 0: no run does.
func (st *Store) NextIn(ctx context.Context, name string, after uint64) (run messages.Ref, at uint64, err error) {
	if err := queue.CheckSemaphore(name); err != nil {
		return run, 0, err
	}
	m, ok, err := st.bus.Stream(bus.StreamSemaphores).Get(ctx, bus.Lookup{Seq: after + 1, Next: bus.WaitPrefix + name + ".*.*"})
	if err != nil || !ok {
		return run, 0, err
	}
	return runThatWaits(m.Subject), m.Seq, nil
}

func runThatWaits(subject string) messages.Ref {
	t := strings.Split(subject, ".")
	return messages.Ref{Tenant: t[len(t)-2], Run: t[len(t)-1]}
}

// Unwait implements runlog.Semaphores.
func (st *Store) Unwait(ctx context.Context, name string, run messages.Ref, at uint64) error {
	err := st.bus.Call(ctx, "STREAM.MSG.DELETE."+bus.StreamSemaphores, struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{at, true}, nil)
	if err == nil {
		return nil
	}
	if now, other := st.Waiting(ctx, name, run); other == nil && now != at {
		return nil // it was deleted already
	}
	return fmt.Errorf("leave the wait: %w", err)
}

// Semaphores implements runlog.Semaphores.
func (st *Store) Semaphores(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for subject, err := range st.bus.Stream(bus.StreamSemaphores).Subjects(ctx, bus.HoldersPrefix+">") {
			if err != nil {
				err = fmt.Errorf("list names: %w", err)
			}
			if !yield(strings.TrimPrefix(subject, bus.HoldersPrefix), err) {
				return
			}
		}
	}
}

// Ahead is how many runs wait in a semaphore before one of them, at most counted: enough to tell a person. A replica may
// answer, some milliseconds late.
func (st *Store) Ahead(ctx context.Context, name string, run messages.Ref, counted int) (n int, more bool, err error) {
	if err := queue.CheckSemaphore(name); err != nil {
		return 0, false, err
	}
	for m, err := range st.bus.Stream(bus.StreamSemaphores).Scan(ctx, bus.WaitPrefix+name+".*.*", 1) {
		switch {
		case err != nil:
			return n, false, fmt.Errorf("read name %s: %w", name, err)
		case runThatWaits(m.Subject) == run:
			return n, false, nil
		case n == counted:
			return n, true, nil
		}
		n++
	}
	return n, false, nil
}

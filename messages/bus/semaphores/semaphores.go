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
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	headerTTL   = "Nats-TTL"
	emptyKeyTTL = "1h" // how long the line of a concurrency key is kept that nobody has a place in: there may be many keys
)

var _ runlog.Lines = (*Store)(nil)

// Line implements runlog.Lines.
func (st *Store) Line(ctx context.Context, line string) (l messages.Line, revision uint64, err error) {
	if err := messages.CheckLine(line); err != nil {
		return l, 0, err
	}
	m, ok, err := st.bus.Get(ctx, bus.StreamLines, bus.Lookup{Last: bus.HoldersPrefix + line})
	if err != nil || !ok {
		return l, 0, err
	}
	if err := strict.Decode(m.Data, &l); err != nil {
		return messages.Line{}, 0, fmt.Errorf("it is unreadable: %w", err)
	}
	return l, m.Seq, nil
}

// PutLine implements runlog.Lines.
func (st *Store) PutLine(ctx context.Context, line string, revision uint64, l messages.Line) error {
	if err := messages.CheckLine(line); err != nil {
		return err
	}
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	m := &nats.Msg{Subject: bus.HoldersPrefix + line, Header: nats.Header{}, Data: body}
	if messages.IsKeyLine(line) && len(l.Places) == 0 {
		m.Header.Set(headerTTL, emptyKeyTTL)
	}
	bus.Expect(m, revision)
	_, err = st.bus.Store(ctx, m)
	if bus.Refused(err, bus.CodeWrongLast) {
		return runlog.ErrConflict // or stored, and the answer was lost: whoever asks again sees it
	}
	return err
}

func waitSubject(line string, run messages.Ref) (string, error) {
	if err := messages.CheckLine(line); err != nil {
		return "", err
	}
	if err := run.Check(); err != nil {
		return "", err
	}
	return bus.WaitPrefix + line + "." + run.Tenant + "." + run.Run, nil
}

// Wait implements runlog.Lines.
func (st *Store) Wait(ctx context.Context, line string, run messages.Ref) error {
	subject, err := waitSubject(line, run)
	if err != nil {
		return err
	}
	return st.bus.StoreFirst(ctx, &nats.Msg{Subject: subject, Header: nats.Header{}})
}

// Waiting implements runlog.Lines.
func (st *Store) Waiting(ctx context.Context, line string, run messages.Ref) (uint64, error) {
	subject, err := waitSubject(line, run)
	if err != nil {
		return 0, err
	}
	m, _, err := st.bus.Get(ctx, bus.StreamLines, bus.Lookup{Last: subject})
	return m.Seq, err
}

// First implements runlog.Lines.
func (st *Store) First(ctx context.Context, line string) (run messages.Ref, at uint64, err error) {
	return st.NextIn(ctx, line, 0)
}

// Standing is where a run stands in a line.
type Standing struct {
	Run messages.Ref
	At  uint64 // its position
}

// Standing yields the runs of a tenant that stand in a line, in its order. A replica may answer, some milliseconds late.
func (st *Store) Standing(ctx context.Context, line, tenant string) iter.Seq2[Standing, error] {
	return func(yield func(Standing, error) bool) {
		if err := messages.CheckLine(line); err != nil {
			yield(Standing{}, err)
			return
		}
		if !strict.ValidToken(tenant) {
			yield(Standing{}, &messages.FieldError{Field: "tenant", Reason: "must be a token"})
			return
		}
		for m, err := range st.bus.Scan(ctx, bus.StreamLines, bus.WaitPrefix+line+"."+tenant+".*", 1) {
			if err != nil {
				yield(Standing{}, fmt.Errorf("read line %s: %w", line, err))
				return
			}
			if !yield(Standing{runThatWaits(m.Subject), m.Seq}, nil) {
				return
			}
		}
	}
}

// NextIn is who stands in a line first after a position, and where; 0: no run does.
func (st *Store) NextIn(ctx context.Context, line string, after uint64) (run messages.Ref, at uint64, err error) {
	if err := messages.CheckLine(line); err != nil {
		return run, 0, err
	}
	m, ok, err := st.bus.Get(ctx, bus.StreamLines, bus.Lookup{Seq: after + 1, Next: bus.WaitPrefix + line + ".*.*"})
	if err != nil || !ok {
		return run, 0, err
	}
	return runThatWaits(m.Subject), m.Seq, nil
}

func runThatWaits(subject string) messages.Ref {
	t := strings.Split(subject, ".")
	return messages.Ref{Tenant: t[len(t)-2], Run: t[len(t)-1]}
}

// Unwait implements runlog.Lines.
func (st *Store) Unwait(ctx context.Context, line string, run messages.Ref, at uint64) error {
	err := st.bus.Call(ctx, "STREAM.MSG.DELETE."+bus.StreamLines, struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{at, true}, nil)
	if err == nil {
		return nil
	}
	if now, other := st.Waiting(ctx, line, run); other == nil && now != at {
		return nil // it was deleted already
	}
	return fmt.Errorf("leave the wait: %w", err)
}

// Lines implements runlog.Lines.
func (st *Store) Lines(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for subject, err := range st.bus.Subjects(ctx, bus.StreamLines, bus.HoldersPrefix+">") {
			if err != nil {
				err = fmt.Errorf("list lines: %w", err)
			}
			if !yield(strings.TrimPrefix(subject, bus.HoldersPrefix), err) {
				return
			}
		}
	}
}

// Ahead is how many runs wait in a line before one of them, at most counted: enough to tell a person. A replica may
// answer, some milliseconds late.
func (st *Store) Ahead(ctx context.Context, line string, run messages.Ref, counted int) (n int, more bool, err error) {
	if err := messages.CheckLine(line); err != nil {
		return 0, false, err
	}
	for m, err := range st.bus.Scan(ctx, bus.StreamLines, bus.WaitPrefix+line+".*.*", 1) {
		switch {
		case err != nil:
			return n, false, fmt.Errorf("read line %s: %w", line, err)
		case runThatWaits(m.Subject) == run:
			return n, false, nil
		case n == counted:
			return n, true, nil
		}
		n++
	}
	return n, false, nil
}

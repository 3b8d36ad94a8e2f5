package batches

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

var (
	// ErrNoBatch means that there is no such batch.
	ErrNoBatch = control.ErrNoBatch
	// ErrBatchMoved means that another caller has changed the batch meanwhile.
	ErrBatchMoved = errors.New("the batch was changed in the meantime; try again")
)

// Get reads the head of a batch and its revision from the stream's leader; ErrNoBatch.
func (st *Store) Get(ctx context.Context, ref messages.BatchRef) (head *messages.Batch, revision uint64, err error) {
	if err := ref.Check(); err != nil {
		return nil, 0, err
	}
	m, ok, err := st.bus.Stream(bus.StreamBatches).Get(ctx, bus.Lookup{Last: ref.HeadSubject()})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("read batch %s: %w", ref, err)
	case !ok:
		return nil, 0, ErrNoBatch
	}
	head, err = decodeBatch(ref, m.Data)
	return head, m.Seq, err
}

func decodeBatch(ref messages.BatchRef, data []byte) (*messages.Batch, error) {
	var head messages.Batch
	if err := strict.Decode(data, &head); err != nil {
		return nil, fmt.Errorf("read batch %s: %s", ref, err.Error()) // not wrapped: it is no field of the request
	}
	if head.BatchRef != ref {
		return nil, fmt.Errorf("read batch %s: its head names another", ref)
	}
	return &head, nil
}

// Put replaces the head of a batch that has this revision, 0 for a new one. ErrBatchMoved: it has another by now.
// The same may come after a loss of the answer, so the caller reads again and looks what is left to do.
func (st *Store) Put(ctx context.Context, head *messages.Batch, revision uint64) (uint64, error) {
	if err := head.BatchRef.Check(); err != nil {
		return 0, err
	}
	body, err := json.Marshal(head)
	if err != nil {
		return 0, fmt.Errorf("encode batch: %w", err)
	}
	m := &nats.Msg{Subject: head.HeadSubject(), Header: nats.Header{}, Data: body}
	bus.Expect(m, revision)
	r, err := st.bus.Store(ctx, m)
	switch {
	case bus.Refused(err, bus.CodeWrongLast):
		return 0, ErrBatchMoved
	case err != nil:
		return 0, fmt.Errorf("store batch %s: %w", head.BatchRef, err)
	}
	return r.Seq, nil
}

// List yields the heads of all batches of a tenant, those that changed last at the end. Without a tenant, those of
// all. What cannot be read is counted and skipped.
func (st *Store) List(ctx context.Context, tenant string) iter.Seq2[*messages.Batch, error] {
	if tenant == "" {
		tenant = "*"
	}
	return func(yield func(*messages.Batch, error) bool) {
		for c, err := range st.changed(ctx, tenant, 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			if c.Head != nil && !yield(c.Head, nil) {
				return
			}
		}
	}
}

// Change is a head as it was stored last.
type Change struct {
	Seq  uint64          // to continue after
	Head *messages.Batch // nil: it cannot be read, which is counted
}

// Changed yields the heads of the batches of all tenants that were stored after a sequence, 0 for all, in the order in which they were. Of those
// stored a moment ago the newest may be missing.
func (st *Store) Changed(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return st.changed(ctx, "*", after)
}

func (st *Store) changed(ctx context.Context, tenant string, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for m, err := range st.bus.Stream(bus.StreamBatches).ScanWide(ctx, "batches."+tenant+".*.head", after+1) {
			if err != nil {
				yield(Change{}, fmt.Errorf("list batches: %w", err))
				return
			}
			t := strings.Split(m.Subject, ".")
			head, err := decodeBatch(messages.BatchRef{Tenant: t[1], ID: t[2]}, m.Data)
			if err != nil || head.BatchRef.Check() != nil {
				st.bus.Foreign()
				head = nil
			}
			if !yield(Change{m.Seq, head}, nil) {
				return
			}
		}
	}
}

// StoredLine is a line of a batch as the stream has it.
type StoredLine struct {
	Seq  uint64
	Task string // of the subject
	Body []byte
}

// Lines yields the lines of a batch that were stored after a sequence, in their order. Of those stored a moment
// ago the newest may be missing.
func (st *Store) Lines(ctx context.Context, ref messages.BatchRef, after uint64) iter.Seq2[StoredLine, error] {
	return func(yield func(StoredLine, error) bool) {
		if err := ref.Check(); err != nil {
			yield(StoredLine{}, err)
			return
		}
		prefix := ref.LineSubject("")
		for m, err := range st.bus.Stream(bus.StreamBatches).ScanWide(ctx, prefix+"*", after+1) {
			if err != nil {
				yield(StoredLine{}, fmt.Errorf("read the lines of batch %s: %w", ref, err))
				return
			}
			if !yield(StoredLine{m.Seq, strings.TrimPrefix(m.Subject, prefix), m.Data}, nil) {
				return
			}
		}
	}
}

// Line is the line of a task; ok is false when the batch has none.
func (st *Store) Line(ctx context.Context, ref messages.BatchRef, task string) (line *messages.BatchLine, ok bool, err error) {
	m, ok, err := st.bus.Stream(bus.StreamBatches).Get(ctx, bus.Lookup{Last: ref.LineSubject(task)})
	if err != nil || !ok {
		return nil, false, err
	}
	line = &messages.BatchLine{}
	if err := strict.Decode(m.Data, line); err != nil {
		return nil, false, fmt.Errorf("read line %s: %s", task, err.Error()) // not wrapped: it is no field of the request
	}
	return line, true, nil
}

// RemoveLine removes a line by its sequence; that it is gone already is a success.
func (st *Store) RemoveLine(ctx context.Context, seq uint64) error {
	return st.bus.Stream(bus.StreamBatches).Remove(ctx, seq)
}

// RemoveLines removes all lines of a batch.
func (st *Store) RemoveLines(ctx context.Context, ref messages.BatchRef) error {
	if err := ref.Check(); err != nil {
		return err
	}
	return st.bus.Stream(bus.StreamBatches).Clear(ctx, ref.LineSubject("*"))
}

// CountLines is how many lines of a batch are stored. A replica that does not have as many as are wanted is asked
// again for a while.
func (st *Store) CountLines(ctx context.Context, ref messages.BatchRef, wanted int) (n int, err error) {
	if err := ref.Check(); err != nil {
		return 0, err
	}
	p := bus.Page{Seq: 1, Next: ref.LineSubject("*"), Batch: 1, Bytes: bus.PageBytes}
	for try := range countTries {
		err = st.bus.Retry(ctx, func(ctx context.Context) error {
			last, pending, _, err := st.bus.Stream(bus.StreamBatches).ReadPage(ctx, p, func(_ bus.Message, err error) bool { return err == nil })
			n = int(pending)
			if last > 0 {
				n++
			}
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("count the lines of batch %s: %w", ref, err)
		}
		if n >= wanted {
			break
		}
		if err := bus.Pause(ctx, bus.Backoff(try)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// countTries spans more than a second, by which a replica has caught up.
const countTries = 8

// PutOutcome stores how a line ended, unless that is known already.
func (st *Store) PutOutcome(ctx context.Context, ref messages.BatchRef, o *messages.BatchOutcome) error {
	if err := errors.Join(ref.Check(), messages.Ref{Tenant: ref.Tenant, Run: o.Task}.Check()); err != nil {
		return err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode outcome: %w", err)
	}
	if err := st.bus.StoreFirst(ctx, &nats.Msg{Subject: ref.OutcomeSubject(o.Task), Header: nats.Header{}, Data: body}); err != nil {
		return fmt.Errorf("store the outcome of %s: %w", o.Task, err)
	}
	return nil
}

// Outcome is how the line of a task ended; ok is false when it has not.
func (st *Store) Outcome(ctx context.Context, ref messages.BatchRef, task string) (o *messages.BatchOutcome, ok bool, err error) {
	m, ok, err := st.bus.Stream(bus.StreamBatches).Get(ctx, bus.Lookup{Last: ref.OutcomeSubject(task)})
	if err != nil || !ok {
		return nil, false, err
	}
	o = &messages.BatchOutcome{}
	if err := strict.Decode(m.Data, o); err != nil {
		return nil, false, fmt.Errorf("read outcome %s: %s", task, err.Error()) // not wrapped: it is no field of the request
	}
	return o, true, nil
}

// Outcomes yields the outcomes of a batch that were stored after a sequence, as lines ended. Of those stored a
// moment ago the newest may be missing.
func (st *Store) Outcomes(ctx context.Context, ref messages.BatchRef, after uint64) iter.Seq2[StoredOutcome, error] {
	return func(yield func(StoredOutcome, error) bool) {
		if err := ref.Check(); err != nil {
			yield(StoredOutcome{}, err)
			return
		}
		for m, err := range st.bus.Stream(bus.StreamBatches).ScanWide(ctx, ref.OutcomeSubject("*"), after+1) {
			o := StoredOutcome{Seq: m.Seq}
			if err == nil {
				err = strict.Decode(m.Data, &o.BatchOutcome)
			}
			if err != nil {
				yield(StoredOutcome{}, fmt.Errorf("read the outcomes of batch %s: %w", ref, err))
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// StoredOutcome is an outcome with its sequence.
type StoredOutcome struct {
	Seq uint64
	messages.BatchOutcome
}

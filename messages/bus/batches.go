package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// StreamBatches holds the heads, lines and outcomes of batches.
const StreamBatches = "BATCHES"

// batchMaxAge is how long a batch is kept after its head last changed: longer than any may run.
const batchMaxAge = 30 * day

var (
	// ErrNoBatch means that nobody knows the batch.
	ErrNoBatch = errors.New("no such batch")
	// ErrBatchMoved means that somebody else has changed the batch meanwhile.
	ErrBatchMoved = errors.New("the batch has changed meanwhile")
)

// batches is the stream. A subject holds its newest message alone: a head is replaced, a line and an outcome are
// stored once.
func batches(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamBatches, "Batches of tasks: heads, lines and outcomes."
	c.Subjects = []string{"batches.*.*.head", "batches.*.*.line.*", "batches.*.*.done.*"}
	c.MaxMsgsPerSubject, c.MaxAge = 1, batchMaxAge
	return c
}

// Batch reads the head of a batch and its revision from the stream's leader; ErrNoBatch.
func (b *Bus) Batch(ctx context.Context, ref messages.BatchRef) (head *messages.Batch, revision uint64, err error) {
	if err := ref.Check(); err != nil {
		return nil, 0, err
	}
	m, ok, err := b.get(ctx, StreamBatches, lookup{Last: ref.HeadSubject()})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("read batch %s: %w", ref, err)
	case !ok:
		return nil, 0, ErrNoBatch
	}
	head, err = decodeBatch(ref, m.data)
	return head, m.seq, err
}

func decodeBatch(ref messages.BatchRef, data []byte) (*messages.Batch, error) {
	var head messages.Batch
	if err := strict.Decode(data, &head); err != nil {
		return nil, fmt.Errorf("read batch %s: %v", ref, err) //nolint:errorlint // not a field of who asks
	}
	if head.BatchRef != ref {
		return nil, fmt.Errorf("read batch %s: its head names another", ref)
	}
	return &head, nil
}

// PutBatch replaces the head of a batch that has this revision, 0 for a new one. ErrBatchMoved: it has another by now.
// The same may come after a loss of the answer, so the caller reads again and looks what is left to do.
func (b *Bus) PutBatch(ctx context.Context, head *messages.Batch, revision uint64) (uint64, error) {
	if err := head.BatchRef.Check(); err != nil {
		return 0, err
	}
	body, err := json.Marshal(head)
	if err != nil {
		return 0, fmt.Errorf("encode batch: %w", err)
	}
	m := &nats.Msg{Subject: head.HeadSubject(), Header: nats.Header{}, Data: body}
	expect(m, revision)
	r, err := b.store(ctx, m)
	switch {
	case refused(err, codeWrongLast):
		return 0, ErrBatchMoved
	case err != nil:
		return 0, fmt.Errorf("store batch %s: %w", head.BatchRef, err)
	}
	return r.Seq, nil
}

// Batches yields the heads of all batches of a tenant, those that changed last at the end. Without a tenant, those of
// all. What cannot be read is counted and skipped.
func (b *Bus) Batches(ctx context.Context, tenant string) iter.Seq2[*messages.Batch, error] {
	if tenant == "" {
		tenant = "*"
	}
	return func(yield func(*messages.Batch, error) bool) {
		for m, err := range b.batch(ctx, StreamBatches, "batches."+tenant+".*.head", 1) {
			if err != nil {
				yield(nil, fmt.Errorf("list batches: %w", err))
				return
			}
			t := strings.Split(m.subject, ".")
			head, err := decodeBatch(messages.BatchRef{Tenant: t[1], ID: t[2]}, m.data)
			if err != nil || head.BatchRef.Check() != nil {
				b.skipped.Add(1)
				continue
			}
			if !yield(head, nil) {
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

// BatchLines yields the lines of a batch that were stored after a sequence, in their order. Of those stored a moment
// ago the newest may be missing.
func (b *Bus) BatchLines(ctx context.Context, ref messages.BatchRef, after uint64) iter.Seq2[StoredLine, error] {
	return func(yield func(StoredLine, error) bool) {
		if err := ref.Check(); err != nil {
			yield(StoredLine{}, err)
			return
		}
		prefix := ref.LineSubject("")
		for m, err := range b.batch(ctx, StreamBatches, prefix+"*", after+1) {
			if err != nil {
				yield(StoredLine{}, fmt.Errorf("read the lines of batch %s: %w", ref, err))
				return
			}
			if !yield(StoredLine{m.seq, strings.TrimPrefix(m.subject, prefix), m.data}, nil) {
				return
			}
		}
	}
}

// BatchLine is the line of a task; ok is false when the batch has none.
func (b *Bus) BatchLine(ctx context.Context, ref messages.BatchRef, task string) (line *messages.BatchLine, ok bool, err error) {
	m, ok, err := b.get(ctx, StreamBatches, lookup{Last: ref.LineSubject(task)})
	if err != nil || !ok {
		return nil, false, err
	}
	line = &messages.BatchLine{}
	if err := strict.Decode(m.data, line); err != nil {
		return nil, false, fmt.Errorf("read line %s: %v", task, err) //nolint:errorlint // not a field of who asks
	}
	return line, true, nil
}

// RemoveLine removes a line by its sequence; that it is gone already is a success.
func (b *Bus) RemoveLine(ctx context.Context, seq uint64) error {
	return b.removeMessage(ctx, StreamBatches, seq)
}

// removeMessage removes a message; that it is gone already is a success.
func (b *Bus) removeMessage(ctx context.Context, stream string, seq uint64) error {
	err := b.call(ctx, "STREAM.MSG.DELETE."+stream, struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}, nil)
	if refused(err, codeNoMessage) || refused(err, codeNotDeleted) {
		return nil
	}
	return err
}

// codeNotDeleted is the answer when a message that is to be deleted is not there.
const codeNotDeleted jetstream.ErrorCode = 10057

// RemoveLines removes all lines of a batch.
func (b *Bus) RemoveLines(ctx context.Context, ref messages.BatchRef) error {
	if err := ref.Check(); err != nil {
		return err
	}
	return b.purge(ctx, StreamBatches, ref.LineSubject("*"))
}

// CountLines is how many lines of a batch are stored. A replica that does not have as many as are wanted is asked
// again for a while.
func (b *Bus) CountLines(ctx context.Context, ref messages.BatchRef, wanted int) (n int, err error) {
	if err := ref.Check(); err != nil {
		return 0, err
	}
	p := page{Seq: 1, Next: ref.LineSubject("*"), Batch: 1, Bytes: pageBytes}
	for try := range countTries {
		err = b.retry(ctx, func(ctx context.Context) error {
			last, pending, _, err := b.readPage(ctx, StreamBatches, p, func(_ stored, err error) bool { return err == nil })
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
		if err := pause(ctx, backoff(try)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// countTries spans more than a second, by which a replica has caught up.
const countTries = 8

// PutOutcome stores how a line ended, unless that is known already.
func (b *Bus) PutOutcome(ctx context.Context, ref messages.BatchRef, o *messages.BatchOutcome) error {
	if err := errors.Join(ref.Check(), messages.Ref{Tenant: ref.Tenant, Run: o.Task}.Check()); err != nil {
		return err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode outcome: %w", err)
	}
	if err := b.storeFirst(ctx, &nats.Msg{Subject: ref.OutcomeSubject(o.Task), Header: nats.Header{}, Data: body}); err != nil {
		return fmt.Errorf("store the outcome of %s: %w", o.Task, err)
	}
	return nil
}

// BatchOutcome is how the line of a task ended; ok is false when it has not.
func (b *Bus) BatchOutcome(ctx context.Context, ref messages.BatchRef, task string) (o *messages.BatchOutcome, ok bool, err error) {
	m, ok, err := b.get(ctx, StreamBatches, lookup{Last: ref.OutcomeSubject(task)})
	if err != nil || !ok {
		return nil, false, err
	}
	o = &messages.BatchOutcome{}
	if err := strict.Decode(m.data, o); err != nil {
		return nil, false, fmt.Errorf("read outcome %s: %v", task, err) //nolint:errorlint // not a field of who asks
	}
	return o, true, nil
}

// BatchOutcomes yields the outcomes of a batch that were stored after a sequence, as lines ended. Of those stored a
// moment ago the newest may be missing.
func (b *Bus) BatchOutcomes(ctx context.Context, ref messages.BatchRef, after uint64) iter.Seq2[StoredOutcome, error] {
	return func(yield func(StoredOutcome, error) bool) {
		if err := ref.Check(); err != nil {
			yield(StoredOutcome{}, err)
			return
		}
		for m, err := range b.batch(ctx, StreamBatches, ref.OutcomeSubject("*"), after+1) {
			o := StoredOutcome{Seq: m.seq}
			if err == nil {
				err = strict.Decode(m.data, &o.BatchOutcome)
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

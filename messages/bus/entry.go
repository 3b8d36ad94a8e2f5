package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Headers of an entry. What the entry expected of its log is kept by the stream too, in headerExpect.
const (
	headerHead = "Longshore-Head" // record.EncodeHead
	headerBlob = "Longshore-Blob" // where the records are when they are not in the body
)

// encodeEntry makes the message that appends an entry after last, its body perhaps in the buffer, which may grow. Its blob, if it
// needs one, is stored when this returns.
func (b *Bus) encodeEntry(ctx context.Context, run messages.Ref, last uint64, e *record.Entry, buf *[]byte) (*nats.Msg, error) {
	head, err := record.EncodeHead(&e.Head)
	if err != nil {
		return nil, err
	}
	body, err := record.AppendRecords((*buf)[:0], e.Records)
	if err != nil {
		return nil, err
	}
	*buf = body
	if b.sealer != nil {
		if body, err = b.sealer.Seal(body, associated(run, last, head)); err != nil {
			return nil, fmt.Errorf("seal: %w", err)
		}
	}
	m := &nats.Msg{Subject: run.LogSubject(), Header: nats.Header{headerHead: {head}}, Data: body}
	Expect(m, last)
	if len(body) > b.inline {
		ref, err := b.putBlob(ctx, run, body)
		if err != nil {
			return nil, fmt.Errorf("store blob: %w", err)
		}
		m.Header.Set(headerBlob, ref.String())
		m.Data = nil
	}
	b.sign(run, last, &e.Head, m)
	return m, nil
}

// maxBody is how large a buffer may be that is kept for the next entry, in bytes.
const maxBody = 64 << 10

// body returns a buffer for the records of an entry, which release takes back. Records are most of what a worker would allocate
// otherwise.
func (b *Bus) body() *[]byte {
	if buf, ok := b.bodies.Get().(*[]byte); ok {
		return buf
	}
	return new([]byte)
}

func (b *Bus) release(body *[]byte) {
	if cap(*body) <= maxBody {
		b.bodies.Put(body)
	}
}

// decodeHead reads the head of a message of a log. The entry of an error still has what could be read of it.
func decodeHead(run messages.Ref, m Message) (record.Entry, error) {
	header := m.Header.Get(headerHead)
	if header == "" {
		return record.Entry{Seq: m.Seq}, badEntry(run, m, errors.New("it has no head"))
	}
	head, err := record.DecodeHead(header)
	e := record.Entry{Head: head}.At(m.Seq)
	if err != nil {
		return e, badEntry(run, m, err)
	}
	return e, nil
}

func badEntry(run messages.Ref, m Message, err error) error {
	if _, ok := errors.AsType[*messages.FieldError](err); ok { // a fault of the log, not of the caller
		return fmt.Errorf("read entry %d of %s: %v", m.Seq, run, err) //nolint:errorlint // see above
	}
	return fmt.Errorf("read entry %d of %s: %w", m.Seq, run, err)
}

// decodeEntry reads a message of a log whole. The entry of an error still has what could be read of its head.
func (b *Bus) decodeEntry(ctx context.Context, run messages.Ref, m Message) (record.Entry, error) {
	e, err := decodeHead(run, m)
	if err != nil {
		return e, err
	}
	body := m.Data
	if ref := m.Header.Get(headerBlob); ref != "" {
		if body, err = b.getBlob(ctx, run, ref); err != nil {
			return e, badEntry(run, m, err)
		}
	}
	if b.sealer != nil {
		after, err := follows(m)
		if err != nil {
			return e, badEntry(run, m, err)
		}
		if body, err = b.sealer.Open(body, associated(run, after, m.Header.Get(headerHead))); err != nil {
			return e, badEntry(run, m, fmt.Errorf("open sealed records: %w", err))
		}
	}
	if e.Records, err = record.DecodeRecords(body); err != nil {
		return e, badEntry(run, m, err)
	}
	if !e.Head.Matches(e.Records) {
		return e, badEntry(run, m, errors.New("its head names other records"))
	}
	return e, nil
}

// associated is what a sealed entry is bound to. No part can hold a line break.
func associated(run messages.Ref, last uint64, head string) []byte {
	return []byte(run.Tenant + "\n" + run.Run + "\n" + strconv.FormatUint(last, 10) + "\n" + head)
}

// follows is the sequence of the entry before this one; the stream has verified it when it stored the entry.
func follows(m Message) (uint64, error) {
	n, err := strconv.ParseUint(m.Header.Get(headerExpect), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("its header %s is not a sequence", headerExpect)
	}
	return n, nil
}

package runlogs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

// Headers of an entry. What the entry expected of its log is kept by the stream too, in bus.HeaderExpect.
const (
	headerHead = "Longshore-Head" // record.EncodeHead
	headerBlob = "Longshore-Blob" // where the records are when they are not in the body
)

// encodeEntry makes the message that appends an entry after last, its body perhaps in the buffer, which may grow. Its blob, if it
// needs one, is stored when this returns.
func (st *Store) encodeEntry(ctx context.Context, run messages.Ref, last uint64, e *record.Entry, buf *[]byte) (*nats.Msg, error) {
	head, err := record.EncodeHead(&e.Head)
	if err != nil {
		return nil, err
	}
	body, err := record.AppendRecords((*buf)[:0], e.Records)
	if err != nil {
		return nil, err
	}
	*buf = body
	if st.seals() {
		sealed, err := st.cfg.Sealer.Seal(ctx, run.Tenant, body, sealedTo(run, last, head))
		switch {
		case err == nil:
			body = sealed
		case !record.IsGone(err) || !record.SaysNothing(run, e.Records): // the tenant's key was destroyed, and this says so
			return nil, fmt.Errorf("seal: %w", err)
		}
	}
	m := &nats.Msg{Subject: st.bus.Partitions(bus.StreamRuns).Subject(run, run.LogSubject()), Header: nats.Header{headerHead: {head}}, Data: body}
	bus.Expect(m, last)
	if len(body) > st.cfg.Inline {
		ref, err := st.putBlob(ctx, run, body)
		if err != nil {
			return nil, fmt.Errorf("store blob: %w", err)
		}
		m.Header.Set(headerBlob, ref.String())
		m.Data = nil
		if bus.IsSealed(body) {
			m.Data = []byte(bus.SealedPrefix) // heads say whether the records are sealed
		}
	}
	st.sign(run, last, &e.Head, m)
	return m, nil
}

// maxBody is how large a buffer may be that is kept for the next entry, in bytes.
const maxBody = 64 << 10

// body returns a buffer for the records of an entry, which release takes back. Records are most of what a worker would allocate
// otherwise.
func (st *Store) body() *[]byte {
	if buf, ok := st.bodies.Get().(*[]byte); ok {
		return buf
	}
	return new([]byte)
}

func (st *Store) release(body *[]byte) {
	if cap(*body) <= maxBody {
		st.bodies.Put(body)
	}
}

// decodeHead reads the head of a message of a log. The entry of an error still has what could be read of it.
func (st *Store) decodeHead(run messages.Ref, m bus.Message) (record.Entry, error) {
	header := m.Header.Get(headerHead)
	if header == "" {
		return record.Entry{Seq: m.Seq}, badEntry(run, m, errors.New("it has no head"))
	}
	head, err := record.DecodeHead(header)
	e := record.Entry{Head: head}.At(m.Seq)
	e.Locked = bus.IsSealed(m.Data) && !st.seals()
	if err != nil {
		return e, badEntry(run, m, err)
	}
	return e, nil
}

func badEntry(run messages.Ref, m bus.Message, err error) error {
	if _, ok := errors.AsType[*messages.FieldError](err); ok { // a fault of the log, not of the caller
		return fmt.Errorf("read entry %d of %s: %s", m.Seq, run, err.Error())
	}
	return fmt.Errorf("read entry %d of %s: %w", m.Seq, run, err)
}

// decodeEntry reads a message of a log whole. The entry of an error still has what could be read of its head.
func (st *Store) decodeEntry(ctx context.Context, run messages.Ref, m bus.Message) (record.Entry, error) {
	e, err := st.decodeHead(run, m)
	if err != nil {
		return e, err
	}
	return st.decodeRecords(ctx, run, m, e)
}

// decodeRecords adds the records of a message of a log to its entry, of which the head was read.
func (st *Store) decodeRecords(ctx context.Context, run messages.Ref, m bus.Message, e record.Entry) (_ record.Entry, err error) {
	body := m.Data
	if ref := m.Header.Get(headerBlob); ref != "" {
		if body, err = st.getBlob(ctx, run, ref); err != nil {
			return e, badEntry(run, m, err)
		}
	}
	opened, err := st.open(ctx, run, m, body)
	if err != nil && !errors.Is(err, record.ErrClear) {
		return e, badEntry(run, m, fmt.Errorf("read its records: %w", err))
	}
	if err != nil {
		opened = body
	}
	rs, bad := record.DecodeRecords(opened)
	if err != nil && !record.SaysNothing(run, rs) {
		return e, badEntry(run, m, fmt.Errorf("read its records: %w", err))
	}
	if e.Records = rs; bad != nil {
		return e, badEntry(run, m, bad)
	}
	if !e.Head.Matches(e.Records) {
		return e, badEntry(run, m, errors.New("its head names other records"))
	}
	return e, nil
}

// open returns the records of an entry as they were before they were sealed.
func (st *Store) open(ctx context.Context, run messages.Ref, m bus.Message, body []byte) ([]byte, error) {
	switch {
	case st.cfg.Sealer == nil && bus.IsSealed(body):
		return nil, record.ErrNoKey
	case st.cfg.Sealer == nil:
		return body, nil
	}
	after, err := m.Follows()
	if err != nil && bus.IsSealed(body) {
		return nil, err
	}
	return st.cfg.Sealer.Open(ctx, run.Tenant, body, sealedTo(run, after, m.Header.Get(headerHead)))
}

// seals reports whether there are keys.
func (st *Store) seals() bool { return st.cfg.Sealer != nil && st.cfg.Sealer.On() }

// sealedTo is what a sealed entry is bound to. The purpose keeps it from being opened as anything else.
func sealedTo(run messages.Ref, last uint64, head string) []byte {
	return append([]byte("longshore log 1\n"), associated(run, last, head)...)
}

// associated is where an entry stands. No part can hold a line break.
func associated(run messages.Ref, last uint64, head string) []byte {
	return []byte(run.Tenant + "\n" + run.Run + "\n" + strconv.FormatUint(last, 10) + "\n" + head)
}

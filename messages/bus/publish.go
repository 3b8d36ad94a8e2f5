package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// Headers that JetStream obeys.
const (
	headerMsgID      = jetstream.MsgIDHeader
	headerExpect     = jetstream.ExpectedLastSubjSeqHeader
	headerExpectFor  = jetstream.ExpectedLastSubjSeqSubjHeader
	headerSchedule   = jetstream.ScheduleHeader
	headerScheduleTo = jetstream.ScheduleTargetHeader
)

// receipt is what the stream answers to a publish.
type receipt struct {
	Seq       uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Error     *jetstream.APIError `json:"error"`
}

// publish is one attempt to store a message.
func (b *Bus) publish(ctx context.Context, m *nats.Msg) (receipt, error) {
	answer, err := b.acks.ask(ctx, m, b.answer)
	if err != nil {
		b.acks.storage.heard(b.nc, m.Subject, err)
		return receipt{}, err
	}
	r, err := decodeReceipt(answer.Data)
	b.acks.storage.heard(b.nc, m.Subject, err)
	return r, err
}

func decodeReceipt(data []byte) (receipt, error) {
	if seq, ok := plainReceipt(data); ok {
		return receipt{Seq: seq}, nil
	}
	var r receipt
	if err := json.Unmarshal(data, &r); err != nil {
		return receipt{}, fmt.Errorf("decode acknowledgement: %w", err)
	}
	if r.Error != nil {
		return receipt{}, r.Error
	}
	return r, nil
}

// plainReceipt reads the common answer, {"stream":"RUNS", "seq":7}, without decoding it.
func plainReceipt(data []byte) (seq uint64, ok bool) {
	const before = `"seq":`
	_, digits, found := bytes.Cut(data, []byte(before))
	if !found || len(data) > maxPlainReceipt || bytes.Count(data, []byte{':'}) != 2 {
		return 0, false
	}
	for len(digits) > 0 && digits[0] >= '0' && digits[0] <= '9' {
		seq = seq*10 + uint64(digits[0]-'0')
		digits = digits[1:]
	}
	return seq, seq > 0 && len(digits) == 1 && digits[0] == '}'
}

// maxPlainReceipt keeps the sequence in plainReceipt from overflowing.
const maxPlainReceipt = 48

// store publishes a message at least once.
func (b *Bus) store(ctx context.Context, m *nats.Msg) (receipt, error) {
	var r receipt
	err := b.again(ctx, func() (err error) {
		r, err = b.publish(ctx, m)
		return err
	})
	return r, err
}

// storeFirst publishes a message unless its subject already has one; that there is one is a success too.
func (b *Bus) storeFirst(ctx context.Context, m *nats.Msg) error {
	expect(m, 0)
	_, err := b.store(ctx, m)
	if refused(err, codeWrongLast) {
		return nil
	}
	return err
}

// trace sets the header of a trace context, or removes it.
func trace(h nats.Header, traceparent string) {
	if traceparent == "" {
		delete(h, messages.HeaderTraceparent)
		return
	}
	h[messages.HeaderTraceparent] = []string{traceparent}
}

// expect makes a publish fail unless the last sequence of its subject is this.
func expect(m *nats.Msg, last uint64) {
	m.Header.Set(headerExpect, strconv.FormatUint(last, 10))
}

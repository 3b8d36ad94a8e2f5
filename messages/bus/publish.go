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
	HeaderMsgID      = jetstream.MsgIDHeader
	HeaderExpect     = jetstream.ExpectedLastSubjSeqHeader
	HeaderExpectFor  = jetstream.ExpectedLastSubjSeqSubjHeader // lets a message stand elsewhere than where it says: we never set it
	HeaderSchedule   = jetstream.ScheduleHeader
	HeaderScheduleTo = jetstream.ScheduleTargetHeader
)

// HeaderSignature holds the signature of an entry of a log, or of a revision of a bucket, that says what people decided.
const HeaderSignature = "Longshore-Signature"

// Receipt is what the stream answers to a publish.
type Receipt struct {
	Seq       uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Error     *jetstream.APIError `json:"error"`
}

// StoreOnce is one attempt to store a message. After an error the message may be stored or not.
func (b *Bus) StoreOnce(ctx context.Context, m *nats.Msg) (Receipt, error) {
	answer, err := b.answers.ask(ctx, m, b.answer)
	if err != nil {
		b.answers.storage.heard(b.nc, m.Subject, err)
		return Receipt{}, err
	}
	r, err := decodeReceipt(answer.Data)
	b.answers.storage.heard(b.nc, m.Subject, err)
	return r, err
}

func decodeReceipt(data []byte) (Receipt, error) {
	if seq, ok := plainReceipt(data); ok {
		return Receipt{Seq: seq}, nil
	}
	var r Receipt
	if err := json.Unmarshal(data, &r); err != nil {
		return Receipt{}, fmt.Errorf("decode acknowledgement: %w", err)
	}
	if r.Error != nil {
		return Receipt{}, r.Error
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

// Store publishes a message at least once.
func (b *Bus) Store(ctx context.Context, m *nats.Msg) (Receipt, error) {
	var r Receipt
	err := b.Again(ctx, func() (err error) {
		r, err = b.StoreOnce(ctx, m)
		return err
	})
	return r, err
}

// StoreFirst publishes a message unless its subject already has one; that there is one is a success too.
func (b *Bus) StoreFirst(ctx context.Context, m *nats.Msg) error {
	Expect(m, 0)
	_, err := b.Store(ctx, m)
	if Refused(err, CodeWrongLast) {
		return nil
	}
	return err
}

// Confirm publishes a message, such as an ack, and waits until the server has answered it. It asks once.
func (b *Bus) Confirm(ctx context.Context, m *nats.Msg) error {
	_, err := b.answers.ask(ctx, m, b.answer)
	return err
}

// SetTrace sets the header of a trace context, or removes it.
func SetTrace(h nats.Header, traceparent string) {
	if traceparent == "" {
		delete(h, messages.HeaderTraceparent)
		return
	}
	h[messages.HeaderTraceparent] = []string{traceparent}
}

// Expect makes a publish fail unless the last sequence of its subject is this.
func Expect(m *nats.Msg, last uint64) {
	m.Header.Set(HeaderExpect, strconv.FormatUint(last, 10))
}

// Follows returns the sequence that the message expected its subject to end with. The stream verified it when it stored the
// message.
func (m Message) Follows() (uint64, error) {
	n, err := strconv.ParseUint(m.Header.Get(HeaderExpect), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("its header %s is not a sequence", HeaderExpect)
	}
	return n, nil
}

// MaxHeaders is room for what a message carries besides its body; the server counts both.
const MaxHeaders = 1 << 10

// CheckSize reports whether the server takes a message with such a body.
func (b *Bus) CheckSize(body []byte) error {
	if limit := b.nc.MaxPayload() - MaxHeaders; int64(len(body)) > limit {
		reason := fmt.Sprintf("%d bytes, more than the server takes: raise its max_payload of %d", len(body), b.nc.MaxPayload())
		return &messages.FieldError{Field: "body", Reason: reason}
	}
	return nil
}

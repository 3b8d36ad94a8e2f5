package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	answer, err := b.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return receipt{}, err //nolint:wrapcheck // the caller says what it published
	}
	return decodeReceipt(answer.Data)
}

func decodeReceipt(data []byte) (receipt, error) {
	var r receipt
	if err := json.Unmarshal(data, &r); err != nil {
		return receipt{}, fmt.Errorf("decode acknowledgement: %w", err)
	}
	if r.Error != nil {
		return receipt{}, r.Error
	}
	return r, nil
}

// store publishes a message at least once.
func (b *Bus) store(ctx context.Context, m *nats.Msg) (receipt, error) {
	var r receipt
	err := b.retry(ctx, func(ctx context.Context) (err error) {
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

// expect makes a publish fail unless the last sequence of its subject is this.
func expect(m *nats.Msg, last uint64) {
	m.Header.Set(headerExpect, strconv.FormatUint(last, 10))
}

package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

// headerIncrement is what a message adds to the counter of its subject.
const headerIncrement = "Nats-Incr"

// Increment adds one to a counter, and returns its value. It is tried once: after an error it may have been added.
func (b *Bus) Increment(ctx context.Context, subject string) (int, error) {
	answer, err := b.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: nats.Header{headerIncrement: {"+1"}}})
	if err != nil {
		return 0, err
	}
	if _, err := decodeReceipt(answer.Data); err != nil {
		return 0, err
	}
	n, err := Counted(answer.Data)
	return int(n), err
}

// Counted reads the value of a counter.
func Counted(data []byte) (int64, error) {
	var c struct {
		Value string `json:"val"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return 0, fmt.Errorf("read counter: %w", err)
	}
	n, err := strconv.ParseInt(c.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read counter: %w", err)
	}
	return n, nil
}

// Count is how many messages of a stream have subjects like this. With the first of them the server says how many follow.
func (b *Bus) Count(ctx context.Context, stream, filter string) (n int, err error) {
	body, err := json.Marshal(struct {
		Seq   uint64 `json:"seq"`
		Next  string `json:"next_by_subj"`
		Batch int    `json:"batch"`
	}{1, filter, 1})
	if err != nil {
		return 0, fmt.Errorf("encode request: %w", err)
	}
	err = b.Retry(ctx, func(ctx context.Context) error {
		in, err := OpenInbox(b.nc, AnswerRoom)
		if err != nil {
			return err
		}
		defer in.Close()
		if err := b.nc.PublishRequest(APIPrefix+"DIRECT.GET."+stream, in.Sub.Subject, body); err != nil {
			return err
		}
		m, err := in.Next(ctx, b.answer)
		if err != nil {
			return err
		}
		switch status := m.Header.Get(StatusHeader); status {
		case "":
			n, err = strconv.Atoi(m.Header.Get("Nats-Num-Pending"))
			n++ // the first
			return err
		case StatusNone:
			n = 0
			return nil
		case StatusNoResponders:
			return nats.ErrNoResponders
		default:
			return fmt.Errorf("status %s", status)
		}
	})
	return n, err
}

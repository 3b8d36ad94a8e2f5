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

package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// FloorClient hands tasks to the floor and takes their results, with the client library alone.
type FloorClient struct {
	nc   *nats.Conn
	ends *nats.Subscription
	task []byte
}

// NewFloorClient makes one that listens to the ends of runs.
func NewFloorClient(nc *nats.Conn) (*FloorClient, error) {
	ends, err := nc.SubscribeSync("events.*.*.run_finished")
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	t := Task()
	t.SetDefaults()
	return &FloorClient{nc, ends, t.Encode()}, nil
}

// Close ends the subscription.
func (c *FloorClient) Close() error {
	if err := c.ends.Unsubscribe(); err != nil {
		return fmt.Errorf("unsubscribe: %w", err)
	}
	return nil
}

// Hear submits a task under an id and waits until it hears that its run has ended. It may hear what the stream refused.
func (c *FloorClient) Hear(ctx context.Context, id string) error {
	m := &nats.Msg{Subject: "tasks.normal.default." + id, Data: c.task, Header: nats.Header{
		jetstream.MsgIDHeader:                   {"default." + id},
		jetstream.ExpectedLastSubjSeqSubjHeader: {"lanes.*.*.default." + id},
		jetstream.ExpectedLastSubjSeqHeader:     {"0"},
	}}
	ctx, cancel := context.WithTimeout(ctx, floorTimeout)
	defer cancel()
	stored, err := c.nc.RequestMsgWithContext(ctx, m)
	if err == nil {
		err = refusal(stored)
	}
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	end, err := c.ends.NextMsgWithContext(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("wait for the end of a run: %w", err)
	case end.Subject != "events.default."+id+".run_finished":
		return fmt.Errorf("wait for the end of %s: heard %s", id, end.Subject)
	default:
		return nil
	}
}

// Wait is Hear, and then reads the entry of the log that holds the result, whole and stored for sure.
func (c *FloorClient) Wait(ctx context.Context, id string) error {
	if err := c.Hear(ctx, id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, floorTimeout)
	defer cancel()
	answer, err := c.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET.RUNS", fmt.Appendf(nil, `{"last_by_subj":"runs.default.%s.log"}`, id))
	if err != nil {
		return fmt.Errorf("read result: %w", err)
	}
	var entry struct {
		Message struct {
			Data []byte    `json:"data"`
			Time time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &entry); err != nil {
		return fmt.Errorf("read result: %w", err)
	}
	if len(entry.Message.Data) == 0 {
		return errors.New("read result: there is none")
	}
	return nil
}

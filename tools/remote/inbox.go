package remote

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
)

// answers ends the subject of the answers of programs. A program whose user may publish such subjects alone can answer each call, however long
// it takes, and nothing else that a worker has asked. Permission to reply to whatever comes in would let a worker have it publish anywhere.
const answers = ".tools"

// errUnsent says of a message that it was certainly not sent, and will not be.
var errUnsent = errors.New("nothing was sent")

// request publishes a message whose answers, most of them, come to the subscription that it returns. The caller unsubscribes. Whether
// the connection stands is not asked before, for that may change: one that keeps no messages refuses them while it does not.
func request(nc *nats.Conn, m *nats.Msg, most, bytes int) (*nats.Subscription, error) {
	m.Reply = nc.NewInbox() + answers
	sub, err := nc.SubscribeSync(m.Reply)
	if err != nil {
		return nil, errors.Join(errUnsent, err)
	}
	if err = sub.SetPendingLimits(most, bytes); err == nil {
		err = sub.AutoUnsubscribe(most)
	}
	if err != nil {
		_ = sub.Unsubscribe()
		return nil, errors.Join(errUnsent, err)
	}
	if err = nc.PublishMsg(m); err != nil {
		_ = sub.Unsubscribe()
		switch {
		case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining),
			errors.Is(err, nats.ErrMaxPayload):
			err = errors.Join(errUnsent, err)
		}
		return nil, err
	}
	return sub, nil
}

// ask sends a message and waits for the first answer. The error is nats.ErrNoResponders when nothing listens.
func ask(ctx context.Context, nc *nats.Conn, m *nats.Msg) (*nats.Msg, error) {
	sub, err := request(nc, m, 1, int(nc.MaxPayload()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	return sub.NextMsgWithContext(ctx)
}

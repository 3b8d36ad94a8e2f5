package remote

import (
	"context"

	"github.com/nats-io/nats.go"
)

// answers ends the subject of the answers of programs. A program whose user may publish such subjects alone can answer each call, however long
// it takes, and nothing else that a worker has asked. Permission to reply to whatever comes in would let a worker have it publish anywhere.
const answers = ".tools"

// request publishes a message whose answers, most of them, come to the subscription that it returns. The caller unsubscribes.
func request(nc *nats.Conn, m *nats.Msg, most, bytes int) (*nats.Subscription, error) {
	m.Reply = nc.NewInbox() + answers
	sub, err := nc.SubscribeSync(m.Reply)
	if err != nil {
		return nil, err
	}
	if err = sub.SetPendingLimits(most, bytes); err == nil {
		if err = sub.AutoUnsubscribe(most); err == nil {
			err = nc.PublishMsg(m)
		}
	}
	if err != nil {
		_ = sub.Unsubscribe()
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

package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Traffic is what a connection has sent and received, as the server counts it. JetStream's own work is not in it.
type Traffic struct {
	InMsgs   int64 `json:"in_msgs"`
	OutMsgs  int64 `json:"out_msgs"`
	InBytes  int64 `json:"in_bytes"`
	OutBytes int64 `json:"out_bytes"`
}

// Minus is what was sent and received since o.
func (t Traffic) Minus(o Traffic) Traffic {
	return Traffic{t.InMsgs - o.InMsgs, t.OutMsgs - o.OutMsgs, t.InBytes - o.InBytes, t.OutBytes - o.OutBytes}
}

// Plus is the sum of both.
func (t Traffic) Plus(o Traffic) Traffic {
	return Traffic{t.InMsgs + o.InMsgs, t.OutMsgs + o.OutMsgs, t.InBytes + o.InBytes, t.OutBytes + o.OutBytes}
}

// trafficWait bounds the wait for the statistics of a server.
const trafficWait = 5 * time.Second

// TrafficOf asks the servers about the connections with a name, and returns the sum. In a cluster they are connected to the same server.
func TrafficOf(ctx context.Context, nc *nats.Conn, name string) (sum Traffic, err error) {
	ctx, cancel := context.WithTimeout(ctx, trafficWait)
	defer cancel()
	in, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		return sum, fmt.Errorf("ask for connection statistics: %w", err)
	}
	defer func() { _ = in.Unsubscribe() }() // fails only when the connection is gone
	if err := nc.PublishRequest("$SYS.REQ.ACCOUNT.PING.CONNZ", in.Subject, nil); err != nil {
		return sum, fmt.Errorf("ask for connection statistics: %w", err)
	}
	for found := false; !found; { // each server answers
		m, err := in.NextMsgWithContext(ctx)
		if err != nil {
			return sum, fmt.Errorf("ask for statistics of connection %q: %w", name, err)
		}
		var reply struct {
			Data struct {
				Connections []struct {
					Name string `json:"name"`
					Traffic
				} `json:"connections"`
			} `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &reply); err != nil {
			return sum, fmt.Errorf("read connection statistics: %w", err)
		}
		for _, c := range reply.Data.Connections {
			if c.Name == name {
				sum, found = sum.Plus(c.Traffic), true
			}
		}
	}
	return sum, nil
}

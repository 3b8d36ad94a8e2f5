package measure

import (
	"context"
	"encoding/json"
	"fmt"

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

// TrafficOf asks the server about the connections with a name, and returns the sum.
func TrafficOf(ctx context.Context, nc *nats.Conn, name string) (Traffic, error) {
	m, err := nc.RequestWithContext(ctx, "$SYS.REQ.ACCOUNT.PING.CONNZ", nil)
	if err != nil {
		return Traffic{}, fmt.Errorf("ask for connection statistics: %w", err)
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
		return Traffic{}, fmt.Errorf("read connection statistics: %w", err)
	}
	var sum Traffic
	found := false
	for _, c := range reply.Data.Connections {
		if c.Name == name {
			sum, found = sum.Plus(c.Traffic), true
		}
	}
	if !found {
		return sum, fmt.Errorf("read connection statistics: no connection %q", name)
	}
	return sum, nil
}

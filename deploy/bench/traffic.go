package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
)

// traffic is what a connection has sent and received, as the server counts it. JetStream's own work is not in it.
type traffic struct {
	InMsgs   int64 `json:"in_msgs"`
	OutMsgs  int64 `json:"out_msgs"`
	InBytes  int64 `json:"in_bytes"`
	OutBytes int64 `json:"out_bytes"`
}

func (t traffic) minus(o traffic) traffic {
	return traffic{t.InMsgs - o.InMsgs, t.OutMsgs - o.OutMsgs, t.InBytes - o.InBytes, t.OutBytes - o.OutBytes}
}

// trafficOf asks the server about the connection with a name.
func trafficOf(ctx context.Context, nc *nats.Conn, name string) (traffic, error) {
	m, err := nc.RequestWithContext(ctx, "$SYS.REQ.ACCOUNT.PING.CONNZ", nil)
	if err != nil {
		return traffic{}, fmt.Errorf("ask for connection statistics: %w", err)
	}
	var reply struct {
		Data struct {
			Connections []struct {
				Name string `json:"name"`
				traffic
			} `json:"connections"`
		} `json:"data"`
	}
	if err := json.Unmarshal(m.Data, &reply); err != nil {
		return traffic{}, fmt.Errorf("read connection statistics: %w", err)
	}
	for _, c := range reply.Data.Connections {
		if c.Name == name {
			return c.traffic, nil
		}
	}
	return traffic{}, fmt.Errorf("read connection statistics: no connection %q", name)
}

package deadletters

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages/bus"
)

// Count counts those that are kept, of tasks and of webhooks, and all that were ever stored.
func (s *Store) Count(ctx context.Context) (tasks, webhooks int, stored uint64, err error) {
	var info struct {
		State struct {
			Messages int    `json:"messages"`
			Last     uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := s.bus.Call(ctx, "STREAM.INFO."+bus.StreamDead, nil, &info); err != nil {
		return 0, 0, 0, fmt.Errorf("count dead letters: %w", err)
	}
	if info.State.Messages == 0 {
		return 0, 0, info.State.Last, nil
	}
	if webhooks, err = s.bus.Stream(bus.StreamDead).Count(ctx, "dead.*.webhook.*.*"); err != nil {
		return 0, 0, 0, fmt.Errorf("count dead letters: %w", err)
	}
	return max(0, info.State.Messages-webhooks), webhooks, info.State.Last, nil
}

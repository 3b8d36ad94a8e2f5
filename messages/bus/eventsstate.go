package bus

import (
	"context"
	"fmt"
	"time"
)

// EventsState is what there is in EVENTS now.
type EventsState struct {
	First, Last uint64    // positions; First is Last+1 when nothing is kept
	Created     time.Time // the stream: another one has other positions
}

// EventsState asks what there is in EVENTS.
func (b *Bus) EventsState(ctx context.Context) (EventsState, error) {
	var info struct {
		Created time.Time `json:"created"`
		State   struct {
			First uint64 `json:"first_seq"`
			Last  uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := b.Call(ctx, "STREAM.INFO."+StreamEvents, struct{}{}, &info); err != nil {
		return EventsState{}, fmt.Errorf("look at %s: %w", StreamEvents, err)
	}
	return EventsState{info.State.First, info.State.Last, info.Created}, nil
}

package events

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
)

// State is what EVENTS holds now.
type State struct {
	First, Last uint64    // positions; First is Last+1 when nothing is kept
	Created     time.Time // the stream: another one has other positions
}

// State asks what EVENTS holds.
func (st *Store) State(ctx context.Context) (State, error) {
	var info struct {
		Created time.Time `json:"created"`
		State   struct {
			First uint64 `json:"first_seq"`
			Last  uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := st.bus.Call(ctx, "STREAM.INFO."+bus.StreamEvents, struct{}{}, &info); err != nil {
		return State{}, fmt.Errorf("look at %s: %w", bus.StreamEvents, err)
	}
	return State{info.State.First, info.State.Last, info.Created}, nil
}

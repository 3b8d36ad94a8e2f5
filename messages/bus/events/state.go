package events

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages/bus"
)

// State is what EVENTS holds now.
type State struct {
	First, Last Position    // First is one more than Last where nothing is kept
	Oldest      []time.Time // when First was stored; zero where nothing is kept
	Created     time.Time   // the stream, or the first of several
	Of          string      // which streams they are: others have other positions
}

// Empty reports whether nothing is kept.
func (s *State) Empty() bool {
	for i, first := range s.First {
		if first <= s.Last[i] {
			return false
		}
	}
	return true
}

// Beyond is a position once the streams were asked what follows it: of a stream that has nothing after it, its end in a state that was
// asked for before. The last messages were removed then, those of a run that was erased for example.
func (st *Store) Beyond(ctx context.Context, at Position, s *State) (Position, error) {
	out := at.Max(make(Position, len(s.Last)))
	for i, name := range st.bus.Partitions(bus.StreamEvents).Names() {
		if at.At(i) >= s.Last[i] {
			continue
		}
		_, follows, err := st.bus.Stream(name).Get(ctx, bus.Lookup{Seq: at.At(i) + 1, Next: bus.EveryEvent})
		if err != nil {
			return at, fmt.Errorf("look at %s: %w", name, err)
		}
		if !follows {
			out[i] = s.Last[i]
		}
	}
	return out, nil
}

// Streams is how many streams EVENTS is in.
func (st *Store) Streams() int { return st.bus.Partitions(bus.StreamEvents).Len() }

// State asks what EVENTS holds.
func (st *Store) State(ctx context.Context) (State, error) {
	names := st.bus.Partitions(bus.StreamEvents).Names()
	n := len(names)
	s, created := State{First: make(Position, n), Last: make(Position, n), Oldest: make([]time.Time, n)}, make([]time.Time, n)
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() error {
			var info struct {
				Created time.Time `json:"created"`
				State   struct {
					First  uint64    `json:"first_seq"`
					Last   uint64    `json:"last_seq"`
					Oldest time.Time `json:"first_ts"`
				} `json:"state"`
			}
			if err := st.bus.Call(ctx, "STREAM.INFO."+name, struct{}{}, &info); err != nil {
				return fmt.Errorf("look at %s: %w", name, err)
			}
			s.First[i], s.Last[i], s.Oldest[i], created[i] = info.State.First, info.State.Last, info.State.Oldest, info.Created
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return State{}, err
	}
	s.Created = created[0]
	of := make([]string, n)
	for i, at := range created {
		of[i] = at.UTC().Format(time.RFC3339Nano)
	}
	s.Of = strings.Join(of, " ")
	return s, nil
}

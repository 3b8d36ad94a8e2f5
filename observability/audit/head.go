package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/bus/events"
)

// Tail is where a chain ends, and where it begins.
type Tail struct {
	N    uint64 `json:"n"`
	Hash Hash   `json:"hash"`
	// From is the first entry that is kept; those before were removed for their age. Absent: 1.
	From uint64 `json:"from,omitempty"`
}

func (t Tail) first() uint64 { return max(1, t.From) }

// headBody is what a head says. Its entry's position is that up to which EVENTS is in the chains.
type headBody struct {
	// Compared: the runs whose end is at or before this position were compared with their logs.
	Compared uint64 `json:"compared"`
	// Position and ComparedTo are the positions in each of several streams, such as 17.4.0.22. Those of one number are their sums then.
	Position   string `json:"position,omitempty"`
	ComparedTo string `json:"comparedTo,omitempty"`
	// Chains are the tails of those that changed since the head before, by tenant.
	Chains map[string]Tail `json:"chains,omitempty"`
	// Whole: Chains are all. So it is in the first head of each segment.
	Whole bool `json:"whole,omitempty"`
	// More: the next entry continues with this head, which is none without it.
	More bool `json:"more,omitempty"`
	// From is the first entry of the heads that is kept.
	From uint64 `json:"from,omitempty"`
}

// maxChains is how many chains one entry of the heads names.
const maxChains = 1000

// bodies cuts a head into entries. The last one has no More.
func (h headBody) bodies() []headBody {
	var out []headBody
	for names := range slices.Chunk(slices.Sorted(maps.Keys(h.Chains)), maxChains) {
		part := h
		part.More, part.Chains = true, map[string]Tail{}
		for _, name := range names {
			part.Chains[name] = h.Chains[name]
		}
		out = append(out, part)
	}
	if len(out) == 0 {
		out = []headBody{h}
	}
	out[len(out)-1].More = false
	return out
}

// at are the positions of a head, whose entry has one.
func (h headBody) at(position uint64) (at, compared events.Position, err error) {
	if h.Position == "" {
		return single(position), single(h.Compared), nil
	}
	streams := strings.Count(h.Position, ".") + 1
	at, err1 := events.ParsePosition(h.Position, streams)
	compared, err2 := events.ParsePosition(h.ComparedTo, streams)
	return at, compared, errors.Join(err1, err2)
}

func single(position uint64) events.Position {
	if position == 0 {
		return nil
	}
	return events.Position{position}
}

// state is what the heads say together.
type state struct {
	last     Entry // the last whole head; N is 0 without one
	body     headBody
	tails    map[string]Tail
	whole    bool            // a whole head was read
	upcoming map[string]Tail // of a head that continues
}

func newState() *state { return &state{tails: map[string]Tail{}, upcoming: map[string]Tail{}} }

// take reads the next entry of the heads, and reports whether a head ends with it.
func (s *state) take(e *Entry) (bool, error) {
	if e.Kind != KindHead {
		return false, nil
	}
	var b headBody
	if err := json.Unmarshal(e.Body, &b); err != nil {
		return false, fmt.Errorf("read head %d: %w", e.N, err)
	}
	maps.Copy(s.upcoming, b.Chains)
	if b.More {
		return false, nil
	}
	if b.Whole {
		clear(s.tails)
		s.whole = true
	}
	maps.Copy(s.tails, s.upcoming)
	clear(s.upcoming)
	s.last, s.body = *e, b
	s.last.Body, s.body.Chains = nil, nil
	return true, nil
}

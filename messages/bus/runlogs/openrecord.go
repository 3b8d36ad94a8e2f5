package runlogs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

const (
	openHead    = bus.OpenPrefix + "head"  // then, of a partition of RUNS, a dot and its name
	openPart    = bus.OpenPrefix + "part." // then the pass and the number of the part
	openPartMax = 4_000                    // runs of a part, below the largest payload whatever their names
	openVersion = 1
	maxParts    = 10_000
)

// openRecord is the set of open runs as of a position in RUNS, or in a partition of it.
type openRecord struct {
	openSet

	head     string    // the subject of its head
	Stream   time.Time // when RUNS was made: another one has other positions
	Position uint64    // of the last entry that is taken into account
	Compared uint64    // of the last entry that was compared with the set

	seq   uint64   // of the head in OPEN; 0: there is none
	parts []uint64 // the sequences of the parts
	moved bool     // another process has moved it
}

// openHeader is the head in OPEN.
type openHeader struct {
	Version  int       `json:"version"`
	Stream   time.Time `json:"stream"`
	Position uint64    `json:"position"`
	Compared uint64    `json:"compared,omitempty"`
	Round    string    `json:"round"` // of the pass that recorded it: its parts have it in their subjects
	Parts    int       `json:"parts"`
}

// read reads a head, and reports whether it fits RUNS.
func (h *openHeader) read(data []byte, is runsState) bool {
	return json.Unmarshal(data, h) == nil && h.Version == openVersion && h.Stream.Equal(is.Created) && h.Position <= is.Last &&
		h.Parts >= 0 && h.Parts <= maxParts && !strings.ContainsAny(h.Round, ".*> ")
}

// openRuns is a part: runs as <tenant>/<run>.
type openRuns struct {
	Open  []string `json:"open,omitempty"`
	Ended []string `json:"ended,omitempty"`
}

// loadOpen reads what is recorded. What does not fit RUNS, or is not whole, is an empty record at position 0.
func (st *Store) loadOpen(ctx context.Context, stream string, is runsState) (openRecord, error) {
	r := openRecord{openSet: newOpenSet(), head: openHead, Stream: is.Created}
	if stream != bus.StreamRuns {
		r.head += "." + stream
	}
	m, ok, err := st.bus.Stream(bus.StreamOpen).Get(ctx, bus.Lookup{Last: r.head})
	if err != nil {
		return r, fmt.Errorf("read %s: %w", bus.StreamOpen, err)
	}
	if !ok {
		return r, nil
	}
	r.seq = m.Seq
	var h openHeader
	if !h.read(m.Data, is) {
		return r, nil
	}
	set := newOpenSet()
	for n := range h.Parts {
		part, ok, err := st.bus.Stream(bus.StreamOpen).Get(ctx, bus.Lookup{Last: partSubject(h.Round, n)})
		if err != nil {
			return r, fmt.Errorf("read %s: %w", bus.StreamOpen, err)
		}
		if !ok || !set.read(part.Data) {
			return r, nil
		}
		r.parts = append(r.parts, part.Seq)
	}
	r.openSet, r.Position, r.Compared = set, h.Position, min(h.Compared, h.Position)
	return r, nil
}

func partSubject(pass string, n int) string { return fmt.Sprintf("%s%s.%d", openPart, pass, n) }

// read adds the runs of a part, and reports whether it can be read.
func (s openSet) read(data []byte) bool {
	var part openRuns
	if json.Unmarshal(data, &part) != nil {
		return false
	}
	for _, list := range []struct {
		names []string
		into  map[messages.Ref]bool
	}{{part.Open, s.Open}, {part.Ended, s.Ended}} {
		for _, name := range list.names {
			tenant, id, _ := strings.Cut(name, "/")
			run := messages.Ref{Tenant: tenant, Run: id}
			if run.Check() != nil {
				return false
			}
			list.into[run] = true
		}
	}
	return true
}

// write makes the parts of a set. There is one at least.
func (s openSet) write() ([][]byte, error) {
	parts := []openRuns{{}}
	add := func(into func(*openRuns) *[]string, runs map[messages.Ref]bool) {
		for run := range runs {
			last := &parts[len(parts)-1]
			if len(last.Open)+len(last.Ended) == openPartMax {
				parts = append(parts, openRuns{})
				last = &parts[len(parts)-1]
			}
			list := into(last)
			*list = append(*list, run.Tenant+"/"+run.Run)
		}
	}
	add(func(p *openRuns) *[]string { return &p.Open }, s.Open)
	add(func(p *openRuns) *[]string { return &p.Ended }, s.Ended)
	out := make([][]byte, len(parts))
	for i := range parts {
		data, err := json.Marshal(parts[i])
		if err != nil {
			return nil, fmt.Errorf("encode open runs: %w", err)
		}
		out[i] = data
	}
	return out, nil
}

// storeOpen records a set: its parts, then the head, by compare-and-set. Parts without a head expire. When another process was faster
// its record stays; that is no error, and nothing more is recorded.
func (st *Store) storeOpen(ctx context.Context, r *openRecord) error {
	if r.moved {
		return nil
	}
	parts, err := r.write()
	if err != nil {
		return err
	}
	if len(parts) > maxParts {
		return errors.New("too many runs are open to be recorded")
	}
	h := openHeader{openVersion, r.Stream, r.Position, r.Compared, rand.Text(), len(parts)}
	seqs := make([]uint64, len(parts))
	for n, data := range parts {
		stored, err := st.bus.Store(ctx, &nats.Msg{Subject: partSubject(h.Round, n), Data: data, Header: nats.Header{}})
		if err != nil {
			return fmt.Errorf("write to %s: %w", bus.StreamOpen, err)
		}
		seqs[n] = stored.Seq
	}
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode open runs: %w", err)
	}
	m := &nats.Msg{Subject: r.head, Data: data, Header: nats.Header{}}
	bus.Expect(m, r.seq)
	stored, err := st.bus.Store(ctx, m)
	old := r.parts
	switch {
	case bus.Refused(err, bus.CodeWrongLast):
		old, r.moved = seqs, true
	case err != nil:
		return fmt.Errorf("write to %s: %w", bus.StreamOpen, err)
	default:
		r.seq, r.parts = stored.Seq, seqs
	}
	for _, seq := range old {
		if err := st.bus.Stream(bus.StreamOpen).Remove(ctx, seq); err != nil {
			return fmt.Errorf("remove from %s: %w", bus.StreamOpen, err)
		}
	}
	return nil
}

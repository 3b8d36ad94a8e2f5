package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

// Shape is what one run writes, in counts and bytes. The floor writes the same.
type Shape struct {
	Appends    []appendShape `json:"appends"`
	States     float64       `json:"states"` // written to Redis per run
	StateBytes int           `json:"stateBytes"`
}

// appendShape is one entry of a run's log and the events that follow from it.
type appendShape struct {
	Header int          `json:"header"` // bytes of the head
	Data   int          `json:"data"`
	Events []eventShape `json:"events"`
}

type eventShape struct {
	Name string `json:"name"`
	Data int    `json:"data"`
}

// EventCount is how many messages of events a run has.
func (s Shape) EventCount() int {
	n := 0
	for _, a := range s.Appends {
		n += len(a.Events)
	}
	return n
}

// LogBytes is the size of its log.
func (s Shape) LogBytes() int {
	n := 0
	for _, a := range s.Appends {
		n += a.Header + a.Data
	}
	return n
}

// EventBytes is the size of its events.
func (s Shape) EventBytes() int {
	n := 0
	for _, a := range s.Appends {
		for _, e := range a.Events {
			n += e.Data
		}
	}
	return n
}

// ShapeOf reads what a run that has finished wrote.
func ShapeOf(ctx context.Context, nc *nats.Conn, run messages.Ref) (Shape, error) {
	var s Shape
	entries, err := stored(ctx, nc, bus.StreamRuns, run.LogSubject())
	if err != nil {
		return s, err
	}
	events, err := stored(ctx, nc, bus.StreamEvents, run.EventFilter())
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		header := e.Header.Get("Longshore-Head")
		head, err := record.DecodeHead(header)
		if err != nil {
			return s, fmt.Errorf("read the log of a run: %w", err)
		}
		a := appendShape{Header: len(header), Data: len(e.Data)}
		for left := head.Events; left > 0; events = events[1:] { // the bundles of a run that is alone are of one entry
			if len(events) == 0 {
				return s, fmt.Errorf("read the events of a run: %d are missing", left)
			}
			e := eventShape{events[0].Subject[strings.LastIndexByte(events[0].Subject, '.')+1:], len(events[0].Data)}
			a.Events = append(a.Events, e)
			if left--; e.Name == messages.NameBundle {
				var of []json.RawMessage
				if err := json.Unmarshal(events[0].Data, &of); err != nil {
					return s, fmt.Errorf("read the events of a run: %w", err)
				}
				left -= len(of) - 1
			}
		}
		s.Appends = append(s.Appends, a)
	}
	if len(s.Appends) == 0 || len(events) > 0 {
		return s, fmt.Errorf("read a run: it has %d entries, and %d events too many", len(s.Appends), len(events))
	}
	return s, nil
}

// stored are the messages of a subject in the streams of one kind.
func stored(ctx context.Context, nc *nats.Conn, kind, subject string) ([]*jetstream.RawStreamMsg, error) {
	streams, err := streamsOf(ctx, nc, kind)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	var out []*jetstream.RawStreamMsg
	for _, st := range streams {
		count, err := st.Info(ctx, jetstream.WithSubjectFilter(subject))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", kind, err)
		}
		left := uint64(0)
		for _, n := range count.State.Subjects {
			left += n
		}
		for seq := uint64(1); left > 0; left-- {
			m, err := st.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", kind, err)
			}
			out, seq = append(out, m), m.Sequence+1
		}
	}
	return out, nil
}

package embed

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Events yields every event of the run once and in order, from the first one, then as they come, and ends after
// run_finished. It may be called before Run, during it, and after it, and any number of times.
//
// It reads the log at its own pace: a consumer that is slow, or stops reading, holds neither the run nor memory. It
// ends with an error when ctx ends, and with ErrClosed when the service was closed before the run ended.
func (s *Session) Events(ctx context.Context) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for after := uint64(0); ; {
			through, end, more := s.feed.so()
			for e, err := range s.log.Read(ctx, s.run, after, through) {
				if err != nil {
					yield(messages.Event{}, fmt.Errorf("read %s: %w", s.run, err))
					return
				}
				if e.Seq > through {
					break
				}
				after = e.Seq
				for event := range record.EachEvent(s.run, &e, func(name string) bool { return name != messages.EventRunFinished }) {
					if !yield(event, nil) {
						return
					}
				}
			}
			if end != nil {
				yield(*end, nil)
				return
			}
			select {
			case <-more:
			case <-s.service.gone:
				yield(messages.Event{}, ErrClosed)
				return
			case <-ctx.Done():
				yield(messages.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// Typed is an event with its data as a struct. Its Name tells a start from an end.
type Typed[T any] struct {
	messages.Event

	Data T
}

// Steps are the starts and ends of steps among events.
func Steps(events iter.Seq2[messages.Event, error]) iter.Seq2[Typed[messages.Step], error] {
	return typed[messages.Step](events, messages.EventStepStart, messages.EventStepEnd)
}

// ToolCalls are the starts and ends of tool calls among events. A call that was refused has an end alone.
func ToolCalls(events iter.Seq2[messages.Event, error]) iter.Seq2[Typed[messages.ToolExecution], error] {
	return typed[messages.ToolExecution](events, messages.EventToolExecutionStart, messages.EventToolExecutionEnd)
}

// Errors are the model calls that failed for good among events. A tool's failure is an end with IsError of ToolCalls, and
// the run's is in its result.
func Errors(events iter.Seq2[messages.Event, error]) iter.Seq2[Typed[messages.ErrorData], error] {
	return typed[messages.ErrorData](events, messages.EventError)
}

// Replies are what the model answered, with tokens, cost and time of each call, among events.
func Replies(events iter.Seq2[messages.Event, error]) iter.Seq2[Typed[messages.MessageEnd], error] {
	return typed[messages.MessageEnd](events, messages.EventMessageEnd)
}

// Metrics are the sums of steps, tokens and cost among events: one, before the run ends.
func Metrics(events iter.Seq2[messages.Event, error]) iter.Seq2[Typed[messages.TurnEnd], error] {
	return typed[messages.TurnEnd](events, messages.EventTurnEnd)
}

// typed picks events by their names. The data of each of these is a T.
func typed[T any](events iter.Seq2[messages.Event, error], names ...string) iter.Seq2[Typed[T], error] {
	return func(yield func(Typed[T], error) bool) {
		for e, err := range events {
			if err != nil {
				yield(Typed[T]{}, err)
				return
			}
			if !slices.Contains(names, e.Name()) {
				continue
			}
			t := Typed[T]{Event: e}
			if err := json.Unmarshal(e.Data, &t.Data); err != nil {
				yield(t, fmt.Errorf("decode event %s: %w", e.ID, err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

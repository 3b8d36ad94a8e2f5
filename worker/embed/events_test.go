package embed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// calling is a run of two model calls with a tool call between them.
func calling(t *testing.T) *embed.Session {
	t.Helper()
	one := tool(t, "one", func() (tools.Result, error) { return tools.Text("1"), nil })
	return open(t, embed.Config{
		Model: agenttest.Replies(agenttest.Call("one", `{}`), agenttest.Text("It is 1.")), Tools: []tools.Tool{one},
	}, hello())
}

// Whenever one begins to read: the events are all there, as the callback heard them.
func TestEventsAreThoseOfOn(t *testing.T) {
	t.Parallel()
	s := calling(t)
	var heard []string
	s.On(func(e messages.Event) { heard = append(heard, string(record.AppendEvent(nil, &e))) })
	read := func() (all []string) {
		for e, err := range s.Events(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			all = append(all, string(record.AppendEvent(nil, &e)))
		}
		return all
	}
	during := make(chan []string, 1)
	go func() { during <- read() }()
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(heard, <-during); diff != "" || len(heard) < 10 {
		t.Errorf("while it runs: %s", diff)
	}
	if diff := cmp.Diff(heard, read()); diff != "" {
		t.Errorf("afterwards: %s", diff)
	}
}

func TestTypedEvents(t *testing.T) {
	t.Parallel()
	s := calling(t)
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range embed.Steps(s.Events(t.Context())) {
		got = append(got, fmt.Sprint(e.Name(), " ", e.Data.Step, " ", err))
	}
	for e, err := range embed.ToolCalls(s.Events(t.Context())) {
		got = append(got, fmt.Sprint(e.Name(), " ", e.Data.ToolName, " ", e.Data.Result, " ", err))
	}
	for e, err := range embed.Replies(s.Events(t.Context())) {
		got = append(got, fmt.Sprint(e.Name(), " ", e.Data.Text, " ", err))
	}
	for e, err := range embed.Metrics(s.Events(t.Context())) {
		got = append(got, fmt.Sprint(e.Name(), " ", e.Data.Steps, " ", err))
	}
	failing := open(t, embed.Config{Model: agenttest.Replies(agenttest.Fail(errors.New("boom")))}, hello())
	if _, err := failing.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for e, err := range embed.Errors(failing.Events(t.Context())) {
		got = append(got, fmt.Sprint(e.Name(), " ", e.Data.Message, " ", err))
	}
	want := []string{
		"step_start 1 <nil>", "step_end 1 <nil>", "step_start 2 <nil>", "step_end 2 <nil>",
		"tool_execution_start one  <nil>", "tool_execution_end one 1 <nil>",
		"message_end  <nil>", "message_end It is 1. <nil>", "turn_end 2 <nil>", "error model: unknown: boom <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A consumer that reads no further does not hold up the run, and leaves nothing behind (see TestMain).
func TestConsumersThatStopReading(t *testing.T) {
	t.Parallel()
	s := calling(t)
	first, release, stuck := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		for range s.Events(t.Context()) {
			if n++; n == 1 {
				close(first)
				<-release
			}
		}
		stuck <- n
	}()
	left := make(chan struct{})
	go func() {
		defer close(left)
		for range s.Events(t.Context()) {
			return
		}
	}()
	if res, err := s.Run(t.Context()); err != nil || res.Result != "It is 1." {
		t.Fatal(res, err)
	}
	<-first
	<-left
	close(release)
	if n := <-stuck; n < 10 {
		t.Errorf("it has read %d events in the end", n)
	}
}

func TestEventsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	s := calling(t)
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	var got error
	for _, err := range s.Events(ctx) {
		got = err
	}
	if !errors.Is(got, why) {
		t.Error(got)
	}
}

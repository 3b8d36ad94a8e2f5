package traces_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/observability/traces"
	"github.com/longshore-run/longshore/observability/traces/tracestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// hall is a stream of events, with exporters.
type hall struct {
	t         *testing.T
	nc        *nats.Conn
	bus       *bus.Bus
	collector *tracestest.Collector
	log       *logs
}

// openHall starts a server with streams, and a collector.
func openHall(t *testing.T) *hall {
	t.Helper()
	opts, err := bus.Options(bus.ConnConfig{})
	if err != nil {
		t.Fatal(err)
	}
	nc := embeddedtest.Conn(t, embeddedtest.Start(t, embedded.Config{NoRedis: true}), opts...)
	if err := bus.Setup(t.Context(), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	h := &hall{t: t, nc: nc, collector: tracestest.Start(t), log: &logs{}}
	h.bus, err = bus.Open(t.Context(), nc, bus.Config{Log: h.log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// export runs an exporter until stop is called, or the test ends.
func (h *hall) export() (x *traces.Exporter, stop func()) {
	h.t.Helper()
	x, err := traces.Open(h.t.Context(), traces.Config{
		Bus: h.bus, Log: h.log.logger(), Version: "1.2.3", Resource: map[string]string{"deployment.environment.name": "test"},
		Collector: traces.Collector{URL: h.collector.URL + "/v1/traces", Headers: map[string]string{"Authorization": "Bearer s3cret"}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return x, stop
}

// logs are lines that were logged.
type logs struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// story publishes the events of a run, as those who write its log do.
type story struct {
	h    *hall
	run  messages.Ref
	head record.Head
	n    int
	out  runlog.Outbox
	keep *[]messages.Event // instead of publishing
}

func (h *hall) story(run string) *story {
	ref := messages.Ref{Tenant: "acme", Run: run}
	return &story{h: h, run: ref, out: runlogs.New(h.bus, runlogs.Config{}).Open(ref)}
}

// add makes an entry, a second after the last, and waits until its events are stored.
func (s *story) add(records ...record.Record) {
	s.h.t.Helper()
	s.head = record.Follow(s.head, records...)
	s.head.Time = noon().Add(time.Duration(s.n) * time.Second)
	s.n++
	events := record.Events(s.run, record.Entry{Seq: uint64(s.n), Head: s.head, Records: records})
	if s.keep != nil {
		*s.keep = append(*s.keep, events...)
		return
	}
	last := len(events)
	if last > 0 && events[last-1].Name() == messages.EventRunFinished {
		last--
	}
	s.out.Publish(s.h.t.Context(), uint64(s.n), slices.Values(events[:last]))
	if err := s.out.Flush(s.h.t.Context()); err != nil {
		s.h.t.Fatal(err)
	}
	if last < len(events) {
		if err := s.out.Finish(s.h.t.Context(), events[last]); err != nil {
			s.h.t.Fatal(err)
		}
	}
}

func (s *story) started(traceparent string) *record.Started {
	return &record.Started{
		Task:     messages.Task{ID: s.run.Run, Tenant: s.run.Tenant, Agent: "reviewer", Input: messages.TextInput(hush), Traceparent: traceparent},
		Agent:    messages.Definition{Name: "reviewer", Revision: 4, Model: "gpt-4o"},
		QueuedAt: noon().Add(-1500 * time.Millisecond),
	}
}

// hush is what no span may show.
const hush = "a text that stays private"

func claimed(resumes string) *record.Claimed {
	return &record.Claimed{Claim: "k", Worker: "w", Ticket: 7, Delivery: 1, Resumes: resumes}
}

func replied(step int, calls ...string) *record.ModelReplied {
	r := &record.ModelReplied{
		Step: step, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(hush)}, Stop: messages.StopEnd,
		Usage: messages.Usage{Input: 100, Output: 20, CacheRead: 60, Total: 120}, Provider: "openai", Model: "gpt-4o", Millis: 400, Cost: new(0.25),
	}
	for _, id := range calls {
		r.Message.Content = append(r.Message.Content, messages.Block{ToolCall: toolCall(id)})
		r.Stop = messages.StopToolCalls
	}
	return r
}

func toolCall(id string) *messages.ToolCall {
	return &messages.ToolCall{ID: id, Name: "read_file", Arguments: `{"path":"` + hush + `"}`}
}

func toolStarted(step int, id, planned string) *record.ToolStarted {
	return &record.ToolStarted{Step: step, Call: *toolCall(id), StepID: planned}
}

func returned(step int, id, planned string, code messages.Code) *record.ToolReturned {
	return &record.ToolReturned{
		Step: step, Name: "read_file", StepID: planned, Code: code, Millis: 200,
		Result: messages.ToolResult{CallID: id, Content: messages.TextContent(hush), IsError: code != ""},
	}
}

func ended(step int, status messages.StepStatus) *record.StepEnded {
	return &record.StepEnded{Step: step, Status: status}
}

func (s *story) finished(steps int, code messages.Code) *record.Finished {
	r := messages.AgentResult{
		ID: s.run.Run, Status: messages.StatusCompleted, Success: code == "", StartedAt: noon(), FinishedAt: noon().Add(time.Minute),
		SessionID: "s-1", Steps: steps, Result: hush, CostEstimate: new(0.5), TokenUsage: messages.Usage{Input: 200, Output: 40, Total: 240},
		Provenance: &messages.Provenance{Agent: "reviewer", Revision: 4},
	}
	if code != "" {
		r.Status, r.Error = messages.StatusFailed, &messages.RunError{Code: code, Message: hush}
	}
	return &record.Finished{Result: r}
}

// lines is a text of several lines without the indentation it has in the source.
func lines(s string) string {
	return strings.ReplaceAll(strings.TrimPrefix(s, "\n"), "\t", "")
}

package observability_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/observability"
)

const patience = time.Minute

func openBus(t *testing.T) (*bus.Bus, *nats.Conn) {
	t.Helper()
	nc, err := embeddedtest.Start(t, embedded.Config{NoRedis: true}).Conn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := bus.Setup(t.Context(), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return b, nc
}

func publish(t *testing.T, nc *nats.Conn, subject string, body any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request(bustest.EventsAt(t, nc, subject), raw, patience); err != nil {
		t.Fatal(err)
	}
}

func publishEvent(t *testing.T, nc *nats.Conn, run messages.Ref, n int, name string, at time.Time, data any) {
	t.Helper()
	e := event(t, name, data)
	e.ID, e.Source, e.Subject, e.Time = fmt.Sprintf("%s.%d", run.Run, n), "/tenants/"+run.Tenant, run.Run, at
	e.Sequence, e.DataContentType = strconv.Itoa(n), "application/json"
	publish(t, nc, run.EventSubject(name), e)
}

// view runs a view until the test ends.
func view(t *testing.T, b *bus.Bus) plain {
	t.Helper()
	m := plain{observability.NewMetrics("")}
	v, err := observability.NewView(m.Metrics, b, retention.New(b, runlogs.New(b, runlogs.Config{})), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return m
}

// until scrapes until all lines are there.
func until(t *testing.T, m scraped, want ...string) string {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, missing := "\n"+scrape(t, m), ""
		for _, w := range want {
			if !strings.Contains(text, "\nlongshore_"+w) {
				missing = w
			}
		}
		if missing == "" {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("there is no %s in\n%s", missing, ours(text))
		}
	}
}

func TestViewOfNothing(t *testing.T) {
	b, _ := openBus(t)
	text := until(t, view(t, b), "queue_lanes 0\n", "fleet_workers 0\n", `dead_letters{of="task"} 0`, `dead_letters_stored_total 0`,
		`runs_parked{reason="approval"} 0`, `runs_parked_oldest_seconds{reason="approval"} 0`, "fleet_look_failures_total 0\n")
	if strings.Contains(text, "consumer_lag{") || strings.Contains(text, "queue_tasks{") {
		t.Errorf("something is shown that is not there:\n%s", ours(text))
	}
}

// submit puts a small task of a run into the queue.
func submit(t *testing.T, b *bus.Bus, run messages.Ref, p messages.Priority) {
	t.Helper()
	task := bustest.NewTask(run)
	task.Priority = p
	if _, err := taskqueue.New(b).Submit(t.Context(), task, true); err != nil {
		t.Fatal(err)
	}
}

func TestViewBoundsLanes(t *testing.T) {
	b, nc := openBus(t)
	for i := range 60 {
		for n := range 1 + min(1, i/59) { // one lane has two
			submit(t, b, messages.Ref{Tenant: fmt.Sprintf("tenant-%d", i), Run: fmt.Sprintf("run-%d", n)}, messages.PriorityNormal)
		}
	}
	submit(t, b, messages.Ref{Tenant: "slow", Run: "run"}, messages.PriorityLow)
	publish(t, nc, "dead.acme.webhook.run.x", map[string]any{})
	publish(t, nc, "dead.acme.run.x", map[string]any{})
	text := until(t, view(t, b), `queue_tasks{priority="normal",tenant="tenant-59"} 2`, "queue_lanes 61\n",
		`dead_letters{of="webhook"} 1`, `dead_letters{of="task"} 1`, "dead_letters_stored_total 2\n")
	lanes, total := 0, 0
	for line := range strings.Lines(text) {
		var n int
		if strings.HasPrefix(line, "longshore_queue_tasks{") {
			lanes++
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &n); err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	if lanes < 51 || lanes > 53 || total != 62 {
		t.Errorf("%d lanes with %d tasks are shown, want 50 and the rest with 62", lanes, total)
	}
	if !strings.Contains(text, `tenant="(other)"`) {
		t.Error("there is no rest")
	}
}

func TestViewCountsWhoWaits(t *testing.T) {
	b, nc := openBus(t)
	hourAgo := time.Now().Add(-time.Hour)
	a, c := messages.Ref{Tenant: "acme", Run: "a"}, messages.Ref{Tenant: "acme", Run: "c"}
	publishEvent(t, nc, a, 1, messages.EventRunWaiting, hourAgo, messages.RunWaiting{Reason: "approval"})
	publishEvent(t, nc, c, 1, messages.EventRunWaiting, hourAgo, messages.RunWaiting{Reason: "timer"})
	publish(t, nc, "events.acme.x.run_waiting", "junk")
	m := view(t, b)
	until(t, m, `runs_parked{reason="approval"} 1`, `runs_parked{reason="timer"} 1`, `runs_parked_oldest_seconds{reason="approval"} 36`)
	publishEvent(t, nc, a, 2, messages.EventRunResumed, hourAgo, messages.RunWaiting{Reason: "approval"})
	text := until(t, m, `runs_parked{reason="approval"} 0`, `runs_parked{reason="timer"} 1`)
	if strings.Contains(text, "fleet_look_failures_total 1") {
		t.Error(text)
	}
}

// A run that could not be taken up again ends without run_resumed. It no longer waits.
func TestViewForgetsWaitsOfRunsThatEnded(t *testing.T) {
	b, nc := openBus(t)
	for _, id := range []string{"ended", "waits"} {
		publishEvent(t, nc, messages.Ref{Tenant: "acme", Run: id}, 1, messages.EventRunWaiting, noon, messages.RunWaiting{Reason: "approval"})
	}
	m := view(t, b)
	until(t, m, `runs_parked{reason="approval"} 2`)
	publishEvent(t, nc, messages.Ref{Tenant: "acme", Run: "ended"}, 5, messages.EventRunFinished, noon, messages.RunFinished{})
	until(t, m, `runs_parked{reason="approval"} 1`)
}

// Two dispatchers count together what passed while none ran.
func TestSharedEventsAreCountedOnce(t *testing.T) {
	b, nc := openBus(t)
	shared, err := events.New(b).Share(t.Context(), bus.ConsumerMetrics)
	if err != nil {
		t.Fatal(err)
	}
	run := messages.Ref{Tenant: "acme", Run: "r"}
	for i := range 100 {
		publishEvent(t, nc, run, i+1, messages.EventRunStarted, noon, messages.RunStarted{Agent: "a"})
	}
	until(t, view(t, b), `consumer_lag{consumer="metrics"} 100`, `consumer_lag_seconds{consumer="metrics"} `)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	two := [2]counted{counting(""), counting("")}
	for _, c := range two {
		go func() { done <- shared.Run(ctx, c.Observe) }()
	}
	defer func() {
		cancel()
		for range two {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	started := func() (n int) {
		for _, c := range two {
			for line := range strings.Lines(scrape(t, c)) {
				var one int
				if _, err := fmt.Sscanf(line, `longshore_runs_started_total{agent="a"} %d`, &one); err == nil {
					n += one
				}
			}
		}
		return n
	}
	for end := time.Now().Add(patience); started() < 100 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	until(t, view(t, b), `consumer_lag{consumer="metrics"} 0`) // nothing will come again
	if n := started(); n != 100 {
		t.Errorf("%d events were counted, want 100", n)
	}
}

func TestLagOfOthers(t *testing.T) {
	m := plain{observability.NewMetrics("")}
	behind := bus.Lag{Messages: 3, Oldest: time.Now().Add(-time.Hour)}
	for name, f := range map[string]func() (bus.Lag, bool){
		"index": func() (bus.Lag, bool) { return behind, true },
		"audit": func() (bus.Lag, bool) { return bus.Lag{}, true },
		"none":  func() (bus.Lag, bool) { return bus.Lag{}, false },
	} {
		if err := m.Lag(name, f); err != nil {
			t.Fatal(err)
		}
	}
	text := until(t, m, `consumer_lag{consumer="index"} 3`, `consumer_lag_seconds{consumer="index"} 36`, `consumer_lag_seconds{consumer="audit"} 0`)
	if strings.Contains(text, `"none"`) {
		t.Error("a lag that is not known is shown")
	}
}

// A run that continued does not wait, whichever of the two events is stored first.
func TestViewOfWaitsStoredOutOfOrder(t *testing.T) {
	b, nc := openBus(t)
	ago := time.Now().Add(-time.Minute)
	store := func(run string, n int, name string) {
		publishEvent(t, nc, messages.Ref{Tenant: "acme", Run: run}, n, name, ago, messages.RunWaiting{Reason: "approval"})
	}
	store("on", 9, messages.EventRunResumed)
	store("on", 8, messages.EventRunWaiting)
	store("on", 4, messages.EventRunResumed)
	store("on", 3, messages.EventRunWaiting)
	store("waits", 8, messages.EventRunWaiting)
	store("waits", 4, messages.EventRunResumed)
	store("waits", 3, messages.EventRunWaiting)
	m := view(t, b)
	until(t, m, `runs_parked{reason="approval"} 1`+"\n")
	store("waits", 9, messages.EventRunResumed)
	until(t, m, `runs_parked{reason="approval"} 0`+"\n")
}

package runlogs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// following returns a Recent that runs, once it has what is appended.
func following(t *testing.T, logs *runlogs.Store) *runlogs.Recent {
	t.Helper()
	r := logs.Recent()
	ctx, cancel := context.WithCancel(bustest.Context(t))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for i := 0; ; i++ {
		first := messages.Ref{Tenant: "acme", Run: fmt.Sprint("first-", i)}
		bustest.MustAppend(t, logs, first, 0, bustest.Step("a", 1))
		for range 10 {
			if r.Holds(first) {
				return r
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func held(t *testing.T, r *runlogs.Recent, run messages.Ref) (out []record.Entry, err error) {
	t.Helper()
	for ctx := bustest.Context(t); ; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("the end of %s does not come", run)
		}
		log, ok := r.Take(ctx, run)
		if !ok {
			continue
		}
		for e, err := range log {
			if err != nil {
				return out, err
			}
			out = append(out, e)
		}
		return out, nil
	}
}

func finished(id string) record.Entry {
	e := record.Entry{Records: []record.Record{&record.Finished{Result: messages.AgentResult{ID: id, Status: messages.StatusCompleted}}}}
	e.Head = record.Follow(record.Head{}, e.Records...)
	e.Head.ID, e.Head.Time = id, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return e
}

// What is appended is what a read gives, and is forgotten with the end of its run.
func TestRecent(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	r := following(t, logs)
	run := bustest.Run()
	last := bustest.MustAppend(t, logs, run, 0, bustest.Step("a", 1))
	last = bustest.MustAppend(t, logs, run, last, bustest.Step("b", 2))
	if _, ok := r.Take(bustest.Context(t), run); ok {
		t.Error("a run that has not ended is given")
	}
	bustest.MustAppend(t, logs, run, last, finished("c"))
	got, err := held(t, r, run)
	if err != nil {
		t.Fatal(err)
	}
	var want []record.Entry
	for e := range bustest.Values(t, logs.Read(bustest.Context(t), run, 0, runlog.Tail)) {
		want = append(want, e)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 3 {
		t.Error(diff)
	}
	if r.Holds(run) {
		t.Error("it is still held")
	}
}

// A log whose beginning is not held is an error, not a shorter log.
func TestRecentWithoutTheBeginning(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	run := bustest.Run()
	last := bustest.MustAppend(t, logs, run, 0, bustest.Step("a", 1))
	r := following(t, logs)
	bustest.MustAppend(t, logs, run, last, finished("b"))
	if got, err := held(t, r, run); err == nil || !strings.Contains(err.Error(), "are not held") || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// What is held is bounded, whatever runs do not end.
func TestRecentIsBounded(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	r := following(t, logs)
	e := record.Entry{Records: []record.Record{&record.Steered{ID: "x", Message: strings.Repeat("x", 50<<10)}}}
	e.Head = record.Follow(record.Head{}, e.Records...)
	e.Head.ID = "large"
	most, forgot := 0, false
	for i := range 2000 {
		run := messages.Ref{Tenant: "acme", Run: fmt.Sprint("large-", i)}
		bustest.MustAppend(t, logs, run, 0, e)
		for ctx := bustest.Context(t); !r.Holds(run); time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("%s does not come", run)
			}
		}
		forgot = forgot || r.Bytes() < most
		most = max(most, r.Bytes())
	}
	if most > 64<<20 || most < 32<<20 || !forgot {
		t.Errorf("%d bytes were held of 100 MB, forgot: %v", most, forgot)
	}
	run := bustest.Run()
	bustest.MustAppend(t, logs, run, 0, finished("c"))
	if got, err := held(t, r, run); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/dispatcher/service/runindex"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

const patience = time.Minute

const priceFile = `
version: 1
currency: USD
date: 2026-01-02
source: a test
prices:
- {provider: scripted, models: ["*"], input: 1, output: 1}
`

const batchScript = `
model: rehearsal
scenes:
  - match: wait
    turns: [{delay: 1h, text: never}]
  - match: fail
    turns: [{error: {class: auth, message: no key}}]
  - match: ""
    turns: [{text: "did ${task}", usage: {input: 100, output: 100}}]
`

// yard is streams and a client; the test starts dispatchers and workers.
type yard struct {
	t       *testing.T
	servers *embedded.Servers
	nc      *nats.Conn
	bus     *bus.Bus
	client  *dispatcher.Client
}

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{t: t, servers: embeddedtest.Start(t)}
	y.nc = embeddedtest.Conn(t, y.servers)
	if err := bus.Setup(t.Context(), y.nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if y.bus, err = bus.Open(t.Context(), y.nc, bus.Config{}); err != nil {
		t.Fatal(err)
	}
	if y.client, err = dispatcher.New(t.Context(), y.nc); err != nil {
		t.Fatal(err)
	}
	return y
}

// dispatcher runs one without an index of runs until stop is called, or the test ends.
func (y *yard) dispatcher() (stop func()) {
	y.t.Helper()
	return y.dispatcherWith(nil)
}

func (y *yard) dispatcherWith(index runindex.Index) (stop func()) {
	y.t.Helper()
	nc := embeddedtest.Conn(y.t, y.servers)
	b, err := bus.Open(y.t.Context(), nc, bus.Config{})
	if err != nil {
		y.t.Fatal(err)
	}
	logs := runlogs.New(b, runlogs.Config{})
	controller := &runlog.Controller{
		Log: logs, Queue: taskqueue.New(b), Events: logs, Now: func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) },
		NewID: func() string { return messages.NewID(time.Now()) },
	}
	s := service.New(service.Config{Conn: nc, Bus: b, Controller: controller, Version: "0.0.0", Batches: 50 * time.Millisecond, Index: index})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		y.t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			y.t.Error(err)
		}
	}
	y.t.Cleanup(stop)
	return stop
}

// worker runs one until the test ends. It knows the price of what the script says it is.
func (y *yard) worker(prices string) {
	y.t.Helper()
	play, err := scripted.Parse([]byte(batchScript))
	if err != nil {
		y.t.Fatal(err)
	}
	s := settings.Worker{
		Name: "w", Runs: settings.Runs{Slots: 8, MaxAttempts: 5, MemoryTTL: time.Hour, DrainTimeout: time.Millisecond}, HTTPAddr: "127.0.0.1:0", RedisURL: y.servers.RedisURL,
		Workspaces: y.t.TempDir(),
	}
	s.Prices = prices
	s.URL = y.servers.NATSURL
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- fleet.Worker(ctx, s, "0.0.0", slog.New(slog.DiscardHandler), fleet.Parts{Model: scripted.New(play)}, func(string) { close(ready) })
	}()
	y.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			y.t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		y.t.Fatal(err)
	}
}

// until polls a batch until it is as wanted.
func (y *yard) until(ref messages.BatchRef, wanted func(*messages.Batch) bool) *messages.Batch {
	y.t.Helper()
	for end := time.Now().Add(patience); ; {
		b, err := y.client.Batches().Get(y.t.Context(), ref)
		if err == nil && wanted(b) {
			return b
		}
		if time.Now().After(end) {
			y.t.Fatalf("batch %s: %+v, %v", ref, b, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (y *yard) ended(ref messages.BatchRef) *messages.Batch {
	y.t.Helper()
	return y.until(ref, func(b *messages.Batch) bool { return b.Status.Ended() })
}

func spec(id string) dispatcher.BatchSpec {
	return dispatcher.BatchSpec{BatchRef: dispatcher.BatchOf(id)}
}

// file is lines a0, a1 … with a task each.
func file(n int, input string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"a%d","input":"%s %d"}`+"\n", i, input, i)
	}
	return b.String()
}

func read(s string) func(func(dispatcher.Line, error) bool) {
	return dispatcher.ReadLines(strings.NewReader(s))
}

// ids are the custom_ids of a batch's results with how they ended.
func (y *yard) results(ref messages.BatchRef, order dispatcher.BatchOrder) (ids []string) {
	y.t.Helper()
	for o, err := range y.client.Batches().Results(y.t.Context(), ref, order) {
		if err != nil {
			y.t.Fatal(err)
		}
		ids = append(ids, o.CustomID+" "+string(o.Status))
	}
	return ids
}

var errCut = errors.New("the line was cut")

// Whatever byte a submission is cut at, nothing runs; submitted again, each line is one task.
func TestBatchCutAtAnyByte(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	text := `{"custom_id":"a0","input":"x"}` + "\n" + `{"custom_id":"a1","input":"y"}`
	for cut := range len(text) {
		in := io.MultiReader(strings.NewReader(text[:cut]), iotest.ErrReader(errCut))
		if _, err := y.client.Batches().Submit(t.Context(), spec("b"), dispatcher.ReadLines(in)); !errors.Is(err, errCut) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	if b := y.until(dispatcher.BatchOf("b"), func(*messages.Batch) bool { return true }); b.Status != messages.BatchValidating {
		t.Fatalf("a batch that was cut is %s", b.Status)
	}
	for range 2 { // the second finds the same
		b, err := y.client.Batches().Submit(t.Context(), spec("b"), read(text))
		if err != nil || b.Counts.Total != 2 {
			t.Fatalf("%+v, %v", b, err)
		}
	}
	if _, err := y.client.Batches().Submit(t.Context(), spec("b"), read(file(5, "go"))); !errors.Is(err, dispatcher.ErrConflict) {
		t.Errorf("another file with the same id: %v", err)
	}
	y.worker("")
	y.ended(dispatcher.BatchOf("b"))
	want := []string{"a0 completed", "a1 completed"}
	if diff := cmp.Diff(want, y.results(dispatcher.BatchOf("b"), dispatcher.ByInput)); diff != "" {
		t.Error(diff)
	}
	runs := 0
	for e, err := range y.client.Runs().Recent(t.Context(), "default", time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == messages.EventRunQueued {
			runs++
			if !bytes.Contains(e.Data, []byte(`"labels":{"batch":"b"}`)) || !bytes.Contains(e.Data, []byte(`"priority":"low"`)) {
				t.Errorf("the task has no label, or another priority: %s", e.Data)
			}
		}
	}
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

// What is stored when a submission is cut stays only as long as it is in the file that comes then, in its order.
func TestBatchGoesOnWithAnotherFile(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	in := io.MultiReader(strings.NewReader(file(5, "go")), iotest.ErrReader(errCut))
	if _, err := y.client.Batches().Submit(t.Context(), spec("b"), dispatcher.ReadLines(in)); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	text := `{"custom_id":"a0","input":"go 0"}
{"custom_id":"new","input":"new"}
{"custom_id":"a1","input":"other"}
`
	if _, err := y.client.Batches().Submit(t.Context(), spec("b"), read(text)); err != nil {
		t.Fatal(err)
	}
	y.worker("")
	y.ended(dispatcher.BatchOf("b"))
	want := []string{"a0 completed", "new completed", "a1 completed"}
	if diff := cmp.Diff(want, y.results(dispatcher.BatchOf("b"), dispatcher.ByInput)); diff != "" {
		t.Error(diff)
	}
}

func TestBatchWithWrongLines(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	text := "\xef\xbb\xbf" + strings.Join([]string{
		`{"custom_id":"a","input":"x"}`,
		``,
		`{"custom_id":"b","input":"x"`,
		`{"custom_id":"a","input":"y"}`,
		`{"input":"x"}`,
		`{"custom_id":"c","input":"x","agent":"unknown"}`,
		`{"custom_id":"d","input":"x","id":"mine"}`,
		`{"custom_id":"e","input":"x","labels":{"batch":"z"}}`,
		`{"custom_id":"f","vars":{}}`,
		`{"custom_id":"g","input":"x","limit":3}`,
		`{"custom_id":"h","input":"` + strings.Repeat("x", messages.MaxBatchLine) + `"}`,
		`{"custom_id":"i","input":"last"}`,
	}, "\r\n")
	want := map[int]string{
		3: "body", 4: "custom_id: is that of line 1 too", 5: "custom_id: is missing", 6: "agent", 7: "id: is made from the batch and custom_id",
		8: "labels.batch: is the batch's own", 9: "vars: need a template", 10: "limit", 11: "longer than 2097152 bytes",
	}
	refused := map[int]string{}
	s := spec("b")
	s.Refused = func(e *messages.LineError) { refused[e.Line] = e.Field + ": " + e.Message }
	check, err := y.client.Batches().Check(t.Context(), s, read(text))
	if err != nil || check.Lines != 2 || check.Invalid != 9 {
		t.Fatalf("%+v, %v", check, err)
	}
	for line, part := range want {
		if !strings.Contains(refused[line], part) {
			t.Errorf("line %d: %q, want %q", line, refused[line], part)
		}
	}
	if len(refused) != len(want) {
		t.Errorf("%v", refused)
	}
	if _, err := y.client.Batches().Get(t.Context(), s.BatchRef); !errors.Is(err, dispatcher.ErrNoBatch) {
		t.Errorf("a dry run leaves a batch: %v", err)
	}
	b, err := y.client.Batches().Submit(t.Context(), s, read(text))
	if !errors.Is(err, dispatcher.ErrBatchInvalid) || b.Status != messages.BatchFailed || len(b.Errors) != 9 || b.Errors[1].Line != 4 {
		t.Fatalf("%+v, %v", b, err)
	}
	s.SkipInvalid = true // the same id again
	if b, err = y.client.Batches().Submit(t.Context(), s, read(text)); err != nil || b.Counts.Total != 2 || b.Counts.Invalid != 9 {
		t.Fatalf("%+v, %v", b, err)
	}
	y.worker("")
	y.ended(s.BatchRef)
	if diff := cmp.Diff([]string{"a completed", "i completed"}, y.results(s.BatchRef, dispatcher.ByInput)); diff != "" {
		t.Error(diff)
	}
}

func TestBatchResultsAndRetry(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	y.worker("")
	text := `{"custom_id":"1","input":"good"}
{"custom_id":"2","input":"fail"}
{"custom_id":"3","input":"good too","priority":"high","labels":{"k":"v"}}
`
	if _, err := y.client.Batches().Submit(t.Context(), spec("b"), read(text)); err != nil {
		t.Fatal(err)
	}
	b := y.ended(dispatcher.BatchOf("b"))
	if b.Status != messages.BatchCompleted || b.Counts.Completed != 2 || b.Counts.Failed != 1 || b.Unpriced != 0 || b.Cost != 0 {
		t.Fatalf("%+v", b)
	}
	want := []string{"1 completed", "2 failed", "3 completed"}
	if diff := cmp.Diff(want, y.results(b.BatchRef, dispatcher.ByInput)); diff != "" {
		t.Error(diff)
	}
	done := y.results(b.BatchRef, dispatcher.ByCompletion)
	slices.Sort(done)
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	for o, err := range y.client.Batches().Results(t.Context(), b.BatchRef, dispatcher.ByInput) {
		if err != nil || o.CustomID == "1" && o.Result.Text != "did good" || o.CustomID == "2" && o.Error.Code != messages.CodeModelAuth {
			t.Errorf("%+v, %v", o, err)
		}
	}
	again, err := y.client.Batches().Retry(t.Context(), b.BatchRef, spec("b2"), true)
	if err != nil || again.Counts.Total != 1 {
		t.Fatalf("%+v, %v", again, err)
	}
	y.ended(again.BatchRef)
	if diff := cmp.Diff([]string{"2 failed"}, y.results(again.BatchRef, dispatcher.ByInput)); diff != "" {
		t.Error(diff)
	}
	if _, err := y.client.Batches().Submit(t.Context(), spec("b0"), read(`{"custom_id":"1","input":"good"}`)); err != nil {
		t.Fatal(err)
	}
	y.ended(dispatcher.BatchOf("b0"))
	if _, err := y.client.Batches().Retry(t.Context(), dispatcher.BatchOf("b0"), spec("b3"), true); err == nil || !strings.Contains(err.Error(), "batch b0 has no line to try again") {
		t.Errorf("retry of what completed: %v", err)
	}
	list, err := y.client.Batches().List(t.Context(), "", 1)
	if err != nil || len(list.Batches) != 1 || list.Batches[0].ID != "b0" || !list.More {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestBatchCancel(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	y.worker("")
	if _, err := y.client.Batches().Submit(t.Context(), spec("b"), read(file(110, "wait"))); err != nil {
		t.Fatal(err)
	}
	ref := dispatcher.BatchOf("b")
	y.until(ref, func(b *messages.Batch) bool { return b.Counts.Submitted > 0 })
	if _, err := y.client.Batches().Retry(t.Context(), ref, spec("b2"), true); !errors.Is(err, dispatcher.ErrNotEnded) {
		t.Errorf("retry of what has not ended: %v", err)
	}
	if _, err := y.client.Batches().Cancel(t.Context(), ref, "enough"); err != nil {
		t.Fatal(err)
	}
	b := y.ended(ref)
	if b.Status != messages.BatchCancelled || b.Counts.Cancelled != 110 {
		t.Errorf("%+v", b)
	}
	if _, err := y.client.Batches().Cancel(t.Context(), ref, ""); !errors.Is(err, dispatcher.ErrEnded) {
		t.Errorf("cancel of what has ended: %v", err)
	}
}

func TestBatchExpires(t *testing.T) {
	y := newYard(t)
	y.dispatcher() // and no worker
	s := spec("b")
	for left := 500 * time.Millisecond; ; left *= 2 { // a slow machine needs more to submit it at all
		at := time.Now().Add(left)
		s.ExpiresAt = &at
		_, err := y.client.Batches().Submit(t.Context(), s, read(file(3, "go")))
		if err == nil {
			break
		}
		if s = spec("b" + left.String()); left > patience {
			t.Fatal(err)
		}
	}
	b := y.ended(s.BatchRef)
	if b.Status != messages.BatchExpired || b.Counts.Ended() != 3 || b.Counts.Completed != 0 {
		t.Errorf("%+v", b)
	}
}

func TestBatchBudget(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte(priceFile), 0o600); err != nil {
		t.Fatal(err)
	}
	y.worker(prices)
	s := spec("b")
	most := 0.001
	s.MaxCost = &most
	text := file(20, "go") + strings.ReplaceAll(file(20, "wait"), `"a`, `"w`)
	if _, err := y.client.Batches().Submit(t.Context(), s, read(text)); err != nil {
		t.Fatal(err)
	}
	b := y.ended(s.BatchRef)
	if b.Status != messages.BatchCancelled || !strings.HasPrefix(b.Reason, "budget") || b.Counts.Ended() != 40 || b.Counts.Cancelled < 20 {
		t.Errorf("%+v", b)
	}
}

// A batch with a cap of its own never has more tasks on their way, and ends.
func TestBatchConcurrency(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	s := spec("b")
	s.Concurrency = 3
	if _, err := y.client.Batches().Submit(t.Context(), s, read(file(12, "go"))); err != nil {
		t.Fatal(err)
	}
	within := func(b *messages.Batch) bool {
		if n := b.Counts.Submitted - b.Counts.Ended(); n > 3 || b.Concurrency != 3 {
			t.Fatalf("%d on their way: %+v", n, b)
		}
		return true
	}
	y.until(s.BatchRef, func(b *messages.Batch) bool { return within(b) && b.Counts.Submitted == 3 })
	if _, err := y.client.Cancel(t.Context(), dispatcher.Run(s.TaskID("a1")), "room for another"); err != nil {
		t.Fatal(err)
	}
	y.until(s.BatchRef, func(b *messages.Batch) bool { return within(b) && b.Counts.Submitted == 4 })
	if n, err := taskqueue.New(y.bus).TasksOf(t.Context(), messages.DefaultTenant); err != nil || n > 3 {
		t.Errorf("%d tasks are queued, %v", n, err)
	}
	y.worker("")
	b := y.until(s.BatchRef, func(b *messages.Batch) bool { return within(b) && b.Status.Ended() })
	if b.Status != messages.BatchCompleted || b.Counts.Completed != 11 || b.Counts.Cancelled != 1 {
		t.Errorf("%+v", b)
	}
}

// A dispatcher that stops anywhere leaves a batch that the next one ends.
func TestBatchOutlivesItsDispatchers(t *testing.T) {
	y := newYard(t)
	stop := y.dispatcher()
	y.worker("")
	if _, err := y.client.Batches().Submit(t.Context(), spec("b"), read(file(120, "go"))); err != nil {
		t.Fatal(err)
	}
	ref := dispatcher.BatchOf("b")
	for n := range 2 {
		y.until(ref, func(b *messages.Batch) bool { return b.Counts.Ended() >= 30*n })
		stop()
		stop = y.dispatcher()
	}
	b := y.ended(ref)
	if b.Status != messages.BatchCompleted || b.Counts.Completed != 120 || b.Counts.Submitted != 120 {
		t.Errorf("%+v", b)
	}
	if n := len(y.results(ref, dispatcher.ByInput)); n != 120 {
		t.Errorf("%d results", n)
	}
}

// lots yields many lines without holding them in memory.
type lots struct {
	n, most int
	left    []byte
}

func (l *lots) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		if l.n == l.most {
			return 0, io.EOF
		}
		l.n++
		l.left = fmt.Appendf(l.left[:0], `{"custom_id":"line-%d","input":"%0300d"}`+"\n", l.n, l.n)
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

func TestBatchOfManyLinesIsNotHeld(t *testing.T) {
	y := newYard(t)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	s := spec("b")
	s.Progress = func(n int) {
		if n%5000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
	}
	const lines = 20_000
	check, err := y.client.Batches().Check(t.Context(), s, dispatcher.ReadLines(&lots{most: lines}))
	if err != nil || check.Lines != lines || check.Tokens != lines*75 {
		t.Fatalf("%+v, %v", check, err)
	}
	if most > 4<<20 { // the lines are 7 MB
		t.Errorf("%d bytes are held", most)
	}
}

func TestBatchIsBounded(t *testing.T) {
	y := newYard(t)
	var field *messages.FieldError
	if _, err := y.client.Batches().Check(t.Context(), spec("b"), many(messages.MaxBatchLines+1)); !errors.As(err, &field) || field.Field != "lines" {
		t.Errorf("too many lines: %v", err)
	}
	for name, id := range map[string]string{"star": "*", "long": strings.Repeat("x", 37), "dots": "a.b"} {
		if _, err := y.client.Batches().Check(t.Context(), spec(id), read("")); !errors.As(err, &field) || field.Field != "id" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// many yields lines that are wrong, which costs least.
func many(n int) func(func(dispatcher.Line, error) bool) {
	return func(yield func(dispatcher.Line, error) bool) {
		for i := range n {
			if !yield(dispatcher.Line{Number: i + 1, Data: []byte("{}")}, nil) {
				return
			}
		}
	}
}

package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/dispatcher/webhook"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// told is a webhook as it came.
type told struct {
	id   string
	body []byte
}

// office is streams, a client and a receiver of webhooks; tests start dispatchers.
type office struct {
	t          *testing.T
	servers    *embedded.Servers
	nc         *nats.Conn
	bus        *bus.Bus
	controller *runlog.Controller
	client     *dispatcher.Client
	url        string
	hosts      []string
	came       chan told

	mu     sync.Mutex
	answer func(n int) int // the status for the n-th request
	n      int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, servers: embeddedtest.Start(t, embedded.Config{NoRedis: true}), came: make(chan told, 100)}
	o.nc = embeddedtest.Conn(t, o.servers)
	if err := bus.Setup(t.Context(), o.nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.bus, err = bus.Open(t.Context(), o.nc, bus.Config{}); err != nil {
		t.Fatal(err)
	}
	if o.client, err = dispatcher.New(t.Context(), o.nc); err != nil {
		t.Fatal(err)
	}
	logs := runlogs.New(o.bus, runlogs.Config{})
	o.controller = &runlog.Controller{Log: logs, Queue: taskqueue.New(o.bus), Events: logs, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		o.mu.Lock()
		o.n++
		status := http.StatusNoContent
		if o.answer != nil {
			status = o.answer(o.n)
		}
		o.mu.Unlock()
		o.came <- told{r.Header.Get(webhook.HeaderID), body}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.url, o.hosts = s.URL+"/ends?key=hidden", []string{u.Host}
	return o
}

func (o *office) answers(f func(n int) int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer, o.n = f, 0
}

// open runs a dispatcher that delivers webhooks.
func (o *office) open(nc *nats.Conn) (stop func()) {
	o.t.Helper()
	sender, err := webhook.New(webhook.Config{Secrets: []string{"a secret of enough characters"}, Hosts: o.hosts})
	if err != nil {
		o.t.Fatal(err)
	}
	end := serve(o.t, nc, service.Config{
		Webhooks: sender, WebhookTries: []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}, WebhookWait: time.Second,
		Batches: 50 * time.Millisecond,
	})
	return func() { end(); sender.Close() }
}

// end has a run come and go.
func (o *office) end(id string, w *messages.Webhook, status messages.Status) messages.Ref {
	o.t.Helper()
	task := messages.Task{ID: id, Input: messages.TextInput("Go."), Webhook: w}
	task.SetDefaults()
	o.endTask(&task, status)
	return task.Ref()
}

func (o *office) endTask(task *messages.Task, status messages.Status) {
	o.t.Helper()
	now := time.Now().UTC()
	result := messages.EndedResult(task.Ref(), task, status, nil, now, now)
	result.Success = status == messages.StatusCompleted
	_, err := o.controller.Begin(o.t.Context(), task.Ref(),
		&record.Started{Task: *task, Agent: messages.BuiltinAgent(), QueuedAt: now}, &record.Finished{Result: result})
	if err == nil {
		err = o.controller.Settle(o.t.Context(), task.Ref())
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) next() told {
	o.t.Helper()
	select {
	case w := <-o.came:
		return w
	case <-time.After(patience):
		o.t.Fatal("no webhook came")
		return told{}
	}
}

// empty waits until a stream holds nothing.
func (o *office) empty(stream string) {
	o.t.Helper()
	o.until(stream+" is empty", func() bool { return o.count(stream) == 0 })
}

func (o *office) count(stream string) uint64 {
	o.t.Helper()
	js, err := jetstream.New(o.nc)
	if err != nil {
		o.t.Fatal(err)
	}
	s, err := js.Stream(o.t.Context(), stream)
	if err != nil {
		o.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func (o *office) until(what string, ok func() bool) {
	o.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			o.t.Fatalf("never: %s", what)
		}
	}
}

// letters waits until there are so many dead letters.
func (o *office) letters(n int) []control.DeadLetter {
	o.t.Helper()
	var list *control.DeadList
	o.until(fmt.Sprintf("%d dead letters", n), func() bool {
		var err error
		if list, err = o.client.DeadLetters().List(o.t.Context(), control.DeadListRequest{}); err != nil {
			o.t.Fatal(err)
		}
		return len(list.Letters) == n
	})
	return list.Letters
}

func TestTheEndOfARunIsTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	o.end("quiet", nil, messages.StatusCompleted)
	o.end("choosy", &messages.Webhook{URL: o.url, Events: []string{"failed"}}, messages.StatusCompleted)
	run := o.end("loud", &messages.Webhook{URL: o.url, Events: []string{"completed"}}, messages.StatusCompleted)
	got := o.next()
	var e messages.Event
	if err := strict.Decode(got.body, &e); err != nil {
		t.Fatal(err)
	}
	var d messages.RunFinished
	if err := strict.Decode(e.Data, &d); err != nil {
		t.Fatal(err)
	}
	if e.Name() != messages.EventRunFinished || e.Ref() != run || !d.Result.Success || !d.Webhook {
		t.Errorf("%s", got.body)
	}
	if want := messages.RunWebhook(run, o.url, nil).ID; got.id != want {
		t.Errorf("id %s, want %s", got.id, want)
	}
	o.empty(bus.StreamWebhooks)
	if len(o.came) > 0 {
		t.Errorf("more came: %+v", <-o.came)
	}
	for e, err := range events.New(o.bus).Events(t.Context(), bus.EveryEvent, time.Time{}) { // which any client may see
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(e.Data, []byte("hidden")) || bytes.Contains(e.Data, []byte("127.0.0.1")) {
			t.Errorf("%s shows the address: %s", e.Name(), e.Data)
		}
	}
}

func TestAdmissionRefusesWebhooks(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	task := messages.Task{ID: "t", Input: messages.TextInput("Go."), Webhook: &messages.Webhook{URL: "https://hooks.example.com/"}}
	stop := serve(t, o.nc, service.Config{})
	if _, err := o.client.Submit(t.Context(), task); !refuses(err, "webhook", "LONGSHORE_WEBHOOK_SECRET") {
		t.Errorf("without a secret: %v", err)
	}
	spec := dispatcher.BatchSpec{BatchRef: dispatcher.BatchOf("b"), BatchSettings: messages.BatchSettings{Webhook: task.Webhook}}
	lines := dispatcher.ReadLines(strings.NewReader(`{"custom_id":"a","input":"x"}`))
	if _, err := o.client.Batches().Submit(t.Context(), spec, lines); !refuses(err, "webhook", "LONGSHORE_WEBHOOK_SECRET") {
		t.Errorf("a batch without a secret: %v", err)
	}
	stop()
	defer o.open(o.nc)()
	for address, reason := range map[string]string{
		"http://hooks.example.com/": "must be https", "https://127.0.0.1/": "not public", "ftp://a/": "must be an address",
		"https://user:pw@hooks.example.com/": "user", "https:///": "must be an address", "https://a/#f": "fragment",
	} {
		task.Webhook = &messages.Webhook{URL: address}
		if _, err := o.client.Submit(t.Context(), task); !refuses(err, "webhook.url", reason) {
			t.Errorf("%s: %v", address, err)
		}
	}
	task.Webhook = &messages.Webhook{URL: "https://hooks.example.com/", Events: []string{"expired"}}
	if _, err := o.client.Submit(t.Context(), task); !refuses(err, "webhook.events[0]", "completed, failed, cancelled") {
		t.Errorf("an end that no run has: %v", err)
	}
	if _, queued, err := taskqueue.New(o.bus).Queued(t.Context(), dispatcher.Run("t")); queued || err != nil {
		t.Errorf("queued although refused, or %v", err)
	}
	task.Webhook = &messages.Webhook{URL: o.url}
	for range 2 {
		if id, err := o.client.Submit(t.Context(), task); err != nil || id != "t" {
			t.Errorf("%q %v", id, err)
		}
	}
	task.Webhook = &messages.Webhook{URL: o.url + "2"}
	if _, err := o.client.Submit(t.Context(), task); !errors.Is(err, dispatcher.ErrConflict) {
		t.Errorf("another task of the same id: %v", err)
	}
}

// A task that was not admitted by the dispatcher of a fleet without a secret shows as a letter.
func TestWithoutASecretTheLetterSaysSo(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer serve(t, o.nc, service.Config{})()
	o.end("past", &messages.Webhook{URL: o.url}, messages.StatusFailed)
	l := o.letters(1)[0]
	if l.Kind != control.DeadWebhook || l.Run != "past" || l.Error.Code != messages.CodeWebhookFailed || !strings.Contains(l.Error.Message, "LONGSHORE_WEBHOOK_SECRET") {
		t.Errorf("%+v", l)
	}
}

// What was tried for long enough is a dead letter, and that is delivered again under the same id.
func TestFailingWebhooksDie(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	o.answers(func(int) int { return http.StatusInternalServerError })
	o.end("r", &messages.Webhook{URL: o.url}, messages.StatusFailed)
	first := o.next()
	l := o.letters(1)[0]
	if l.Kind != control.DeadWebhook || l.Tenant != messages.DefaultTenant || l.Run != "r" || l.Attempts < 3 || !strings.Contains(l.Error.Message, "answered 500") {
		t.Errorf("%+v", l)
	}
	if data, _ := json.Marshal(l); bytes.Contains(data, []byte("hidden")) {
		t.Errorf("the list shows the address: %s", data)
	}
	o.empty(bus.StreamWebhooks)
	tries := 1 + len(o.came)
	for len(o.came) > 0 {
		if again := <-o.came; again.id != first.id || !bytes.Equal(again.body, first.body) {
			t.Errorf("another attempt is another delivery: %+v", again)
		}
	}
	if tries < 3 {
		t.Errorf("%d attempts", tries)
	}
	_, err := o.client.DeadLetters().Redrive(t.Context(), control.DeadRedrive{DeadRequest: control.DeadRequest{Seq: l.Seq}, NewID: "x"})
	if !refuses(err, "task", "delivered again as it was") {
		t.Errorf("edited: %v", err)
	}
	o.answers(nil)
	done, err := o.client.DeadLetters().Redrive(t.Context(), control.DeadRedrive{DeadRequest: control.DeadRequest{Seq: l.Seq}})
	if err != nil || done.ID != first.id || done.Kind != control.DeadWebhook {
		t.Fatalf("%+v %v", done, err)
	}
	if again := o.next(); again.id != first.id || !bytes.Equal(again.body, first.body) {
		t.Errorf("%+v", again)
	}
	o.letters(0)
	o.empty(bus.StreamWebhooks)
}

func TestAReceiverThatIsGoneIsLeft(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	o.answers(func(int) int { return http.StatusGone })
	o.end("r", &messages.Webhook{URL: o.url}, messages.StatusCancelled)
	o.next()
	if l := o.letters(1)[0]; l.Attempts != 1 || !strings.Contains(l.Error.Message, "410") {
		t.Errorf("%+v", l)
	}
	if len(o.came) > 0 {
		t.Error("it was asked again")
	}
}

func TestAReceiverThatComesBackIsTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	o.answers(func(n int) int { return map[bool]int{true: http.StatusBadGateway, false: http.StatusOK}[n == 1] })
	o.end("r", &messages.Webhook{URL: o.url}, messages.StatusCompleted)
	if first, second := o.next(), o.next(); first.id != second.id {
		t.Errorf("%s and %s", first.id, second.id)
	}
	o.empty(bus.StreamWebhooks)
	o.letters(0)
}

// A dispatcher is killed after it has read the end and before the webhook is in the queue.
func TestKilledBeforeTheWebhookIsQueued(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.end("r", &messages.Webhook{URL: o.url}, messages.StatusCompleted)
	ctx, kill := context.WithCancel(t.Context())
	err := events.New(o.bus).RunEnds(ctx, func(context.Context, events.RunEnd) error {
		kill()
		return errors.New("killed")
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := o.count(bus.StreamWebhooks); n != 0 {
		t.Fatalf("%d webhooks in the queue", n)
	}
	defer o.open(o.nc)()
	o.next()
	o.empty(bus.StreamWebhooks)
}

// A dispatcher is killed after the POST and before its ack: another one delivers it again, under the same id.
func TestKilledAfterThePost(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	doomed := embeddedtest.Conn(t, o.servers, nats.MaxReconnects(0))
	stop := o.open(doomed)
	o.answers(func(n int) int {
		if n == 1 {
			doomed.Close()
		}
		return http.StatusOK
	})
	o.end("r", &messages.Webhook{URL: o.url}, messages.StatusCompleted)
	first := o.next()
	defer o.open(o.nc)()
	second := o.next()
	if first.id != second.id || !bytes.Equal(first.body, second.body) {
		t.Errorf("%+v and %+v", first, second)
	}
	o.empty(bus.StreamWebhooks)
	_ = stop // its connection is gone: it ends with the test
}

// Of two dispatchers one delivers each webhook.
func TestTwoDispatchersDeliverOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	defer o.open(embeddedtest.Conn(t, o.servers))()
	const runs = 20
	for i := range runs {
		o.end(fmt.Sprintf("r-%d", i), &messages.Webhook{URL: o.url}, messages.StatusCompleted)
	}
	seen := map[string]int{}
	for range runs {
		seen[o.next().id]++
	}
	o.empty(bus.StreamWebhooks)
	if len(seen) != runs || len(o.came) > 0 {
		t.Errorf("%d deliveries, and %d more", len(seen), len(o.came))
	}
}

// The last line of a batch ends, and its webhook comes once, with the counts.
func TestTheEndOfABatchIsTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	ref := dispatcher.BatchOf("nightly")
	spec := dispatcher.BatchSpec{BatchRef: ref, BatchSettings: messages.BatchSettings{Webhook: &messages.Webhook{URL: o.url}}}
	lines := dispatcher.ReadLines(strings.NewReader(`{"custom_id":"a","input":"x"}`))
	if _, err := o.client.Batches().Submit(t.Context(), spec, lines); err != nil {
		t.Fatal(err)
	}
	_, task, err := messages.DecodeBatchLine(ref, []byte(`{"custom_id":"a","input":"x"}`), nil) // the very task, for it may end before it is queued
	if err != nil {
		t.Fatal(err)
	}
	o.endTask(task, messages.StatusCompleted)
	got := o.next()
	var e messages.Event
	var d messages.BatchFinished
	if err := errors.Join(strict.Decode(got.body, &e), strict.Decode(e.Data, &d)); err != nil {
		t.Fatal(err)
	}
	if e.Type != messages.TypeBatchFinished || e.Subject != ref.ID || d.Status != messages.BatchCompleted || d.Counts.Completed != 1 || d.Ended == nil {
		t.Errorf("%s", got.body)
	}
	o.empty(bus.StreamWebhooks)
	o.until("the batch says that it was told", func() bool {
		head, err := o.client.Batches().Get(t.Context(), ref)
		return err == nil && !head.Cursor.Tell
	})
	if len(o.came) > 0 {
		t.Error("told twice")
	}
}

// A dispatcher is killed after it has stored the end of a batch and before its webhook is in the queue.
func TestKilledBeforeTheWebhookOfABatchIsQueued(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	now := time.Now().UTC()
	head := &messages.Batch{
		BatchRef: dispatcher.BatchOf("cut"), BatchSettings: messages.BatchSettings{Webhook: &messages.Webhook{URL: o.url, Events: []string{"expired"}}},
		Status: messages.BatchExpired, Created: now, Ended: &now, Cursor: messages.BatchCursor{Tell: true},
	}
	if _, err := batches.New(o.bus).Put(t.Context(), head, 0); err != nil {
		t.Fatal(err)
	}
	defer o.open(o.nc)()
	if got := o.next(); !bytes.Contains(got.body, []byte(`"status":"expired"`)) {
		t.Errorf("%s", got.body)
	}
	o.empty(bus.StreamWebhooks)
}

// A batch with wrong lines has failed, which is an end too.
func TestABatchThatFailedIsTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	spec := dispatcher.BatchSpec{BatchRef: dispatcher.BatchOf("wrong"), BatchSettings: messages.BatchSettings{Webhook: &messages.Webhook{URL: o.url}}}
	_, err := o.client.Batches().Submit(t.Context(), spec, dispatcher.ReadLines(strings.NewReader(`{"custom_id":"a"}`)))
	if !errors.Is(err, dispatcher.ErrBatchInvalid) {
		t.Fatal(err)
	}
	if got := o.next(); !bytes.Contains(got.body, []byte(`"status":"failed"`)) {
		t.Errorf("%s", got.body)
	}
}

// The end of a run is announced once, with the event unchanged, however the events of the run are stored.
func TestTheEndOfARunStoredOutOfOrderIsTold(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	for name, order := range map[string]func([]messages.Event) []messages.Event{
		"backwards": func(e []messages.Event) []messages.Event { slices.Reverse(e); return e },
		"end-first": func(e []messages.Event) []messages.Event {
			return append([]messages.Event{e[len(e)-1]}, e[:len(e)-1]...)
		},
	} {
		task := messages.Task{ID: name, Input: messages.TextInput("Go."), Webhook: &messages.Webhook{URL: o.url}}
		task.SetDefaults()
		now := time.Now().UTC()
		entry, err := o.controller.Begin(t.Context(), task.Ref(), &record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: now},
			&record.Finished{Result: messages.EndedResult(task.Ref(), &task, messages.StatusCompleted, nil, now, now)})
		if err != nil {
			t.Fatal(err)
		}
		all := record.Events(task.Ref(), entry)
		end := record.AppendEvent(nil, &all[len(all)-1])
		for _, e := range order(all) {
			if _, err := o.nc.Request(bustest.EventsAt(t, o.nc, task.Ref().EventSubject(e.Name())), record.AppendEvent(nil, &e), patience); err != nil {
				t.Fatal(err)
			}
		}
		if got := o.next(); !bytes.Equal(got.body, end) || got.id != messages.RunWebhook(task.Ref(), o.url, nil).ID {
			t.Errorf("%s: %s, want %s", name, got.body, end)
		}
	}
	o.empty(bus.StreamWebhooks)
	if len(o.came) > 0 {
		t.Errorf("more came: %+v", <-o.came)
	}
}

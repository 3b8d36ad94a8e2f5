package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker"
)

func later(id string, d time.Duration) messages.Task {
	return messages.Task{ID: id, Input: messages.TextInput("hello"), NotBefore: new(time.Now().Add(d).UTC())}
}

// A delayed task is one run from the moment of its submit: nothing is begun, and its id is taken.
func TestDelayedTaskIsOneRun(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{})
	task := later("tomorrow", time.Hour)
	run := h.submit(task)
	if again := h.submit(task); again != run {
		t.Errorf("the same task again: %s", again)
	}
	other, now := task, task
	other.Input, now.NotBefore = messages.TextInput("another"), nil
	for name, task := range map[string]messages.Task{"another task": other, "the same at once": now} {
		if _, err := h.client.Submit(t.Context(), task); !errors.Is(err, dispatcher.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	st, err := h.client.Status(t.Context(), run)
	if err != nil || st.Status != messages.StatusQueued || st.NotBefore == nil || !st.NotBefore.Equal(*task.NotBefore) {
		t.Errorf("status: %+v, %v", st, err)
	}
	if st, err := h.client.Cancel(t.Context(), run, "not needed"); err != nil || st.Status != messages.StatusCancelled {
		t.Fatalf("cancel: %+v, %v", st, err)
	}
	if _, ok, err := taskqueue.New(h.bus).Delayed(t.Context(), run); ok || err != nil {
		t.Errorf("after the cancel it is still scheduled: %v, %v", ok, err)
	}
	if r := h.result(run); r.Status != messages.StatusCancelled || h.submit(task) != run {
		t.Errorf("result: %+v", r)
	}
	q := messages.Task{ID: "queued", Input: messages.TextInput("hello")}
	h.submit(q)
	q.NotBefore = task.NotBefore
	if _, err := h.client.Submit(t.Context(), q); !errors.Is(err, dispatcher.ErrConflict) {
		t.Errorf("a delayed task with the id of another: %v", err)
	}
	var fe *messages.FieldError
	if _, err := h.client.Submit(t.Context(), later("", 2*messages.MaxDelay)); !errors.As(err, &fe) || fe.Field != "notBefore" {
		t.Errorf("two years ahead: %v", err)
	}
	if r := h.result(h.submit(later("past", -time.Hour))); !r.Success {
		t.Errorf("in the past: %+v", r)
	}
}

// A delayed task begins when it is due, whether it was submitted or published raw.
func TestDelayedTaskBegins(t *testing.T) {
	const delay = 1500 * time.Millisecond
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{})
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	raw := messages.Ref{Tenant: messages.DefaultTenant, Run: "raw"}
	body := messages.Task{Input: messages.TextInput("hello"), NotBefore: new(time.Now().Add(2 * delay))}
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), raw.TaskSubject(messages.PriorityNormal), encoded); err != nil {
		t.Fatal(err)
	}
	task := later("soon", delay)
	run := h.submit(task)
	var waits messages.RunWaiting
	if err := json.Unmarshal(h.until(raw, messages.EventRunWaiting).Data, &waits); err != nil || waits.Reason != queue.ParkNotBefore {
		t.Errorf("raw waits: %+v, %v", waits, err)
	}
	for run, due := range map[messages.Ref]time.Time{run: *task.NotBefore, raw: *body.NotBefore} {
		if r := h.result(run); !r.Success || r.FinishedAt.Before(due.Add(-time.Second)) {
			t.Errorf("%s, due at %s: %+v", run, due, r)
		}
	}
	if _, ok, err := taskqueue.New(h.bus).Delayed(t.Context(), run); ok || err != nil {
		t.Errorf("it ran and is still scheduled: %v, %v", ok, err)
	}
	far := messages.Ref{Tenant: messages.DefaultTenant, Run: "far"}
	if _, err := js.Publish(t.Context(), far.TaskSubject(messages.PriorityNormal), []byte(`{"input":"x","notBefore":"2999-01-01T00:00:00Z"}`)); err != nil {
		t.Fatal(err)
	}
	if r := h.result(far); r.Error == nil || r.Error.Code != messages.CodeInvalidInput || !strings.HasPrefix(r.Error.Message, "notBefore") {
		t.Errorf("centuries ahead: %+v", r)
	}
}

// A client that may delay tasks of one tenant cannot publish on the subjects of another, nor wake its runs.
func TestDelayedOntoAnother(t *testing.T) {
	h := open(t, 30*time.Second)
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	victim, carrier := messages.Ref{Tenant: "victim", Run: "stolen"}, messages.Ref{Tenant: "evil", Run: "s1"}
	targets := []string{victim.TaskSubject(messages.PriorityNormal), victim.WakeSubject()}
	h.worker("w", script(t, hello), worker.Config{})
	for _, target := range targets {
		m := &nats.Msg{Subject: bustest.QueueAt(h.bus, carrier, carrier.DelaySubject()), Data: []byte(`{"errand":"sweep"}`), Header: nats.Header{
			"Nats-Schedule": {"@at " + time.Now().UTC().Format(time.RFC3339Nano)}, "Nats-Schedule-Target": {bustest.QueueAt(h.bus, carrier, target)}, // a schedule publishes within its partition
		}}
		if _, err := js.PublishMsg(ctx, m); err != nil {
			t.Fatal(err)
		}
		if d := h.letter(ctx, js, target); !strings.HasPrefix(d.Error.Message, "subject: ") {
			t.Errorf("dead letter: %q", d.Error.Message)
		}
	}
}

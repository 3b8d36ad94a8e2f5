package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker"
)

// What is refused at submit is dead-lettered when it is published raw, with the same words.
func TestBadInput(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{})
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, subject, body, field string

		untaken bool // by any stream of a divided queue: the publisher is told
	}{
		{"not JSON", "tasks.normal.default.b1", `{"input":`, "input", false},
		{"an unknown field", "tasks.normal.default.b2", `{"input":"x","inptu":"y"}`, "inptu", false},
		{"a wrong type", "tasks.normal.default.b3", `{"input":"x","limits":{"maxSteps":"9"}}`, "limits.maxSteps", false},
		{"invalid UTF-8", "tasks.normal.default.b4", "{\"input\":\"\xff\"}", "input", false},
		{"an unknown agent", "tasks.normal.default.b5", `{"input":"x","agent":"unknown"}`, "agent", false},
		{"an empty input", "tasks.normal.default.b6", `{"input":""}`, "input", false},
		{"another run than the subject", "tasks.normal.default.b7", `{"input":"x","id":"other"}`, "id", false},
		{"another priority than the subject", "tasks.low.default.b8", `{"input":"x","priority":"high"}`, "priority", false},
		{"a star for an id", "tasks.normal.default.*", `{"input":"x"}`, "subject", false},
		{"a wildcard for an id", "tasks.normal.default.>", `{"input":"x"}`, "subject", false},
		{"an id that stands for none", "tasks.normal.default._", `{"input":"x"}`, "subject", false},
		{"a tenant that stands for none", "tasks.high._.b12", `{"input":"x"}`, "subject", false},
		{"too many tokens", "tasks.normal.default.a.b", `{"input":"x"}`, "subject", true},
		{"a long id", "tasks.normal.default." + strings.Repeat("x", 1000), `{"input":"x"}`, "subject", false},
		{"an unknown priority", "tasks.urgent.default.b9", `{"input":"x"}`, "subject", true},
		{"a wake-up without a record", "tasks.wake.default.b10", `{}`, "after", false},
		{"an unknown errand", "tasks.wake.default.b11", `{"errand":"shopping"}`, "errand", false},
		{"an unknown rating", "tasks.wake.default.b13", `{"errand":"learn"}`, "rating", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			priority, run, ok := messages.ParseTaskSubject(tc.subject)
			subject := tc.subject
			if ok && priority.Wakes() {
				subject = bustest.QueueAt(h.bus, run, subject) // only Longshore publishes there
			}
			_, err := js.Publish(ctx, subject, []byte(tc.body))
			if tc.untaken && h.bus.Partitions(bus.StreamTasks).Divided() {
				if !errors.Is(err, jetstream.ErrNoStreamResponse) {
					t.Errorf("a subject that no stream takes: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			letter := h.letter(ctx, js, tc.subject)
			if !strings.HasPrefix(letter.Error.Message, tc.field+": ") || string(letter.Task) != tc.body {
				t.Errorf("dead letter: %q for %q", letter.Error.Message, letter.Task)
			}
			if !ok || priority.Wakes() {
				return
			}
			if r := h.result(run); r.Status != messages.StatusFailed || r.Error.Message != letter.Error.Message {
				t.Errorf("result: %s %v", r.Status, r.Error)
			}
		})
	}
	// The worker is alive and the others were not harmed.
	if r := h.result(h.submit(messages.Task{Input: messages.TextInput("hello")})); !r.Success {
		t.Errorf("result after bad input: %+v", r)
	}
}

// A task that was scheduled onto another tenant's subject is refused.
func TestScheduledOntoAnother(t *testing.T) {
	h := open(t, 30*time.Second)
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stolen, carrier := messages.Ref{Tenant: "victim", Run: "stolen"}, messages.Ref{Tenant: "evil", Run: "s1"}
	// The server refuses a target in another partition.
	for n := 2; bustest.QueueIn(h.bus, carrier) != bustest.QueueIn(h.bus, stolen); n++ {
		carrier.Run = fmt.Sprint("s", n)
	}
	from := bustest.QueueAt(h.bus, carrier, carrier.TaskSubject(messages.PriorityNormal))
	m := &nats.Msg{Subject: from, Data: []byte(`{"input":"x"}`), Header: nats.Header{
		"Nats-Schedule":        {"@at " + time.Now().UTC().Format(time.RFC3339Nano)},
		"Nats-Schedule-Target": {bustest.QueueAt(h.bus, stolen, stolen.TaskSubject(messages.PriorityHigh))},
	}}
	if _, err := js.PublishMsg(ctx, m); err != nil {
		t.Fatal(err)
	}
	for { // before there is a worker, which would take the carrier first
		if _, ok, err := taskqueue.New(h.bus).Queued(ctx, stolen); err != nil {
			t.Fatal(err)
		} else if ok {
			break
		}
	}
	h.worker("w", script(t, hello), worker.Config{})
	if d := h.letter(ctx, js, stolen.TaskSubject(messages.PriorityHigh)); !strings.HasPrefix(d.Error.Message, "subject: ") {
		t.Errorf("dead letter: %q", d.Error.Message)
	}
}

// letter waits for the dead letter of a subject.
func (h *house) letter(ctx context.Context, js jetstream.JetStream, subject string) messages.Dead {
	h.t.Helper()
	cons, err := js.OrderedConsumer(ctx, "DEAD", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"dead.>"}})
	if err != nil {
		h.t.Fatal(err)
	}
	iter, err := cons.Messages()
	if err != nil {
		h.t.Fatal(err)
	}
	defer iter.Stop()
	for {
		m, err := iter.Next(jetstream.NextContext(ctx))
		if err != nil {
			h.t.Fatalf("no dead letter for %s: %v", strict.Clip(subject, 80), err)
		}
		var d messages.Dead
		if err := json.Unmarshal(m.Data(), &d); err != nil {
			h.t.Fatal(err)
		}
		if d.Subject == subject {
			return d
		}
	}
}

// NATS itself refuses a subject that is longer than its protocol allows, and says so to the publisher.
func TestTooLongForNATS(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{})
	js, err := jetstream.New(h.conn())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "tasks.normal.default."+strings.Repeat("x", 10_000), []byte(`{"input":"x"}`)); err == nil {
		t.Error("a subject of 10 kB was published")
	}
	if r := h.result(h.submit(messages.Task{Input: messages.TextInput("hello")})); !r.Success {
		t.Errorf("result: %+v", r)
	}
}

func TestSubmitRefuses(t *testing.T) {
	h := open(t, 30*time.Second)
	for name, tc := range map[string]struct {
		task  messages.Task
		field string
	}{
		"an empty input":   {messages.Task{}, "input"},
		"a hostile id":     {messages.Task{ID: "*", Input: messages.TextInput("x")}, "id"},
		"a hostile tenant": {messages.Task{Tenant: "a.b", Input: messages.TextInput("x")}, "tenant"},
		"a long session":   {messages.Task{Session: strings.Repeat("s", 65), Input: messages.TextInput("x")}, "session"},
		"invalid UTF-8":    {messages.Task{Input: messages.TextInput("\xff")}, "input"},
	} {
		_, err := h.client.Submit(t.Context(), tc.task)
		var fe *messages.FieldError
		if !errors.As(err, &fe) || fe.Field != tc.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := h.client.Submit(t.Context(), messages.Task{Agent: "unknown", Input: messages.TextInput("x")})
	if !errors.Is(err, dispatcher.ErrUnknownAgent) || !strings.HasPrefix(err.Error(), "agent: ") {
		t.Errorf("an unknown agent: %v", err)
	}
}

func TestDuplicateSubmit(t *testing.T) {
	h := open(t, 30*time.Second)
	ctx := t.Context()
	task := messages.Task{ID: "d1", Input: messages.TextInput("hello")}
	other := messages.Task{ID: "d1", Input: messages.TextInput("hello again")}
	urgent := messages.Task{ID: "d1", Input: messages.TextInput("hello"), Priority: messages.PriorityHigh}
	check := func(when string) {
		t.Helper()
		if id, err := h.client.Submit(ctx, task); err != nil || id != "d1" {
			t.Errorf("%s: the same task: %q, %v", when, id, err)
		}
		for what, bad := range map[string]messages.Task{"another body": other, "another priority": urgent} {
			if _, err := h.client.Submit(ctx, bad); !errors.Is(err, dispatcher.ErrConflict) {
				t.Errorf("%s: %s: %v", when, what, err)
			}
		}
	}
	check("queued")
	elsewhere := messages.Task{ID: "d1", Tenant: "other", Input: messages.TextInput("hello")}
	if _, err := h.client.Submit(ctx, elsewhere); err != nil {
		t.Errorf("the id of another tenant: %v", err)
	}
	h.worker("w", script(t, hello), worker.Config{})
	h.result(dispatcher.Run("d1"))
	h.result(messages.Ref{Tenant: "other", Run: "d1"})
	check("ended")
	if n := len(h.events(dispatcher.Run("d1"))); n != 12 {
		t.Errorf("%d events, want those of one run", n)
	}
}

// The id of a run that has ended is refused to another task, however long ago the queue forgot it.
func TestLateConflictIsRefused(t *testing.T) {
	h := open(t, 30*time.Second)
	_, stop := h.worker("w", script(t, hello), worker.Config{})
	task := messages.Task{ID: "d3", Input: messages.TextInput("hello")}
	run := h.submit(task)
	h.result(run)
	stop()
	h.forgetDuplicates(run)
	if _, err := h.client.Submit(t.Context(), messages.Task{ID: "d3", Input: messages.TextInput("else")}); !errors.Is(err, dispatcher.ErrConflict) {
		t.Errorf("another task: %v", err)
	}
	if id, err := h.client.Submit(t.Context(), task); err != nil || id != "d3" {
		t.Errorf("the same task: %q, %v", id, err)
	}
	if err := retention.New(h.bus, h.logs()).Purge(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Submit(t.Context(), task); !errors.Is(err, dispatcher.ErrConflict) {
		t.Errorf("after the log was removed: %v", err)
	}
}

// forgetDuplicates shortens the window of duplicates where a run's tasks are and waits until what is in it now has left it.
func (h *house) forgetDuplicates(run messages.Ref) {
	h.t.Helper()
	js, err := jetstream.New(h.nc)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	stream, err := js.Stream(ctx, bustest.QueueIn(h.bus, run))
	if err != nil {
		h.t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	for n, seen := 0, 0; seen < 2; n++ { // the probe's id leaves the window after all that came before it
		// Each change has the server look at once, but it may still go by the window before; so it is changed again.
		cfg.Duplicates = 100*time.Millisecond + time.Duration(n%2)*time.Millisecond
		if _, err := js.UpdateStream(ctx, cfg); err != nil {
			h.t.Fatal(err)
		}
		ack, err := js.Publish(ctx, bustest.QueueAt(h.bus, run, "tasks.low.default.probe"), nil, jetstream.WithMsgID("probe"))
		if err != nil {
			h.t.Fatal(err)
		}
		if !ack.Duplicate {
			seen++
		}
	}
}

// A second task with the id of a run that has ended, published raw beyond the window of duplicates, is dead-lettered: its
// publisher must not take the run for its own.
func TestLateConflictIsDeadLettered(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{})
	run := h.submit(messages.Task{ID: "d2", Input: messages.TextInput("hello")})
	h.result(run)
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), run.TaskSubject(messages.PriorityNormal), []byte(`{"input":"something else"}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if d := h.letter(ctx, js, run.TaskSubject(messages.PriorityNormal)); d.Error.Code != messages.CodeConflict {
		t.Errorf("dead letter: %+v", d.Error)
	}
}

// Each message that the queue has acknowledged ends as a run or as a letter of its own, whatever else came under its subject.
func TestEachPublishIsARunOrALetter(t *testing.T) {
	h := open(t, 30*time.Second)
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h.worker("w", script(t, hello), worker.Config{})
	want := map[string]bool{}
	publish := func(subject, body string) {
		t.Helper()
		if _, err := js.Publish(ctx, subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
		want[body] = true
	}
	publish("tasks.normal.default.e1", `{"input":`)
	h.result(messages.Ref{Tenant: "default", Run: "e1"})
	publish("tasks.normal.default.e1", `{"input":"good"}`)
	publish("tasks.normal.default.e1", `{"input":"another"}`)
	done := h.submit(messages.Task{ID: "e2", Input: messages.TextInput("hello")})
	h.result(done)
	publish("tasks.normal.default.e2", `{"input":"second"}`)
	publish("tasks.normal.default.e2", `{"input":"third"}`)
	// INTAKE takes only subjects of tasks, so in a divided fleet this is published to a partition.
	none := bustest.QueueAt(h.bus, messages.Ref{Tenant: "default", Run: "a"}, "tasks.normal.default.a.b")
	publish(none, `{"input":"x"}`)
	publish(none, `{"input":"y"}`)
	b := h.open(h.nc)
	for len(want) > 0 {
		for _, tenant := range []string{"default", ""} {
			for d, err := range deadletters.New(b).List(ctx, tenant, 0, nil) {
				if err != nil {
					t.Fatalf("no letter of %v: %v", want, err)
				}
				delete(want, string(d.Task))
				if run := d.Of.Name; tenant != "" && run != "e1" && run != "e2" {
					t.Errorf("the letter %d is of run %q", d.Seq, run)
				}
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("no letter of %v", want)
		}
	}
}

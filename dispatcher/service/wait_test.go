package service_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Those that wait for runs share one subscription, and each gets its result: also who waits before the run exists, and for one that has ended.
func TestWait(t *testing.T) {
	t.Parallel()
	nc := start(t)
	defer serve(t, nc, service.Config{})()
	ctx := bustest.Context(t)
	c, err := dispatcher.New(ctx, nc)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 20
	type answer struct {
		run    messages.Ref
		result *messages.AgentResult
		err    error
	}
	answers := make(chan answer, 3*runs)
	wait := func(run messages.Ref) {
		go func() {
			r, err := c.Wait(ctx, run)
			answers <- answer{run, r, err}
		}()
	}
	for range runs {
		run := dispatcher.Run(messages.NewID(time.Now()))
		wait(run)
		if _, err := c.Submit(ctx, messages.Task{ID: run.Run, Input: messages.TextInput("Go.")}); err != nil {
			t.Fatal(err)
		}
		wait(run)
		if _, err := c.Cancel(ctx, run, "enough"); err != nil { // no worker runs: the dispatcher ends it
			t.Fatal(err)
		}
		wait(run)
	}
	for range cap(answers) {
		a := <-answers
		if a.err != nil || a.result.ID != a.run.Run || a.result.Status != messages.StatusCancelled {
			t.Fatalf("%s: %+v, %v", a.run, a.result, a.err)
		}
	}
	stream, err := bustest.NewJetStream(t, nc).Stream(ctx, bustest.EventStreams(t, nc)[0])
	if err != nil {
		t.Fatal(err)
	}
	var made []jetstream.ConsumerConfig
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if info.PushBound {
			made = append(made, info.Config)
		}
	}
	if len(made) != 1 || list.Err() != nil {
		t.Errorf("%d consumers for %d that waited, want 1: %+v, %v", len(made), cap(answers), made, list.Err())
	}
}

// The log decides whether a run has ended. What is heard about one that has not, or no longer heard about one that has, changes nothing.
func TestWaitTrustsTheLog(t *testing.T) {
	t.Parallel()
	nc := start(t)
	defer serve(t, nc, service.Config{})()
	ctx := bustest.Context(t)
	b, err := bus.Open(ctx, nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := dispatcher.NewOn(nc, b)
	run := dispatcher.Run("liar")
	if _, err := c.Submit(ctx, messages.Task{ID: run.Run, Input: messages.TextInput("Go.")}); err != nil {
		t.Fatal(err)
	}
	bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventTurnEnd), bustest.Event(run, 2, messages.EventRunFinished))
	req := control.ResultRequest{Tenant: run.Tenant, ID: run.Run, Wait: messages.Duration(control.MaxResultWait)}
	if err := c.Call(ctx, control.Of(control.SubjectResult), req, &messages.AgentResult{}); !errors.Is(err, dispatcher.ErrNotEnded) {
		t.Errorf("its end was only told: %v", err)
	}
	mute := dispatcher.Run("mute")
	logs := runlogs.New(b, runlogs.Config{})
	k := &runlog.Controller{Log: logs, Events: logs, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	task := messages.Task{ID: mute.Run, Input: messages.TextInput("Go.")}
	task.SetDefaults()
	end := &record.Finished{Result: messages.EndedResult(mute, &task, messages.StatusCancelled, nil, time.Now(), time.Now())}
	if _, err := k.Begin(ctx, mute, &record.Started{Task: task}, end); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Wait(ctx, mute); err != nil || r.ID != mute.Run {
		t.Errorf("its end was told to none: %+v, %v", r, err)
	}
}

// A run that was removed after its retention will not end once more: who waits for it hears so at once.
func TestWaitForARunThatWasRemoved(t *testing.T) {
	t.Parallel()
	nc := start(t)
	defer serve(t, nc, service.Config{})()
	ctx := bustest.Context(t)
	b, err := bus.Open(ctx, nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, run := dispatcher.NewOn(nc, b), dispatcher.Run("removed")
	if _, err := c.Submit(ctx, messages.Task{ID: run.Run, Input: messages.TextInput("Go.")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cancel(ctx, run, "enough"); err != nil { // no worker runs: the dispatcher ends it
		t.Fatal(err)
	}
	if _, err := c.Wait(ctx, run); err != nil {
		t.Fatal(err)
	}
	if err := retention.New(b, runlogs.New(b, runlogs.Config{})).Purge(ctx, run); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if r, err := c.Wait(ctx, run); !errors.Is(err, dispatcher.ErrRemoved) || time.Since(began) >= control.MaxResultWait {
		t.Errorf("after %s: %+v, %v", time.Since(began), r, err)
	}
}

func TestResultWaitIsBounded(t *testing.T) {
	t.Parallel()
	for wait, ok := range map[string]bool{"0s": true, "5s": true, "5.1s": false, "-1s": false} {
		var d messages.Duration
		if err := d.UnmarshalJSON([]byte(`"` + wait + `"`)); err != nil {
			t.Fatal(err)
		}
		err := (&control.ResultRequest{Wait: d}).Check()
		if f, refused := errors.AsType[*messages.FieldError](err); refused == ok || refused && f.Field != "wait" {
			t.Errorf("%s: %v", wait, err)
		}
	}
}

// A dispatcher of an earlier version does not know how to wait: the events then say when the run has ended.
func TestWaitWithAnOlderDispatcher(t *testing.T) {
	t.Parallel()
	nc := start(t)
	run := dispatcher.Run("old")
	refused := []byte(`{"type":"about:blank","title":"Bad Request","status":400,"code":"invalid_input","detail":"is unknown","field":"wait"}`)
	sub, err := nc.Subscribe(control.SubjectResult, func(m *nats.Msg) {
		answer := &nats.Msg{Data: []byte(`{"id":"old","success":true,"status":"completed"}`)}
		if strings.Contains(string(m.Data), `"wait"`) {
			answer = &nats.Msg{Data: refused, Header: nats.Header{micro.ErrorHeader: {"is unknown"}, micro.ErrorCodeHeader: {"400"}}}
		}
		if err := m.RespondMsg(answer); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventRunFinished))
	if r, err := c.Wait(bustest.Context(t), run); err != nil || r.ID != run.Run {
		t.Errorf("%+v, %v", r, err)
	}
}

package service_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
)

// A run that was removed after its retention is distinguished from one that never was, as long as its end is among the events.
func TestRemovedRun(t *testing.T) {
	nc := start(t)
	defer serve(t, nc, service.Config{})()
	ctx := t.Context()
	c, err := dispatcher.New(ctx, nc)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(ctx, nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: "gone"}
	if _, err := c.Submit(ctx, messages.Task{ID: run.Run, Input: messages.TextInput("Go.")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cancel(ctx, run, ""); err != nil { // no worker runs: the dispatcher ends it
		t.Fatal(err)
	}
	if err := retention.New(b, runlogs.New(b, runlogs.Config{})).Purge(ctx, run); err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func(messages.Ref) error{
		"status": func(r messages.Ref) error { _, err := c.Status(ctx, r); return err },
		"result": func(r messages.Ref) error { _, err := c.Result(ctx, r); return err },
		"why":    func(r messages.Ref) error { _, err := c.Runs().Why(ctx, r); return err },
		"cancel": func(r messages.Ref) error { _, err := c.Cancel(ctx, r, ""); return err },
	} {
		if err := ask(run); !errors.Is(err, dispatcher.ErrRemoved) || !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("%s of a run that was removed: %v", what, err)
		}
		if err := ask(messages.Ref{Tenant: run.Tenant, Run: "never"}); errors.Is(err, dispatcher.ErrRemoved) || !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("%s of a run that never was: %v", what, err)
		}
	}
}

package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/runlog"
)

const patience = 30 * time.Second

// The worker works a task of a fleet whose agent uses its tool.
func TestCustomWorker(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	nc := embeddedtest.Conn(t, servers)
	if err := bus.Setup(t.Context(), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	agent := messages.Definition{Name: "sailor", Tools: []string{"shout"}}
	agent.SetDefaults()
	svc := service.New(service.Config{
		Conn: nc, Bus: b, Agents: []messages.Definition{agent}, Version: "0.0.0", Log: slog.New(slog.DiscardHandler),
		Keeper: &runlog.Keeper{Log: b, Queue: b, Events: b, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }},
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- svc.Run(ctx) }()
	select {
	case <-svc.Ready():
	case <-time.After(patience):
		t.Fatal("the dispatcher is not ready")
	}
	go func() {
		done <- work(ctx, []string{"NATS_URL=" + servers.NATSURL, "LONGSHORE_WORKSPACES=" + t.TempDir()})
	}()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	client, err := dispatcher.New(ctx, nc)
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.Submit(ctx, messages.Task{Agent: "sailor", Input: messages.TextInput("Say ahoy.")})
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := client.Wait(waiting, messages.Ref{Tenant: messages.DefaultTenant, Run: id})
	if err != nil || res.Result != "AHOY!" || res.ModelCalls[0].Provider != "parrot" {
		t.Fatalf("%+v, %v", res, err)
	}
}

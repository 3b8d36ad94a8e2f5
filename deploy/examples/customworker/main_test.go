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
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/runlog"
)

const patience = time.Minute

// The worker works tasks of a fleet whose agents use its tool: by its model, by its planner, and by what its selector chooses.
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
	agents := []messages.Definition{
		{Name: "sailor", Model: "parrot"}, {Name: "mate", Model: "rota"}, {Name: "captain", Models: []string{"parrot", "rota"}},
	}
	for i := range agents {
		agents[i].Tools = []string{"shout"}
		agents[i].SetDefaults()
	}
	logs := runlogs.New(b, runlogs.Config{})
	svc := service.New(service.Config{
		Conn: nc, Bus: b, Agents: agents, Version: "0.0.0", Log: slog.New(slog.DiscardHandler),
		Controller: &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }},
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
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, want := range []struct{ agent, result, provider string }{
		{"sailor", "AHOY!", "parrot"}, {"mate", "The rota says: ALL HANDS!", "planner"}, {"captain", "The rota says: ALL HANDS!", "planner"},
	} {
		id, err := client.Submit(ctx, messages.Task{Agent: want.agent, Input: messages.TextInput("Say ahoy.")})
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Wait(waiting, messages.Ref{Tenant: messages.DefaultTenant, Run: id})
		if err != nil || res.Result != want.result || res.ModelCalls[0].Provider != want.provider {
			t.Errorf("%s: %+v, %v", want.agent, res, err)
		}
	}
}

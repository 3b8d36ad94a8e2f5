package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a dispatcher until the function it returns is called.
func serve(t testing.TB, nc *nats.Conn, cfg service.Config) (stop func()) {
	t.Helper()
	s := service.New(withController(t, nc, cfg))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		cancel()
		t.Fatal(err)
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// withController is the configuration with what any dispatcher needs.
func withController(t testing.TB, nc *nats.Conn, cfg service.Config) service.Config {
	t.Helper()
	b := cfg.Bus
	if b == nil {
		var err error
		if b, err = bus.Open(t.Context(), nc, bus.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Conn, cfg.Bus, cfg.Version = nc, b, "0.0.0"
	logs := cfg.Logs
	if logs == nil {
		logs = runlogs.New(b, runlogs.Config{})
	}
	cfg.Controller = &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Asks: semaphores.New(b), Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	return cfg
}

func start(t testing.TB) *nats.Conn {
	t.Helper()
	nc := embeddedtest.Conn(t, embeddedtest.Start(t, embedded.Config{NoRedis: true}))
	if err := bus.Setup(t.Context(), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	return nc
}

// A dispatcher that starts again undoes nothing that people did to the built-in agent, and publishes its folder.
func TestStartLeavesTheDefaultAgentAlone(t *testing.T) {
	nc := start(t)
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	instructions := func() string {
		t.Helper()
		r, err := c.Agents().At(t.Context(), messages.DefaultAgent, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.Agent == nil {
			return "deleted"
		}
		return r.Agent.Instructions
	}
	builtin := messages.BuiltinAgent()
	stop := serve(t, nc, service.Config{})
	if got := instructions(); got != builtin.Instructions {
		t.Errorf("built in: %q", got)
	}
	if _, err := c.Agents().Apply(t.Context(), messages.Definition{Name: messages.DefaultAgent, Instructions: "Mine."}, "ann", nil); err != nil {
		t.Fatal(err)
	}
	stop()
	stop = serve(t, nc, service.Config{})
	if got := instructions(); got != "Mine." {
		t.Errorf("after a restart: %q", got)
	}
	if _, err := c.Agents().Delete(t.Context(), control.CatalogDelete{Name: messages.DefaultAgent, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	stop()
	stop = serve(t, nc, service.Config{})
	if history, err := c.Agents().History(t.Context(), messages.DefaultAgent); err != nil || !history[0].Deleted {
		t.Errorf("after a delete: %+v %v", history, err)
	}
	if got := instructions(); got != builtin.Instructions {
		t.Errorf("the built-in one is behind it: %q", got)
	}
	if d, err := c.Agents().Get(t.Context(), messages.DefaultAgent); err != nil || d.Instructions != builtin.Instructions {
		t.Errorf("the built-in one is behind it: %+v %v", d, err)
	}
	stop()
	stop = serve(t, nc, service.Config{Agents: []messages.Definition{{Name: messages.DefaultAgent, Instructions: "From a folder."}}})
	defer stop()
	if got := instructions(); got != "From a folder." {
		t.Errorf("a folder wins: %q", got)
	}
}

func TestPolicyOfPrompts(t *testing.T) {
	nc := start(t)
	defer serve(t, nc, service.Config{PromptPolicy: func(p messages.Prompt) error {
		if strings.Contains(p.Text, "sk-") {
			return errors.New("holds a key")
		}
		if strings.Contains(p.Text, "boom") {
			panic("boom")
		}
		return nil
	}})()
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"fine": "", "sk-123": "policy: holds a key", "boom": "policy: boom"} {
		_, err := c.Prompts().Put(t.Context(), messages.Prompt{ID: "p", Text: text}, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
		if v, err := c.Prompts().Validate(t.Context(), messages.Prompt{ID: "p", Text: text}); err != nil || v.OK != (want == "") {
			t.Errorf("%s: %+v %v", text, v, err)
		}
	}
	history, err := c.Prompts().History(t.Context(), "p")
	if err != nil || len(history) != 1 {
		t.Errorf("%+v %v", history, err)
	}
}

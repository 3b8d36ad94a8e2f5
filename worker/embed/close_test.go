package embed_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
)

// gated is a model whose calls begin, and then wait to be let go.
type gated struct {
	model.Provider

	begun, release chan struct{}
}

func gate(m model.Provider) gated { return gated{m, make(chan struct{}, 1), make(chan struct{})} }

func (g gated) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		g.begun <- struct{}{}
		select {
		case <-g.release:
			g.Provider.Stream(ctx, r)(yield)
		case <-ctx.Done():
			yield(model.Delta{}, context.Cause(ctx))
		}
	}
}

func service(t *testing.T, cfg embed.Config) *embed.Service {
	t.Helper()
	s, err := embed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type ended struct {
	res messages.AgentResult
	err error
}

// A close lets the model call under way end and records its reply; nothing begins afterwards.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	called := false
	one := tool(t, "one", func() (tools.Result, error) { called = true; return tools.Text("1"), nil })
	m := gate(agenttest.Replies(agenttest.Call("one", `{}`), agenttest.Text("It is 1.")))
	svc := service(t, embed.Config{Model: m, Tools: []tools.Tool{one}})
	s, err := svc.Session(hello())
	if err != nil {
		t.Fatal(err)
	}
	run, closed := make(chan ended, 1), make(chan error, 1)
	go func() {
		res, err := s.Run(t.Context())
		run <- ended{res, err}
	}()
	<-m.begun
	go func() { closed <- svc.Close(t.Context()) }()
	var last error
	for _, err := range s.Events(t.Context()) {
		last = err
	}
	if !errors.Is(last, embed.ErrClosed) {
		t.Fatalf("the events of the run end with %v", last)
	}
	if _, err := svc.Session(hello()); !errors.Is(err, embed.ErrClosed) {
		t.Errorf("a session of a closed service: %v", err)
	}
	select {
	case err := <-closed:
		t.Fatalf("closed while a model call is under way: %v", err)
	case got := <-run:
		t.Fatalf("the run returned: %+v", got)
	default:
	}
	close(m.release)
	if got := <-run; !errors.Is(got.err, embed.ErrClosed) {
		t.Errorf("the run returned %+v", got)
	}
	if err := <-closed; err != nil || called {
		t.Errorf("closed with %v; the tool was called: %v", err, called)
	}
	replied := false
	for _, e := range s.Log() {
		for _, r := range e.Records {
			_, is := r.(*record.ModelReplied)
			replied = replied || is
		}
	}
	if !replied {
		t.Error("the reply that was paid for is not recorded")
	}
	if _, err := s.Run(t.Context()); !errors.Is(err, embed.ErrClosed) {
		t.Errorf("run again: %v", err)
	}
	if err := svc.Close(t.Context()); err != nil {
		t.Errorf("close again: %v", err)
	}
}

// A close whose time is up aborts what is in progress.
func TestCloseAborts(t *testing.T) {
	t.Parallel()
	m := gate(agenttest.Replies())
	svc := service(t, embed.Config{Model: m})
	run := make(chan error, 1)
	go func() {
		_, err := svc.RunOnce(t.Context(), hello())
		run <- err
	}()
	<-m.begun
	why := errors.New("no time")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if err := svc.Close(ctx); !errors.Is(err, why) {
		t.Errorf("close: %v", err)
	}
	if err := <-run; !errors.Is(err, embed.ErrClosed) {
		t.Errorf("run: %v", err)
	}
}

// A run that waits does not hold up a close.
func TestCloseWhileARunWaits(t *testing.T) {
	t.Parallel()
	ask := tool(t, "ask", func() (tools.Result, error) {
		return tools.Result{Park: &tools.Park{Reason: queue.ParkAnswer, Question: "Which?", For: time.Hour}}, nil
	})
	svc := service(t, embed.Config{Model: agenttest.Replies(agenttest.Call("ask", `{}`)), Tools: []tools.Tool{ask}})
	s, err := svc.Session(hello())
	if err != nil {
		t.Fatal(err)
	}
	run := make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context())
		run <- err
	}()
	for e, err := range s.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == messages.EventRunWaiting {
			break
		}
	}
	if err := svc.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-run; !errors.Is(err, embed.ErrClosed) {
		t.Errorf("run: %v", err)
	}
}

// With a context that has ended nothing begins.
func TestRunOnceWithACancelledContext(t *testing.T) {
	t.Parallel()
	m := agenttest.Replies(agenttest.Text("hello"))
	svc := service(t, embed.Config{Model: m})
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if res, err := svc.RunOnce(ctx, hello()); !errors.Is(err, why) || len(m.Requests()) != 0 {
		t.Errorf("%+v, %v, after %d requests", res, err, len(m.Requests()))
	}
	if res, err := svc.RunOnce(t.Context(), hello()); err != nil || res.Result != "hello" {
		t.Errorf("then: %+v, %v", res, err)
	}
	if _, err := svc.RunOnce(t.Context(), messages.Task{}); err == nil {
		t.Error("a task without input was taken")
	}
}

package embed_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

func hello() messages.Task { return messages.Task{Input: messages.TextInput("Hello")} }

func open(t *testing.T, cfg embed.Config, task messages.Task) *embed.Session {
	t.Helper()
	service, err := embed.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.Session(task)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tool(t *testing.T, name string, f func() (tools.Result, error)) tools.Tool {
	t.Helper()
	made, err := tools.Func(messages.ToolSpec{Name: name, Description: "Does it.", Effect: messages.EffectIdempotent},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) { return f() })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	m := agenttest.Replies()
	one := tool(t, "one", nil)
	for name, tt := range map[string]struct {
		cfg  embed.Config
		want string
	}{
		"no model":     {embed.Config{}, "a model is needed"},
		"two tools":    {embed.Config{Model: m, Tools: []tools.Tool{one, one}}, "taken"},
		"unknown tool": {embed.Config{Model: m, Agent: messages.Definition{Tools: []string{"two"}}}, `tool "two" is unknown`},
		"agent":        {embed.Config{Model: m, Agent: messages.Definition{MaxSteps: -1}}, "maxSteps"},
		"hook":         {embed.Config{Model: m, Hooks: []runner.Hook{{On: messages.HookPreTask}}}, "hook 0"},
		"point":        {embed.Config{Model: m, Hooks: []runner.Hook{{On: "x", Func: func(context.Context, messages.HookCall) (a messages.HookAnswer, _ error) { return a, nil }}}}, "hook 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := embed.New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSessionRefusesATask(t *testing.T) {
	t.Parallel()
	service, err := embed.New(embed.Config{Model: agenttest.Replies()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Session(messages.Task{}); err == nil || !strings.Contains(err.Error(), "input") {
		t.Errorf("a task without input: %v", err)
	}
	if _, err := service.Session(messages.Task{Agent: "other", Input: messages.TextInput("x")}); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("another agent: %v", err)
	}
}

func TestAbortBeforeTheRun(t *testing.T) {
	t.Parallel()
	m := agenttest.Replies(agenttest.Text("hi"))
	s := open(t, embed.Config{Model: m}, hello())
	if err := s.Abort(t.Context(), "no"); err != nil {
		t.Fatal(err)
	}
	var last string
	s.On(func(e messages.Event) { last = e.Name() })
	res, err := s.Run(t.Context())
	if err != nil || res.Status != messages.StatusCancelled || len(m.Requests()) > 0 || last != messages.EventRunFinished {
		t.Errorf("%+v, %v, last event %s", res, err, last)
	}
	if err := s.Abort(t.Context(), "no"); !errors.Is(err, embed.ErrEnded) {
		t.Errorf("abort of an ended run: %v", err)
	}
}

// Run continues where the log ends when the platform failed, and pays for nothing twice.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	m := agenttest.Replies(agenttest.Call("do", `{}`), agenttest.Text("done"))
	calls := 0
	s := open(t, embed.Config{Model: m, Tools: []tools.Tool{tool(t, "do", func() (tools.Result, error) {
		if calls++; calls == 1 {
			return tools.Result{}, errors.New("the disk is full")
		}
		return tools.Text("ok"), nil
	})}}, hello())
	seen := map[string]bool{}
	s.On(func(e messages.Event) {
		if seen[e.Sequence] {
			t.Errorf("event %s came twice", e.Sequence)
		}
		seen[e.Sequence] = true
	})
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("error %v", err)
	}
	for range 2 {
		res, err := s.Run(t.Context())
		if err != nil || res.Result != "done" || calls != 2 || len(m.Requests()) != 2 {
			t.Fatalf("%+v, %v after %d calls and %d requests", res, err, calls, len(m.Requests()))
		}
	}
}

func TestContextEndsTheRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller is gone")
	s := open(t, embed.Config{Model: agenttest.Func(func(r model.Request) agenttest.Reply {
		cancel(gone)
		return agenttest.Reply{}
	})}, hello())
	if _, err := s.Run(ctx); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

func TestRunIsForOneAtATime(t *testing.T) {
	t.Parallel()
	var s *embed.Session
	var second error
	s = open(t, embed.Config{Model: agenttest.Func(func(model.Request) agenttest.Reply {
		_, second = s.Run(t.Context())
		return agenttest.Text("hi")
	})}, hello())
	if _, err := s.Run(t.Context()); err != nil || !errors.Is(second, embed.ErrRunning) {
		t.Errorf("%v, and the second %v", err, second)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"answered": 0, "expired": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := agenttest.Replies(agenttest.Call("ask", `{}`), agenttest.Text("done"))
			s := open(t, embed.Config{Model: m, Tools: []tools.Tool{tool(t, "ask", func() (tools.Result, error) {
				return tools.Result{Park: &tools.Park{Reason: "answer", For: wait}}, nil
			})}}, hello())
			if err := s.Answer(t.Context(), "early", false); !errors.Is(err, embed.ErrNotWaiting) {
				t.Errorf("an answer before the run: %v", err)
			}
			s.On(func(e messages.Event) {
				if e.Name() == messages.EventRunWaiting && wait == 0 {
					if err := s.Answer(t.Context(), "blue", false); err != nil {
						t.Error(err)
					}
				}
			})
			res, err := s.Run(t.Context())
			if err != nil || res.Result != "done" {
				t.Fatalf("%+v, %v", res, err)
			}
			want := "blue"
			if wait > 0 {
				want = "No answer came in time."
			}
			if res.Actions[0].Output != want {
				t.Errorf("the tool's answer is %q, want %q", res.Actions[0].Output, want)
			}
		})
	}
}

func TestOff(t *testing.T) {
	t.Parallel()
	s := open(t, embed.Config{Model: agenttest.Replies(agenttest.Text("hi"))}, hello())
	n := 0
	var off func()
	off = s.On(func(messages.Event) { n++; off() })
	if _, err := s.Run(t.Context()); err != nil || n != 1 {
		t.Errorf("%d events after off, %v", n, err)
	}
}

// With a seed and its own clock a run gives the same events, ids and times included.
func TestSeededRunsAreTheSame(t *testing.T) {
	t.Parallel()
	play := func(seed int64) (string, string) {
		m := agenttest.Replies(agenttest.Call("do", `{}`).And(agenttest.Call("do", `{}`)).And(agenttest.Call("do", `{}`)), agenttest.Text("done"))
		r := agenttest.Run(t, agenttest.Config{
			Config: embed.Config{Model: m, Tools: []tools.Tool{tool(t, "do", func() (tools.Result, error) { return tools.Text("ok"), nil })}},
			Task:   messages.Task{Seed: &seed},
		}, "Do it three times.")
		if r.Result.Seed == nil || *r.Result.Seed != seed {
			t.Errorf("the result has the seed %v", r.Result.Seed)
		}
		var heads strings.Builder
		for _, e := range r.Log {
			h, err := record.EncodeHead(&e.Head)
			if err != nil {
				t.Fatal(err)
			}
			heads.WriteString(h + "\n")
		}
		return r.JSON(), heads.String()
	}
	events, log := play(7)
	again, logAgain := play(7)
	if events != again || log != logAgain {
		t.Errorf("two runs differ:\n%s\n%s", events, again)
	}
	if other, _ := play(8); other == events {
		t.Error("another seed gives the same ids")
	}
}

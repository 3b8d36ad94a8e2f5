package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// heard remembers what hooks were told.
type heard struct {
	mu    sync.Mutex
	calls []messages.HookCall
}

func (h *heard) at(p messages.HookPoint, answer messages.HookAnswer, err error) runner.Hook {
	return runner.Hook{On: p, Func: func(_ context.Context, c messages.HookCall) (messages.HookAnswer, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, c)
		return answer, err
	}}
}

func (h *heard) everywhere() (hooks []runner.Hook) {
	for _, p := range messages.HookPoints() {
		hooks = append(hooks, h.at(p, messages.HookAnswer{}, nil))
	}
	return hooks
}

func (h *heard) ids() (out []string) {
	for _, c := range h.calls {
		out = append(out, c.ID)
	}
	return out
}

type noArgs struct{}

func probe(t *testing.T, name string, effect messages.Effect, f func() (tools.Result, error)) tools.Tool {
	t.Helper()
	tool, err := tools.Func(messages.ToolSpec{Name: name, Description: "Does it.", Effect: effect},
		func(context.Context, tools.Call, noArgs) (tools.Result, error) { return f() })
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func answers(text string) func() (tools.Result, error) {
	return func() (tools.Result, error) { return tools.Text(text), nil }
}

func TestHooksHearOfEverything(t *testing.T) {
	t.Parallel()
	h := &heard{}
	run := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{
			Model: agenttest.Replies(agenttest.Call("look", `{}`), agenttest.Text("seen")),
			Tools: []tools.Tool{probe(t, "look", messages.EffectRead, answers("a cat"))},
			Hooks: h.everywhere(),
		},
		Task: messages.Task{ID: "r"},
	}, "Look!")
	run.Want(t, "model", "tool look", "model", "completed")
	want := []string{
		"default.r.0.pre_task", "default.r.1.step_start", "default.r.1.pre_tool.call-1-1", "default.r.1.post_tool.call-1-1",
		"default.r.2.step_start", "default.r.2.post_task.completed",
	}
	told := slices.DeleteFunc(slices.Clone(h.calls), func(c messages.HookCall) bool { return c.On == messages.HookOnTokens })
	h.calls, told = told, h.calls
	if diff := cmp.Diff(want, h.ids()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if c := h.calls[0]; c.Input != "Look!" || c.Agent != "default" || c.Ref() != (messages.Ref{Tenant: "default", Run: "r"}) || c.Attempt != 1 {
		t.Errorf("pre_task was told %+v", c)
	}
	if c := h.calls[2]; c.Tool == nil || c.Tool.Name != "look" || c.Tool.Arguments != "{}" {
		t.Errorf("pre_tool was told %+v", c)
	}
	if c := h.calls[3]; c.Output != "a cat" || c.IsError || c.Tool.ID != "call-1-1" {
		t.Errorf("post_tool was told %+v", c)
	}
	if c := h.calls[5]; c.Result == nil || c.Result.Result != "seen" {
		t.Errorf("post_task was told %+v", c)
	}
	if last := told[len(told)-1]; !slices.ContainsFunc(told, func(c messages.HookCall) bool {
		return c.On == messages.HookOnTokens && c.Text == "seen" && c.Kind == messages.LiveText
	}) {
		t.Errorf("on_tokens was not told; the last is %+v", last)
	}
}

func TestHooksDecide(t *testing.T) {
	t.Parallel()
	deny := messages.HookAnswer{Decision: messages.HookDeny, Reason: "not today"}
	broken := errors.New("the line is dead")
	for name, tt := range map[string]struct {
		on      messages.HookPoint
		answer  messages.HookAnswer
		err     error
		failure string
		want    []string
		result  string
	}{
		"task refused":            {on: messages.HookPreTask, answer: deny, want: []string{"failed: policy"}, result: "Refused by a hook: not today"},
		"task, broken":            {on: messages.HookPreTask, err: broken, want: []string{"hook pre_task failed", "failed: policy"}, result: "hook function at pre_task failed: the line is dead"},
		"task, broken, ignored":   {on: messages.HookPreTask, err: broken, failure: "ignore", want: []string{"hook pre_task failed", "model", "tool do", "model", "completed"}},
		"tool refused":            {on: messages.HookPreTool, answer: deny, want: []string{"model", "tool do: policy", "model", "completed"}},
		"tool, broken":            {on: messages.HookPreTool, err: broken, want: []string{"model", "hook pre_tool failed", "failed: policy"}},
		"tool, broken, ignored":   {on: messages.HookPreTool, err: broken, failure: "ignore", want: []string{"model", "hook pre_tool failed", "tool do", "model", "completed"}},
		"tool, no answer":         {on: messages.HookPreTool, answer: messages.HookAnswer{Decision: "maybe"}, want: []string{"model", "hook pre_tool failed", "failed: policy"}},
		"step, broken":            {on: messages.HookStepStart, err: broken, want: []string{"hook step_start failed", "model", "tool do", "hook step_start failed", "model", "completed"}},
		"step, broken, fail":      {on: messages.HookStepStart, err: broken, failure: "fail", want: []string{"hook step_start failed", "failed: policy"}},
		"result, broken":          {on: messages.HookPostTool, err: broken, want: []string{"model", "tool do", "hook post_tool failed", "model", "completed"}},
		"result, broken, fail":    {on: messages.HookPostTool, err: broken, failure: "fail", want: []string{"model", "tool do", "hook post_tool failed", "failed: policy"}},
		"end, broken":             {on: messages.HookPostTask, err: broken, want: []string{"model", "tool do", "model", "hook post_task failed", "completed"}},
		"end, broken, fail":       {on: messages.HookPostTask, err: broken, failure: "fail", want: []string{"model", "tool do", "model", "hook post_task failed", "hook post_task failed", "failed: policy"}},
		"who is told cannot deny": {on: messages.HookPostTool, answer: deny, want: []string{"model", "tool do", "model", "completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := (&heard{}).at(tt.on, tt.answer, tt.err)
			hook.OnFailure = tt.failure
			called := 0
			run := agenttest.Run(t, agenttest.Config{
				Config: embed.Config{
					Model: agenttest.Replies(agenttest.Call("do", `{}`), agenttest.Text("done")),
					Tools: []tools.Tool{probe(t, "do", messages.EffectOnce, func() (tools.Result, error) { called++; return tools.Text("ok"), nil })},
					Hooks: []runner.Hook{hook},
				},
			}, "Do it.")
			run.Want(t, tt.want...)
			if runs := slices.Contains(tt.want, "tool do"); (called == 1) != runs {
				t.Errorf("the tool was called %d times", called)
			}
			if tt.result != "" && run.Result.Error.Message != tt.result {
				t.Errorf("error %q, want %q", run.Result.Error.Message, tt.result)
			}
		})
	}
}

func TestRefusalIsTheToolsAnswer(t *testing.T) {
	t.Parallel()
	m := agenttest.Replies(agenttest.Call("do", `{}`).And(agenttest.Call("look", `{}`)), agenttest.Text("done"))
	hook := runner.Hook{On: messages.HookPreTool, Func: func(_ context.Context, c messages.HookCall) (messages.HookAnswer, error) {
		if c.Tool.Name == "do" {
			return messages.HookAnswer{Decision: messages.HookDeny, Reason: "not on a Friday"}, nil
		}
		return messages.HookAnswer{Decision: messages.HookAllow}, nil
	}}
	agenttest.Run(t, agenttest.Config{
		Config: embed.Config{
			Model: m, Hooks: []runner.Hook{hook},
			Tools: []tools.Tool{probe(t, "do", messages.EffectRead, answers("ok")), probe(t, "look", messages.EffectRead, answers("a cat"))},
		},
	}, "Do it.").Want(t, "model", "tool do: policy", "tool look", "model", "completed")
	last := m.Requests()[1].Messages
	results := last[len(last)-1].Content
	if got := results[0].ToolResult.Shown(); got != "Refused by a hook: not on a Friday" || !results[0].ToolResult.IsError {
		t.Errorf("the model was told %q", got)
	}
	if got := results[1].ToolResult.Shown(); got != "a cat" {
		t.Errorf("the other call: %q", got)
	}
}

// Calls that fly are not disturbed by hooks about the next ones.
func TestHooksAmongParallelCalls(t *testing.T) {
	t.Parallel()
	h := &heard{}
	wave := agenttest.Reply{}
	for range 5 {
		wave = wave.And(agenttest.Call("look", `{}`))
	}
	for i := range wave.Calls {
		wave.Calls[i].ID = string(rune('a' + i))
	}
	p := &parallel{}
	dir := t.TempDir()
	p.play(t, dir, runner.Config{
		Model: agenttest.Replies(wave, agenttest.Text("done")), Hooks: []runner.Hook{
			h.at(messages.HookPreTool, messages.HookAnswer{}, nil), h.at(messages.HookPostTool, messages.HookAnswer{}, nil),
		},
	}, messages.Definition{Parallel: 2}, probe(t, "look", messages.EffectRead, answers("a cat")))
	asked := map[string]int{}
	for _, id := range h.ids() {
		asked[id]++
	}
	if len(asked) != 10 || len(h.calls) != 10 {
		t.Errorf("asked %v", asked)
	}
	if p.state.Result == nil || !p.state.Result.Success || len(p.state.Result.Actions) != 5 {
		t.Errorf("result %+v", p.state.Result)
	}
}

func TestHookThatHangsOrPanics(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for name, tt := range map[string]struct {
		f    runner.HookFunc
		want string
	}{
		"hangs": {func(context.Context, messages.HookCall) (messages.HookAnswer, error) {
			<-release
			return messages.HookAnswer{}, nil
		}, "no answer within 1ms"},
		"panics": {func(context.Context, messages.HookCall) (messages.HookAnswer, error) { panic("secret") }, "the hook panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := runner.Hook{On: messages.HookStepStart, Name: "watcher", Func: tt.f}
			if name == "hangs" {
				hook.Timeout = time.Millisecond
			}
			run := agenttest.Run(t, agenttest.Config{Config: embed.Config{Model: agenttest.Replies(agenttest.Text("hi")), Hooks: []runner.Hook{hook}}}, "Hello")
			run.Want(t, "hook step_start failed", "model", "completed")
			if got := string(run.Of(messages.EventHookFailed)[0].Data); !strings.Contains(got, tt.want) || !strings.Contains(got, "watcher") {
				t.Errorf("event %s, want %q", got, tt.want)
			}
		})
	}
}

func TestOnErrorIsTold(t *testing.T) {
	t.Parallel()
	h := &heard{}
	agenttest.Run(t, agenttest.Config{
		Config: embed.Config{
			Model: agenttest.Replies(agenttest.Fail(&model.Error{Class: model.Auth, Detail: "who are you"})),
			Hooks: []runner.Hook{h.at(messages.HookOnError, messages.HookAnswer{}, nil), h.at(messages.HookPostTask, messages.HookAnswer{}, nil)},
		},
	}, "Hello").Want(t, "model failed: model_auth", "failed: model_auth")
	if len(h.calls) != 2 {
		t.Fatalf("told %v", h.ids())
	}
	for _, c := range h.calls {
		if c.On == messages.HookOnError && (c.Error == nil || c.Error.Code != messages.CodeModelAuth) {
			t.Errorf("on_error was told %+v", c)
		}
	}
}

// A hook that cannot be called here refuses the task before it costs anything.
func TestHooksOfAgentsAreRefusedByDefault(t *testing.T) {
	t.Parallel()
	m := agenttest.Replies(agenttest.Text("hi"))
	run := agenttest.Run(t, agenttest.Config{
		Config: embed.Config{Model: m, Agent: messages.Definition{Hooks: []messages.Hook{{On: messages.HookOnError, URL: "https://hooks.example.com/"}}}},
	}, "Hello")
	run.Want(t, "failed: invalid_input")
	if got, want := run.Result.Error.Message, "agent default: hooks[0].url: this worker calls no hooks of agents"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if len(m.Requests()) > 0 {
		t.Error("the model was asked")
	}
}

// A cancel that comes while a hook is asked is obeyed after it, and the hooks of the end are notified of the cancel.
func TestCancelWhileAHookIsAsked(t *testing.T) {
	t.Parallel()
	h := &heard{}
	var session *embed.Session
	hook := runner.Hook{On: messages.HookPreTask, Func: func(ctx context.Context, _ messages.HookCall) (messages.HookAnswer, error) {
		return messages.HookAnswer{Decision: messages.HookDeny}, session.Abort(ctx, "enough")
	}}
	agenttest.Run(t, agenttest.Config{
		Config: embed.Config{Model: agenttest.Replies(), Hooks: []runner.Hook{hook, h.at(messages.HookPostTask, messages.HookAnswer{}, nil)}},
		Begun:  func(s *embed.Session) { session = s },
	}, "Hello").Want(t, "cancelled")
	if got := h.calls[len(h.calls)-1]; got.Result.Status != messages.StatusCancelled {
		t.Errorf("post_task was told %+v", got.Result)
	}
}

// What the log shows to be decided is not asked again by the next owner.
func TestNextOwnerAsksNobodyAgain(t *testing.T) {
	t.Parallel()
	h := &heard{}
	var hooks []runner.Hook
	for _, p := range []messages.HookPoint{messages.HookPreTask, messages.HookPreTool, messages.HookPostTask} {
		hooks = append(hooks, h.at(p, messages.HookAnswer{}, nil))
	}
	calls := 0
	service, err := embed.New(embed.Config{
		Model: agenttest.Replies(agenttest.Call("do", `{}`), agenttest.Text("done")), Hooks: hooks,
		Tools: []tools.Tool{probe(t, "do", messages.EffectIdempotent, func() (tools.Result, error) {
			if calls++; calls == 1 {
				return tools.Result{}, errors.New("the machine is going down")
			}
			return tools.Text("ok"), nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := service.Session(messages.Task{ID: "r", Input: messages.TextInput("Do it.")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Run(t.Context()); err == nil {
		t.Fatal("the first owner did not fail")
	}
	if _, err := session.Run(t.Context()); err != nil || calls != 2 {
		t.Fatalf("%v after %d calls", err, calls)
	}
	want := []string{"default.r.0.pre_task", "default.r.1.pre_tool.call-1-1", "default.r.2.post_task.completed"}
	if diff := cmp.Diff(want, h.ids()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

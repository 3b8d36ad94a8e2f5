package tools_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

func withEffect(e messages.Effect, call func(context.Context, tools.Call) (tools.Result, error)) stub {
	s := stub{spec: spec("t", anyObject), call: call}
	s.spec.Effect = e
	return s
}

func untilDone(ctx context.Context, _ tools.Call) (tools.Result, error) {
	<-ctx.Done()
	return tools.Result{}, ctx.Err()
}

func TestCallPassesEverything(t *testing.T) {
	want := tools.Call{
		Run: messages.Ref{Tenant: "t", Run: "r"}, ID: "c", Key: "k", Arguments: []byte(`{"a":1}`),
	}
	s := newSet(t, withEffect(messages.EffectRead, func(_ context.Context, c tools.Call) (tools.Result, error) {
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("call (-want +got):\n%s", diff)
		}
		return tools.Text("done"), nil
	}))
	got, err := s.Call(t.Context(), "t", want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tools.Text("done"), got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if _, err := s.Call(t.Context(), "u", want); err == nil || err.Error() != `tool "u" is unknown; known: t` {
		t.Errorf("error is %v", err)
	}
}

// A set has a timeout for tools without one of their own.
func TestTimeoutOfTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, err := tools.Func(messages.ToolSpec{Name: "wait", Description: "Waits.", Effect: messages.EffectRead},
			func(ctx context.Context, _ tools.Call, _ struct{}) (tools.Result, error) {
				<-ctx.Done()
				return tools.Result{}, context.Cause(ctx)
			})
		if err != nil {
			t.Fatal(err)
		}
		set, err := tools.NewSet(waits)
		if err != nil {
			t.Fatal(err)
		}
		set.Timeout = 7 * time.Second
		began := time.Now()
		r, err := set.Call(t.Context(), "wait", tools.Call{ID: "c", Arguments: []byte("{}")})
		if err != nil || !r.IsError || !strings.Contains((&messages.Message{Content: r.Content}).Text(), "within 7s") || time.Since(began) != 7*time.Second {
			t.Errorf("%+v, %v after %s", r, err, time.Since(began))
		}
	})
}

// What a call brings with it shortens what the tool and the set allow, and never lengthens it.
func TestTimeoutOfTheCall(t *testing.T) {
	hangs := withEffect(messages.EffectRead, untilDone)
	for name, c := range map[string]struct {
		tool      tools.Tool
		set, call time.Duration
		want      time.Duration
	}{
		"below the default":     {hangs, 0, 2 * time.Second, 2 * time.Second},
		"above the default":     {hangs, 0, time.Hour, tools.DefaultTimeout},
		"below that of the set": {hangs, 7 * time.Second, 2 * time.Second, 2 * time.Second},
		"above that of the set": {hangs, 7 * time.Second, time.Minute, 7 * time.Second},
		"below the tool's":      {hurried{hangs, 2 * time.Minute}, 7 * time.Second, time.Minute, time.Minute},
		"above the tool's":      {hurried{hangs, 2 * time.Minute}, 0, time.Hour, 2 * time.Minute},
		"below zero":            {hangs, 7 * time.Second, -1, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := newSet(t, c.tool)
				set.Timeout = c.set
				began := time.Now()
				r, err := set.Call(t.Context(), "t", tools.Call{Timeout: c.call})
				if took := time.Since(began); err != nil || !r.IsError || took != c.want {
					t.Errorf("%+v, %v after %v, want %v", r, err, took, c.want)
				}
			})
		})
	}
}

func TestTimeout(t *testing.T) {
	slow := func(call func(context.Context, tools.Call) (tools.Result, error)) func(messages.Effect) tools.Tool {
		return func(e messages.Effect) tools.Tool { return withEffect(e, call) }
	}
	for name, c := range map[string]struct {
		tool   func(messages.Effect) tools.Tool
		effect messages.Effect
		after  time.Duration
		want   string
		code   messages.Code
	}{
		"default": {
			slow(untilDone), messages.EffectRead, 30 * time.Second,
			"Tool t did not finish within 30s and was stopped.", messages.CodeToolFailed,
		},
		"its own": {
			func(e messages.Effect) tools.Tool { return hurried{withEffect(e, untilDone), 2 * time.Minute} },
			messages.EffectIdempotent, 2 * time.Minute,
			"Tool t did not finish within 2m0s and was stopped. It may have taken effect; repeating it does no harm.",
			messages.CodeToolFailed,
		},
		"once": {
			slow(untilDone), messages.EffectOnce, 30 * time.Second,
			"Tool t did not finish within 30s and was stopped. It may or may not have taken effect; check before you repeat it.",
			messages.CodeToolUnknownOutcome,
		},
		"told as a failure": {
			slow(func(ctx context.Context, _ tools.Call) (tools.Result, error) {
				<-ctx.Done()
				return tools.Failure("fetch: " + ctx.Err().Error()), nil
			}), messages.EffectRead, 30 * time.Second,
			"Tool t did not finish within 30s and was stopped.", messages.CodeToolFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := newSet(t, c.tool(c.effect)).Call(t.Context(), "t", tools.Call{})
				if err != nil {
					t.Fatal(err)
				}
				want := tools.Result{Content: messages.TextContent(c.want), IsError: true, Code: c.code}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("it took %v, want %v", took, c.after)
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	why := errors.New("the run was cancelled")
	for name, c := range map[string]struct {
		call func(context.Context, tools.Call) (tools.Result, error)
		want error
	}{
		"error": {untilDone, why},
		"failure": {func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Failure("stopped"), nil
		}, why},
		"answer": {func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Text("done"), nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(why) })
				r, err := newSet(t, withEffect(messages.EffectRead, c.call)).Call(ctx, "t", tools.Call{})
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
					t.Errorf("error is %v, want %v", err, c.want)
				}
				if c.want == nil && r.Content[0].Text != "done" {
					t.Errorf("result is %+v", r)
				}
			})
		})
	}
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		s := newSet(t, withEffect(messages.EffectOnce, func(context.Context, tools.Call) (tools.Result, error) {
			t.Error("it was called")
			return tools.Result{}, nil
		}))
		if _, err := s.Call(ctx, "t", tools.Call{}); !errors.Is(err, why) {
			t.Errorf("error is %v, want %v", err, why)
		}
	})
}

func TestPlatformError(t *testing.T) {
	cause := errors.New("disk on fire")
	s := newSet(t, withEffect(messages.EffectRead, func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{}, cause
	}))
	_, err := s.Call(t.Context(), "t", tools.Call{})
	if !errors.Is(err, cause) || err.Error() != "call tool t: disk on fire" {
		t.Errorf("error is %v", err)
	}
}

func TestPanic(t *testing.T) {
	for name, c := range map[string]struct {
		panic func()
		log   string
	}{
		"value":   {func() { panic("secret-1234") }, "panic=string"},
		"runtime": {func() { _ = make([]int, 0)[len(os.Args)] }, `panic="runtime error: index out of range`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(t, withEffect(messages.EffectOnce, func(context.Context, tools.Call) (tools.Result, error) {
				c.panic()
				return tools.Result{}, nil
			}))
			want := tools.Failure("Tool t panicked: a defect of the tool, not of the arguments. " +
				"It may or may not have taken effect; check before you repeat it.")
			want.Code = messages.CodeToolUnknownOutcome
			var log bytes.Buffer
			for _, s.Log = range []*slog.Logger{nil, slog.New(slog.NewTextHandler(&log, nil))} {
				got, err := s.Call(t.Context(), "t", tools.Call{Run: messages.Ref{Tenant: "a", Run: "b"}, ID: "c"})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			}
			for _, part := range []string{c.log, "tool=t", "tenant=a task_id=b", "call_id=c", "call_test.go"} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("the log has no %q: %s", part, log.String())
				}
			}
			if strings.Contains(log.String(), "secret-1234") {
				t.Errorf("the log shows the value: %s", log.String())
			}
		})
	}
}

func TestResultsAreMadeSafe(t *testing.T) {
	mib := strings.Repeat("é", 1<<19)
	many := func(texts ...string) (blocks []messages.Block) {
		for _, text := range texts {
			blocks = append(blocks, messages.Block{Text: text})
		}
		return blocks
	}
	for name, c := range map[string]struct{ give, want tools.Result }{
		"nothing":      {tools.Result{}, tools.Text("")},
		"not UTF-8":    {tools.Text("a\xff\xfeb"), tools.Text("a\uFFFDb")},
		"just fits":    {tools.Text(mib), tools.Text(mib)},
		"too large":    {tools.Text(mib + "123"), tools.Text(mib + "… (3 more bytes)")},
		"inside é":     {tools.Text("1" + mib), tools.Text("1" + mib[:len(mib)-2] + "… (2 more bytes)")},
		"many blocks":  {tools.Result{Content: many("a", mib, "bcd", "ef")}, tools.Result{Content: many("a", mib[:len(mib)-2]+"… (7 more bytes)")}},
		"default code": {tools.Result{IsError: true, Content: many("x")}, tools.Failure("x")},
		"code kept": {
			tools.Result{IsError: true, Code: messages.CodePolicy, Content: many("x")},
			tools.Result{IsError: true, Code: messages.CodePolicy, Content: many("x")},
		},
		"code without error": {tools.Result{Code: messages.CodePolicy, Content: many("x")}, tools.Text("x")},
		"text alone": {
			tools.Result{Content: []messages.Block{{Text: "x", ToolCall: &messages.ToolCall{ID: "1"}}}}, tools.Text("x"),
		},
		"park": {
			tools.Result{Park: &tools.Park{Reason: "answer"}, Content: many("x")},
			tools.Result{Park: &tools.Park{Reason: "answer"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(t, withEffect(messages.EffectRead, func(context.Context, tools.Call) (tools.Result, error) { return c.give, nil }))
			got, err := s.Call(t.Context(), "t", tools.Call{})
			if err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(c.want, got) {
				t.Errorf("result is %d blocks: %.100v, want %.100v", len(got.Content), got, c.want)
			}
			for _, b := range got.Content {
				if !utf8.ValidString(b.Text) {
					t.Error("it is not UTF-8")
				}
			}
		})
	}
}

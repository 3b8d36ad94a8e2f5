package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// HookFunc is a hook. What it answers counts at the points that decide; the zero answer allows. It must end soon after
// ctx does: it is not waited for then. It may be called again with the same id, by another worker too, and is called by
// many goroutines. A panic is an error.
type HookFunc func(ctx context.Context, c messages.HookCall) (messages.HookAnswer, error)

// Hook is called at a point of runs.
type Hook struct {
	On        messages.HookPoint
	Name      string        // in events and errors; default "function"
	Timeout   time.Duration // default 5 s
	OnFailure string        // messages.HookIgnore or HookFail; default fail at the points that decide, else ignore
	Func      HookFunc
}

func (h Hook) withDefaults() Hook {
	if h.Name == "" {
		h.Name = "function"
	}
	if h.Timeout <= 0 {
		h.Timeout = messages.DefaultHookTimeout
	}
	if h.OnFailure == "" {
		h.OnFailure = messages.OnHookFailure(h.On)
	}
	return h
}

// errHookLate is the cause of a hook's context when its time is up.
var errHookLate = errors.New("the hook's time is up")

// call calls the hook, for as long as its timeout at most. When ctx ended the error is its cause.
func (h Hook) call(ctx context.Context, c messages.HookCall, log *slog.Logger) (messages.HookAnswer, error) {
	limited, stop := context.WithTimeoutCause(ctx, h.Timeout, errHookLate)
	defer stop()
	type outcome struct {
		answer messages.HookAnswer
		err    error
	}
	done := make(chan outcome, 1) // a function that does not end in time ends by itself
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				log.LogAttrs(limited, slog.LevelError, "hook panicked", slog.String("hook", h.Name), slog.String("tenant", c.Tenant),
					slog.String("task_id", c.Run), slog.Int("step", c.Step), slog.Int("attempt", c.Attempt),
					slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
				o = outcome{err: errors.New("the hook panicked")}
			}
			done <- o
		}()
		o.answer, o.err = h.Func(limited, c)
	}()
	var o outcome
	select {
	case o = <-done:
	case <-limited.Done():
		o.err = context.Cause(limited)
	}
	switch {
	case o.err != nil && ctx.Err() != nil:
		return messages.HookAnswer{}, context.Cause(ctx)
	case o.err != nil && errors.Is(context.Cause(limited), errHookLate):
		return messages.HookAnswer{}, fmt.Errorf("no answer within %s", h.Timeout)
	case o.err != nil:
		return messages.HookAnswer{}, o.err
	case !h.On.Decides():
		return messages.HookAnswer{}, nil
	}
	return o.answer, o.answer.Validate()
}

// hooksOf are the hooks of the worker and then those of an agent. The error names the first of the agent's that this
// worker must not call; in the list it then fails whenever it is called.
func (r *Runner) hooksOf(d *messages.Definition) (hooks []Hook, refused error) {
	for _, h := range r.cfg.Hooks {
		hooks = append(hooks, h.withDefaults())
	}
	for i := range d.Hooks {
		h := d.Hooks[i]
		f, err := r.agentHook(h)
		if err != nil {
			if refused == nil {
				field := "url"
				if h.Command != "" {
					field = "command"
				}
				refused = &messages.FieldError{Field: fmt.Sprintf("hooks[%d].%s", i, field), Reason: err.Error()}
			}
			f = func(context.Context, messages.HookCall) (messages.HookAnswer, error) {
				return messages.HookAnswer{}, err
			}
		}
		own := Hook{On: h.On, Name: h.Name(), Timeout: time.Duration(h.Timeout), OnFailure: h.OnFailure, Func: f}
		hooks = append(hooks, own.withDefaults())
	}
	return hooks, refused
}

func (r *Runner) agentHook(h messages.Hook) (HookFunc, error) {
	if r.cfg.AgentHook == nil {
		return nil, errors.New("this worker calls no hooks of agents")
	}
	return r.cfg.AgentHook(h)
}

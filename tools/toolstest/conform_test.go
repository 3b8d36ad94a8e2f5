package toolstest_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/toolstest"
)

// broken is a tool with a defect that each test chooses.
type broken struct {
	schema string
	effect messages.Effect
	call   func(context.Context, tools.Call) (tools.Result, error)
}

func (b broken) Spec() messages.ToolSpec {
	return messages.ToolSpec{
		Name: "broken", Description: "Does it wrong.", InputSchema: json.RawMessage(b.schema), Effect: b.effect,
	}
}

func (b broken) Call(ctx context.Context, c tools.Call) (tools.Result, error) { return b.call(ctx, c) }

func okay() tools.Result { return said("ok") }

func said(text string) tools.Result {
	r := tools.Text(text)
	r.Meta = map[string]any{"bytes": len(text)}
	return r
}

const strict = `{"type":"object","properties":{},"additionalProperties":false}`

func TestBrokenTools(t *testing.T) {
	fine := func(context.Context, tools.Call) (tools.Result, error) { return okay(), nil }
	var n atomic.Int64
	for name, c := range map[string]struct {
		tool broken
		args string
		want string // in one of the errors; empty: there are none
	}{
		"nothing wrong": {broken{strict, messages.EffectRead, fine}, "", ""},
		"no schema":     {broken{"", messages.EffectRead, fine}, "", "input schema"},
		"loose schema":  {broken{`{"type":"object"}`, messages.EffectRead, fine}, "", "lets"},
		"bad case":      {broken{strict, messages.EffectRead, fine}, `{"x":1}`, "the arguments were refused"},
		"not UTF-8": {broken{strict, messages.EffectRead, func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Text("\xff"), nil
		}}, "", "not valid text"},
		"no meta": {broken{strict, messages.EffectRead, func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Text("ok"), nil
		}}, "", "the result has no meta"},
		"silent failure": {broken{strict, messages.EffectRead, func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Failure(""), nil
		}}, "", "without words"},
		"not the same twice": {broken{strict, messages.EffectIdempotent, func(context.Context, tools.Call) (tools.Result, error) {
			return said(strings.Repeat("x", int(n.Add(1)))), nil
		}}, "", "gave another result"},
		"once may differ": {broken{strict, messages.EffectOnce, func(context.Context, tools.Call) (tools.Result, error) {
			return said(strings.Repeat("x", int(n.Add(1)))), nil
		}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			errs := toolstest.Broken(t.Context(), t.TempDir(), c.tool, toolstest.Case{Arguments: c.args})
			if c.want == "" {
				if errs != nil {
					t.Errorf("errors: %v", errs)
				}
				return
			}
			for _, err := range errs {
				if strings.Contains(err.Error(), c.want) {
					return
				}
			}
			t.Errorf("errors are %v, want one with %q", errs, c.want)
		})
	}
}

func TestDeafTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := broken{strict, messages.EffectRead, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			if ctx.Err() != nil {
				<-release
			}
			return okay(), nil
		}}
		errs := toolstest.Broken(t.Context(), t.TempDir(), deaf, toolstest.Case{})
		close(release)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "still ran 5s after it was cancelled") {
			t.Errorf("errors: %v", errs)
		}
	})
}

func TestNoCases(t *testing.T) {
	if errs := toolstest.Broken(t.Context(), t.TempDir(), broken{schema: strict, effect: messages.EffectRead}); len(errs) != 1 {
		t.Errorf("errors: %v", errs)
	}
}

// A call that fails although it should not, or has its effect twice, is found.
func TestCallsThatDoTooLittleOrTooMuch(t *testing.T) {
	var effects atomic.Int64
	counted := toolstest.Case{Effects: func() int { return int(effects.Load()) }}
	for name, c := range map[string]struct {
		effect messages.Effect
		does   int64
		fails  bool
		want   string
	}{
		"fails":                          {messages.EffectRead, 0, true, "the call failed: refused"},
		"does nothing":                   {messages.EffectOnce, 0, false, "the call had 0 effects, want 1"},
		"changes what it is to read":     {messages.EffectRead, 1, false, "the call had 1 effects, want 0"},
		"does it again for the same key": {messages.EffectIdempotent, 1, false, "its repetition with the same key had 2 effects, want 1"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := broken{strict, c.effect, func(context.Context, tools.Call) (tools.Result, error) {
				effects.Add(c.does)
				if c.fails {
					return tools.Failure("refused"), nil
				}
				return okay(), nil
			}}
			found := false
			for _, err := range toolstest.Broken(t.Context(), t.TempDir(), tool, counted) {
				found = found || strings.Contains(err.Error(), c.want)
			}
			if !found {
				t.Errorf("no error has %q", c.want)
			}
		})
	}
}

// A call that the next worker makes again has its effect once: the tool must not remember keys in its own process alone.
func TestCallsOfTheNextWorker(t *testing.T) {
	var effects atomic.Int64
	remembering := func(known map[string]bool) tools.Tool {
		return broken{strict, messages.EffectIdempotent, func(_ context.Context, c tools.Call) (tools.Result, error) {
			if !known[c.Key] {
				known[c.Key] = true
				effects.Add(1)
			}
			return okay(), nil
		}}
	}
	for name, c := range map[string]struct {
		restarted func(shared map[string]bool) (tools.Tool, error)
		want      string
	}{
		"outside":    {func(shared map[string]bool) (tools.Tool, error) { return remembering(shared), nil }, ""},
		"in process": {func(map[string]bool) (tools.Tool, error) { return remembering(map[string]bool{}), nil }, "a call that the next worker made again had 2 effects, want 1"},
		"otherwise": {func(map[string]bool) (tools.Tool, error) {
			return broken{strict, messages.EffectIdempotent, other}, nil
		}, "the next worker was answered otherwise"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			shared := map[string]bool{}
			inner := remembering(shared)
			tool := broken{strict, messages.EffectIdempotent, func(ctx context.Context, c tools.Call) (tools.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				return inner.Call(ctx, c)
			}}
			errs := toolstest.Broken(t.Context(), t.TempDir(), tool, toolstest.Case{Effects: func() int { return int(effects.Load()) }, Restarted: func() (tools.Tool, error) { return c.restarted(shared) }})
			found := c.want == "" && len(errs) == 0
			for _, err := range errs {
				found = found || c.want != "" && strings.Contains(err.Error(), c.want)
			}
			if !found {
				t.Errorf("errors: %v, want %q", errs, c.want)
			}
		})
	}
}

func other(context.Context, tools.Call) (tools.Result, error) { return tools.Text("other"), nil }

// A call whose run was lost before its effect keeps to that, and one that breaks down after it is not made again.
func TestCallsThatAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		effect messages.Effect
		call   func(context.Context, tools.Call) (tools.Result, error)
		want   string // empty: nothing is wrong
	}{
		"keeps to it": {messages.EffectOnce, func(_ context.Context, c tools.Call) (tools.Result, error) {
			if c.Begin != nil {
				if err := c.Begin(); err != nil {
					return tools.Result{}, err
				}
			}
			return okay(), c.Workspace.Write("a", []byte(c.ID))
		}, ""},
		"writes before it asks": {messages.EffectOnce, func(_ context.Context, c tools.Call) (tools.Result, error) {
			if err := c.Workspace.Write("a", nil); err != nil {
				return tools.Result{}, err
			}
			if c.Begin != nil {
				return okay(), c.Begin()
			}
			return okay(), nil
		}, "a call whose run was lost changed files"},
		"does not listen": {messages.EffectRead, func(_ context.Context, c tools.Call) (tools.Result, error) {
			if c.Begin != nil {
				_ = c.Begin()
			}
			return okay(), nil
		}, "want the error of Begin"},
		"writes again": {messages.EffectIdempotent, func(_ context.Context, c tools.Call) (tools.Result, error) {
			old, _ := c.Workspace.Read("a")
			return okay(), c.Workspace.Write("a", append(old, 'x'))
		}, "the next worker changed files again"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := toolstest.Broken(t.Context(), t.TempDir(), broken{strict, c.effect, c.call}, toolstest.Case{})
			found := c.want == "" && len(errs) == 0
			for _, err := range errs {
				found = found || c.want != "" && strings.Contains(err.Error(), c.want)
			}
			if !found {
				t.Errorf("errors: %v, want %q", errs, c.want)
			}
		})
	}
}

package tools_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// retrying is a tool that is called again after a transient failure.
type retrying struct {
	stub
	retry tools.Retry
}

func (r retrying) Retry() tools.Retry { return r.retry }

func later(after time.Duration) tools.Result {
	r := tools.Failure("The service is busy.")
	r.Transient, r.RetryAfter = true, after
	return r
}

func TestRetries(t *testing.T) {
	busy := tools.Failure("The service is busy.")
	busy.Transient = true
	two, none, nine := 2, 0, 9
	for name, c := range map[string]struct {
		answers []tools.Result // the last one is given forever
		retry   tools.Retry
		agent   *int
		rule    tools.RetryPolicy // of the operator
		timeout time.Duration
		lost    int // the attempt that may not begin

		calls int
		took  time.Duration
		text  string
		err   bool
	}{
		"an answer":                 {answers: []tools.Result{tools.Text("ok")}, retry: tools.Retry{Retries: 3}, calls: 1, text: "ok"},
		"a failure for good":        {answers: []tools.Result{tools.Failure("no")}, retry: tools.Retry{Retries: 3}, calls: 1, text: "no"},
		"then it works":             {answers: []tools.Result{busy, busy, tools.Text("ok")}, retry: tools.Retry{Retries: 3, First: time.Second}, calls: 3, took: 3 * time.Second, text: "ok"},
		"never":                     {answers: []tools.Result{busy}, retry: tools.Retry{Retries: 3, First: time.Second, Most: 2 * time.Second}, calls: 4, took: 5 * time.Second, text: "busy"},
		"the tool does not ask":     {answers: []tools.Result{busy}, calls: 1, text: "busy"},
		"the agent asks":            {answers: []tools.Result{busy}, agent: &two, calls: 3, took: 1500 * time.Millisecond, text: "busy"},
		"the agent wants none":      {answers: []tools.Result{busy}, retry: tools.Retry{Retries: 3}, agent: &none, calls: 1, text: "busy"},
		"the time is up":            {answers: []tools.Result{busy}, retry: tools.Retry{Retries: 9, First: time.Second}, timeout: 2 * time.Second, calls: 2, took: time.Second, text: "busy"},
		"the service says when":     {answers: []tools.Result{later(3 * time.Second), tools.Text("ok")}, retry: tools.Retry{Retries: 3, First: time.Second, Most: time.Second}, calls: 2, took: 3 * time.Second, text: "ok"},
		"too late for the call":     {answers: []tools.Result{later(time.Hour)}, retry: tools.Retry{Retries: 3}, calls: 1, text: "busy"},
		"the operator asks":         {answers: []tools.Result{busy}, rule: tools.RetryPolicy{Retries: &two}, calls: 3, took: 1500 * time.Millisecond, text: "busy"},
		"the operator wants none":   {answers: []tools.Result{busy}, retry: tools.Retry{Retries: 3}, rule: tools.RetryPolicy{Retries: &none}, calls: 1, text: "busy"},
		"the operator sets waits":   {answers: []tools.Result{busy}, retry: tools.Retry{Retries: 3}, rule: tools.RetryPolicy{First: messages.Duration(time.Second), Most: messages.Duration(3 * time.Second)}, calls: 4, took: 6 * time.Second, text: "busy"},
		"a long first wait":         {answers: []tools.Result{busy}, retry: tools.Retry{Retries: 1, Most: time.Second}, rule: tools.RetryPolicy{First: messages.Duration(5 * time.Second)}, calls: 2, took: 5 * time.Second, text: "busy"},
		"the agent wants fewer":     {answers: []tools.Result{busy}, rule: tools.RetryPolicy{Retries: &two}, agent: &none, calls: 1, text: "busy"},
		"the agent wants more":      {answers: []tools.Result{busy}, rule: tools.RetryPolicy{Retries: &two}, agent: &nine, calls: 3, took: 1500 * time.Millisecond, text: "busy"},
		"waits alone bind no agent": {answers: []tools.Result{busy}, rule: tools.RetryPolicy{First: messages.Duration(time.Second)}, agent: &two, calls: 3, took: 3 * time.Second, text: "busy"},
		"the run was lost between":  {answers: []tools.Result{busy}, retry: tools.Retry{Retries: 3, First: time.Second}, lost: 2, calls: 1, took: time.Second, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, keys := 0, map[string]bool{}
				tool := retrying{withEffect(messages.EffectOnce, func(_ context.Context, call tools.Call) (tools.Result, error) {
					keys[call.Key] = true
					r := c.answers[min(calls, len(c.answers)-1)]
					calls++
					return r, nil
				}), c.retry}
				begun := 1
				call := tools.Call{Key: "k", Retries: c.agent, Timeout: c.timeout, Begin: func() error {
					if begun++; begun == c.lost {
						return errors.New("lost")
					}
					return nil
				}}
				began := time.Now()
				set := newSet(t, tool)
				set.Retries = map[string]tools.RetryPolicy{"t": c.rule, "other": {Retries: &nine}}
				r, err := set.Call(t.Context(), "t", call)
				if calls != c.calls || time.Since(began) != c.took || len(keys) != 1 {
					t.Errorf("%d calls with %d keys in %v, want %d in %v", calls, len(keys), time.Since(began), c.calls, c.took)
				}
				if (err != nil) != c.err {
					t.Fatalf("error %v", err)
				}
				if c.err {
					return
				}
				m := messages.Message{Content: r.Content}
				if !strings.Contains(m.Text(), c.text) || r.Transient {
					t.Errorf("result %+v, want %q", r, c.text)
				}
				if made := r.Meta["attempts"]; (made == nil) != (c.calls == 1) {
					t.Errorf("meta says %v attempts of %d", made, c.calls)
				}
			})
		})
	}
}

// A call whose answer comes from elsewhere says nothing about how long calls take or how much they return.
func TestUsage(t *testing.T) {
	busy := tools.Failure("busy")
	busy.Transient = true
	answers := []tools.Result{busy, tools.Text("four"), tools.Text("caf\xe9"), {Delegation: &tools.Delegation{}}, {Delegation: &tools.Delegation{}}}
	tool := withEffect(messages.EffectRead, func(context.Context, tools.Call) (tools.Result, error) {
		r := answers[0]
		answers = answers[1:]
		return r, nil
	})
	s := newSet(t, retrying{tool, tools.Retry{Retries: 1, First: time.Millisecond}})
	for range 4 {
		if _, err := s.Call(t.Context(), "t", tools.Call{}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Usage()["t"], (tools.Usage{Bytes: 4 + 3 + 3, Retries: 1}); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
	if mean, ok := s.Mean("t"); ok {
		t.Errorf("two calls took %v on average, want nothing of so few", mean)
	}
}

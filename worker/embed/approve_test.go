package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// A call that needs an approval is made or refused once it is decided; an answer is not a decision.
func TestApprove(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		decide func(*embed.Session, string) error
		output string
		calls  int
	}{
		"approved": {func(s *embed.Session, call string) error { return s.Approve(t.Context(), call) }, "gone", 1},
		"denied": {
			func(s *embed.Session, call string) error { return s.Deny(t.Context(), call, "not now") },
			messages.TextDenied + ": not now", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			s := open(t, embed.Config{
				Model: agenttest.Replies(agenttest.Call("drop", `{}`), agenttest.Text("done")),
				Agent: messages.Definition{Tools: []string{"drop"}, Approve: &messages.Approve{Always: []string{"drop"}}},
				Tools: []tools.Tool{tool(t, "drop", func() (tools.Result, error) {
					calls++
					return tools.Text("gone"), nil
				})},
			}, hello())
			if err := s.Approve(t.Context(), "x"); !errors.Is(err, embed.ErrNotWaiting) {
				t.Errorf("an approval before the run: %v", err)
			}
			asked := 0
			s.On(func(e messages.Event) {
				if e.Name() != messages.EventApprovalRequested {
					return
				}
				asked++
				var what messages.ApprovalRequested
				if err := json.Unmarshal(e.Data, &what); err != nil {
					t.Error(err)
				}
				if err := s.Answer(t.Context(), "yes", false); !errors.Is(err, embed.ErrNotWaiting) {
					t.Errorf("an answer: %v", err)
				}
				if err := s.Approve(t.Context(), "another"); !errors.Is(err, embed.ErrNotWaiting) {
					t.Errorf("another call: %v", err)
				}
				if err := tt.decide(s, what.CallID); err != nil {
					t.Error(err)
				}
				if err := s.Approve(t.Context(), what.CallID); !errors.Is(err, embed.ErrNotWaiting) {
					t.Errorf("decided twice: %v", err)
				}
			})
			res, err := s.Run(t.Context())
			if err != nil || res.Result != "done" || calls != tt.calls || asked != 1 {
				t.Fatalf("%+v, %v, %d calls, asked %d times", res, err, calls, asked)
			}
			if res.Actions[0].Output != tt.output {
				t.Errorf("the tool's answer is %q, want %q", res.Actions[0].Output, tt.output)
			}
		})
	}
}

// A call is made with the arguments of the person who approves it, where the agent lets it be.
func TestApproveWith(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit  []string
		given string
		made  string
		err   string
	}{
		"allowed":       {[]string{"drop"}, `{"what":"b"}`, "b", ""},
		"not allowed":   {nil, `{"what":"b"}`, "a", "may only be approved as it is"},
		"not an object": {[]string{"drop"}, `"b"`, "a", "arguments: must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := []string{}
			drop, err := tools.Func(messages.ToolSpec{Name: "drop", Description: "Drops.", Effect: messages.EffectOnce}, func(_ context.Context, _ tools.Call, in struct {
				What string `json:"what"`
			},
			) (tools.Result, error) {
				made = append(made, in.What)
				return tools.Text("gone"), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			s := open(t, embed.Config{
				Model: agenttest.Replies(agenttest.Call("drop", `{"what":"a"}`), agenttest.Text("done")),
				Agent: messages.Definition{Tools: []string{"drop"}, Approve: &messages.Approve{Always: []string{"drop"}, Edit: tt.edit}},
				Tools: []tools.Tool{drop},
			}, hello())
			s.On(func(e messages.Event) {
				if e.Name() != messages.EventApprovalRequested {
					return
				}
				var what messages.ApprovalRequested
				if err := json.Unmarshal(e.Data, &what); err != nil {
					t.Error(err)
				}
				err := s.ApproveWith(t.Context(), what.CallID, json.RawMessage(tt.given))
				if (tt.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				if err != nil {
					if err := s.Approve(t.Context(), what.CallID); err != nil {
						t.Error(err)
					}
				}
			})
			res, err := s.Run(t.Context())
			if err != nil || res.Result != "done" || !slices.Equal(made, []string{tt.made}) {
				t.Errorf("%+v, %v, made %v", res, err, made)
			}
		})
	}
}

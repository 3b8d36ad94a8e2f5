package embed_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// A message to a run while a tool works is a message of the user in the next call.
func TestSteer(t *testing.T) {
	t.Parallel()
	var s *embed.Session
	s = open(t, embed.Config{
		Model: agenttest.Replies(agenttest.Call("look", `{}`), agenttest.Text("done")), Agent: messages.Definition{Tools: []string{"look"}},
		Tools: []tools.Tool{tool(t, "look", func() (tools.Result, error) {
			if err := s.Steer(t.Context(), "Be brief."); err != nil {
				t.Error(err)
			}
			return tools.Text("seen"), nil
		})},
	}, hello())
	if err := s.Steer(t.Context(), "Too early."); err == nil {
		t.Error("it was told before it began")
	}
	told := 0
	s.On(func(e messages.Event) {
		if e.Name() == messages.EventSteered {
			told++
		}
	})
	res, err := s.Run(t.Context())
	if err != nil || res.Result != "done" || told != 1 {
		t.Errorf("%+v %v, told %d times", res, err, told)
	}
	if err := s.Steer(t.Context(), "Too late."); !errors.Is(err, embed.ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
}

package agenttest_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
)

func TestRepliesRunOut(t *testing.T) {
	t.Parallel()
	run := agenttest.Run(t, agenttest.Config{Config: embed.Config{Model: agenttest.Replies(agenttest.Call("nothing", `{}`))}}, "x")
	run.Want(t, "model", "tool nothing: invalid_input", "model failed: no_provider", "failed: no_provider")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want messages.Code
	}{
		"the model's": {&model.Error{Class: model.Quota}, messages.CodeModelQuota},
		"any":         {errors.New("boom"), (&model.Error{Class: model.Unknown}).Code()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := agenttest.Run(t, agenttest.Config{Config: embed.Config{Model: agenttest.Replies(agenttest.Fail(tt.err))}}, "x")
			run.Want(t, "model failed: "+string(tt.want), "failed: "+string(tt.want))
		})
	}
}

func TestFuncSeesTheRequest(t *testing.T) {
	t.Parallel()
	m := agenttest.Func(func(r model.Request) agenttest.Reply { return agenttest.Text("you said " + r.Messages[0].Text()) })
	if run := agenttest.Run(t, agenttest.Config{Config: embed.Config{Model: m}}, "hello"); run.Result.Result != "you said hello" {
		t.Errorf("result %v", run.Result.Result)
	}
}

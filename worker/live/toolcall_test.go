package live_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/live"
	"github.com/longshore-run/longshore/worker/policy"
)

// The arguments of tool calls are shown while they are written, each call by itself, and without secrets.
func TestToolCallsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		c := live.New(live.Config{Publish: w.publish, Redact: policy.NewRedactor(secret), Every: every}).Open(run, 1, 1, nil)
		c.Add(messages.LiveText, "Let me look.")
		c.AddCall("c1", "read_file", "")
		time.Sleep(2 * every)
		c.AddCall("c1", "read_file", `{"path":"a.go","key":"`+secret[:9])
		time.Sleep(2 * every)
		c.AddCall("c1", "read_file", secret[9:]+`"}`)
		c.AddCall("c2", "call-"+secret, `{}`)
		c.AddCall(strings.Repeat("x", 300), "long", `{}`)
		c.Close(true)
		args, names := map[string]string{}, map[string]string{}
		for i, l := range w.all {
			if l.N != i+1 || l.Dropped > 0 {
				t.Errorf("message %d: %+v", i, l)
			}
			if l.Kind == messages.LiveCall {
				args[l.CallID] += l.Text
				names[l.CallID] = l.Tool
			}
		}
		if first := w.all[1]; first.CallID != "c1" || first.Tool != "read_file" || first.Text != "" {
			t.Errorf("the call begins with %+v", first)
		}
		if got := args["c1"]; got != `{"path":"a.go","key":"`+policy.Mark+`"}` {
			t.Errorf("c1: %s", got)
		}
		if args["c2"] != "{}" || names["c2"] != "call-"+policy.Mark || len(args) != 2 {
			t.Errorf("%v %v", args, names)
		}
	})
}

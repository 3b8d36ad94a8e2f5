package live_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/live"
)

// Live text shows no more than the events of the run, also when an address comes in pieces.
func TestLiveTextShowsNoMoreThanEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		shown      *record.Shown
		text, args string
	}{
		"by default": {record.ShownByDefault(), "Ask [redacted], please.", `{"to":"[redacted]"}`},
		"all":        {&record.Shown{}, "Ask bob@example.com, please.", `{"to":"bob@example.com"}`},
		"no inputs":  {&record.Shown{NoInputs: true, NoReplies: true}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{}
				c := live.New(live.Config{Publish: w.publish, Every: every}).Open(run, 1, 1, tc.shown)
				for _, piece := range []string{"Ask b", "ob@exam", "ple.com", ", please."} {
					c.Add(messages.LiveText, piece)
					time.Sleep(2 * every)
				}
				c.AddCall("c1", "mail", `{"to":"bob@`)
				time.Sleep(2 * every)
				c.AddCall("c1", "mail", `example.com"}`)
				time.Sleep(2 * every)
				c.Close(true)
				var text, args strings.Builder
				for _, l := range w.all {
					if l.Kind == messages.LiveCall {
						args.WriteString(l.Text)
					} else {
						text.WriteString(l.Text)
					}
				}
				if text.String() != tc.text || args.String() != tc.args {
					t.Errorf("text %q, arguments %q", text.String(), args.String())
				}
			})
		})
	}
}

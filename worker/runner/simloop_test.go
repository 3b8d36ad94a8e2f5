package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/model"
)

// A seventh of the seeds speak the JSON protocol, beginning with a reply that is not JSON; another seventh begin with a
// reply that is cut, whose call must never be made.
func (w *world) inText() bool { return w.seed%7 == 3 }
func (w *world) isCut() bool  { return w.seed%7 == 4 }

// cutCall is the id of a call in a reply that is cut.
const cutCall = "cut"

// speaks is the agent that the seed works with.
func (w *world) speaks(d *messages.Definition) {
	switch {
	case w.plan != nil:
		w.plan.define(d)
	case w.inText():
		d.Planner = messages.PlannerJSON
	case w.isCut():
		d.OnTruncated = messages.TruncatedContinue
	}
}

// reply is the model's, by the number of replies so far.
func (w *world) reply(turn int) *model.Reply {
	r := &model.Reply{Stop: messages.StopEnd, Usage: messages.Usage{Input: 1}}
	text := fmt.Sprint("turn ", turn)
	if w.inText() || w.isCut() {
		turn--
	}
	var calls []messages.ToolCall
	switch {
	case turn < 0 && w.isCut():
		r.Stop, calls = messages.StopLength, []messages.ToolCall{{ID: cutCall, Name: "once", Arguments: `{}`}}
	case turn >= 0 && turn < len(w.script) && w.inText():
		text = fmt.Sprintf(`{"type":"tool","name":%q}`, w.script[turn][0].Name)
	case turn >= 0 && turn < len(w.script):
		r.Stop, calls = messages.StopToolCalls, w.script[turn]
	case turn >= 0 && w.inText():
		text = fmt.Sprintf(`{"type":"final","content":%q}`, text)
	}
	r.Message.Content = messages.TextContent(text)
	for _, c := range calls {
		r.Message.Content = append(r.Message.Content, messages.Block{ToolCall: &c})
	}
	return r
}

// The seeds that speak otherwise do the same work.
func TestSimulationSpeaks(t *testing.T) {
	for seed := uint64(3); seed < 60; seed += 7 {
		for _, seed := range []uint64{seed, seed + 1} {
			w, found := trial(t, seed, allRules, true)
			if found.total() != 0 {
				t.Fatal(found.first)
			}
			for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
				for _, r := range e.Records {
					f, ok := r.(*record.Finished)
					if !ok {
						continue
					}
					want := fmt.Sprint("turn ", len(w.script)+1)
					if got := fmt.Sprint(f.Result.Result); !strings.HasSuffix(got, want) || len(f.Result.Actions) == 0 {
						t.Errorf("seed %d: %q after %d calls, want %s", seed, got, len(f.Result.Actions), want)
					}
				}
			}
		}
	}
}

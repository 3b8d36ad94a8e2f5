package agent_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// cutText is what the model is asked to continue with.
const cutText = "Your reply was cut at the token limit. A tool call in it was not made. Go on exactly where it stopped, " +
	"without repeating anything; be brief."

func told(text string) record.Record { return &record.Steered{ID: "x-" + text, Message: text} }

// roles is who said what, the task aside.
func roles(ms []messages.Message) string {
	var out []string
	for _, m := range ms[1:] {
		out = append(out, string(m.Role)+" "+m.Text())
	}
	return strings.Join(out, ", ")
}

func TestSteeredConversation(t *testing.T) {
	resumed := &record.Claimed{Claim: "c2", Resumes: queue.ParkModel}
	for name, tc := range map[string]struct {
		agent   messages.Definition
		records []record.Record
		want    string // that the planner wants
		said    string
		unheard int
	}{
		"before the first call": {
			records: []record.Record{told("a"), told("b"), step(1)}, want: "model 1", said: "user a, user b",
		},
		"a call in flight does not know": {
			records: []record.Record{step(1), told("a")}, want: "model 1", unheard: 1,
		},
		"a call that is made again after a crash neither": {
			records: []record.Record{step(1), told("a"), &record.Claimed{Claim: "c2"}}, want: "model 1", unheard: 1,
		},
		"the wait for the model was": {
			records: []record.Record{step(1), &record.Parked{Reason: queue.ParkModel}, told("a"), resumed}, want: "model 1", said: "user a",
		},
		"not between a call and its result": {
			records: []record.Record{step(1), replied(1, messages.StopToolCalls, "", "c"), told("a"), returned(1, "c", "R"), step(2)},
			want:    "model 2", said: "assistant , tool , user a",
		},
		"an answer without it is not the last word": {
			records: []record.Record{step(1), told("a"), replied(1, messages.StopEnd, "fine")}, want: "model 2", said: "assistant fine", unheard: 1,
		},
		"unless no step is left": {
			agent:   messages.Definition{MaxSteps: 1},
			records: []record.Record{step(1), told("a"), replied(1, messages.StopEnd, "fine")}, want: "completed fine", said: "assistant fine", unheard: 1,
		},
		"a failure is": {
			records: []record.Record{step(1), told("a"), replied(1, messages.StopContentFilter, "no")},
			want:    "failed (model_content_filter) the provider's content filter stopped the reply", said: "assistant no", unheard: 1,
		},
		"a reply that is cut is heard out": {
			agent:   messages.Definition{OnTruncated: messages.TruncatedContinue},
			records: []record.Record{step(1), told("a"), replied(1, messages.StopLength, "fi"), step(2)},
			want:    "model 2", said: "assistant fi, user " + cutText, unheard: 1,
		},
		"in text": {
			agent:   messages.Definition{Planner: messages.PlannerJSON},
			records: []record.Record{step(1), told("a"), replied(1, messages.StopEnd, `{"type":"final","content":"fine"}`), step(2)},
			want:    "model 2", said: `assistant {"type":"final","content":"fine"}, user a`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, tc.agent, hi, tc.records...)
			if got := plan(t, s); !strings.HasPrefix(got, tc.want) {
				t.Errorf("plan: %q, want %q", got, tc.want)
			}
			if got := roles(s.Transcript); got != tc.said {
				t.Errorf("said: %q, want %q", got, tc.said)
			}
			if len(s.Unheard) != tc.unheard {
				t.Errorf("unheard: %q", s.Unheard)
			}
		})
	}
}

func TestSteeredPlan(t *testing.T) {
	given := func(specs ...string) messages.Task { return messages.Task{Plan: planOf(specs...)} }
	for name, tc := range map[string]struct {
		play
		want  string
		heard string // by which calls, from 1
	}{
		"while it is planned": {
			play: play{replies: []string{planJSON("a"), proceed, proceed, "Done."}, told: map[int]string{1: "Be quick."}},
			want: "plan ready observe continue +a -a observe continue summary completed", heard: "234",
		},
		"while it is observed": {
			play: play{replies: []string{planJSON("a", "b<a"), proceed, adapt(nil, "b"), "Done."}, told: map[int]string{2: "Be quick."}},
			want: "plan ready +a -a observe continue observe adapt ~b summary completed", heard: "34",
		},
		"the summary hears it": {
			play: play{
				replies: []string{planJSON("a"), `{"decision":"complete"}`, "Done."}, told: map[int]string{2: "Be quick."},
			},
			want: "plan ready +a -a observe complete summary completed", heard: "3",
		},
		"no message": {
			play: play{
				def: messages.Definition{Observe: messages.ObserveNever}, replies: []string{planJSON("a"), "Done."},
				told: map[int]string{2: "Be quick."},
			},
			want: "plan ready +a -a summary completed",
		},
		"a given plan": {
			play: play{
				def: messages.Definition{Observe: messages.ObserveAlways}, task: given("a"), replies: []string{proceed, proceed, "Done."},
				told: map[int]string{1: "Be\nquick."},
			},
			want: "ready +a -a observe continue observe continue summary completed", heard: "23",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.def.Tools = []string{"t"}
			if got := strings.Join(tc.run(t), " "); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
			var heard []string
			for i, p := range tc.prompts {
				if strings.Contains(p, "quick.") {
					heard = append(heard, strconv.Itoa(i+1))
				}
			}
			if got := strings.Join(heard, ""); got != tc.heard {
				t.Errorf("heard by %s, want %s", got, tc.heard)
			}
		})
	}
}

package policy_test

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/policy"
)

// logOf is a log of one entry.
func logOf(rs ...record.Record) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) { yield(record.Entry{Seq: 1, Records: rs}, nil) }
}

// A review looks wherever a worker looks: what a task brings, calls that are text or steps of a plan, thoughts, what tools say beside
// their text; and it counts what runs above, below and before have read and cost.
func TestReview(t *testing.T) {
	const mail = "ann@example.com"
	read := func(name string) record.Record {
		return &record.ToolReturned{Step: 1, Name: name, Result: messages.ToolResult{CallID: "c", Content: messages.TextContent("it")}}
	}
	send := &record.ModelReplied{Step: 2, Message: messages.Message{Content: []messages.Block{{ToolCall: &messages.ToolCall{ID: "s", Name: "send", Arguments: `{}`}}}}}
	const taint = `{"taint":{"private":["look"],"untrusted":["fetch"],"egress":["send"]}}`
	const content = `{"content":[{"name":"m","category":"email"}]}`
	for name, c := range map[string]struct {
		rules string
		log   []record.Record
		want  string
	}{
		"context": {content, []record.Record{&record.Started{Task: messages.Task{Context: json.RawMessage(`{"to":"` + mail + `"}`)}}}, "0  input redact m"},
		"a plan": {content, []record.Record{&record.Started{Task: messages.Task{Plan: &messages.Plan{Steps: []messages.PlanStep{
			{Description: "Tell " + mail + ".", Args: json.RawMessage(`{"to":"` + mail + `"}`)},
		}}}}}, "0  input redact m"},
		"a step of a plan": {content, []record.Record{&record.Started{}, &record.ToolStarted{Step: 1, StepID: "a", Call: messages.ToolCall{
			ID: "a", Name: "send", Arguments: `{"to":"` + mail + `"}`,
		}}}, "1 send arguments redact m"},
		"a call of a reply, once": {content, []record.Record{
			&record.Started{}, &record.ModelReplied{Step: 1, Message: messages.Message{Content: []messages.Block{{ToolCall: &messages.ToolCall{ID: "a", Name: "send", Arguments: `{"to":"` + mail + `"}`}}}}},
			&record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "a", Name: "send", Arguments: `{"to":"` + mail + `"}`}},
		}, "1 send arguments redact m"},
		"a thought": {content, []record.Record{&record.Started{}, &record.ModelReplied{Step: 1, Message: messages.Message{
			Content: []messages.Block{{Reasoning: &messages.Reasoning{Text: mail}}},
		}}}, "1  reply redact m"},
		"beside a result": {content, []record.Record{&record.Started{}, &record.ToolReturned{Step: 1, Name: "look", Meta: json.RawMessage(`{"by":"` + mail + `"}`)}}, "1 look output redact m"},
		"read by itself":  {taint, []record.Record{&record.Started{}, read("look"), read("fetch"), send}, "2 send plan ask taint"},
		"read above":      {taint, []record.Record{&record.Started{Parent: &record.Parent{Used: []string{"look"}}}, read("fetch"), send}, "2 send plan ask taint"},
		"read below":      {taint, []record.Record{&record.Started{}, read("look"), &record.ChildEnded{Used: []string{"fetch"}}, send}, "2 send plan ask taint"},
		"read before":     {taint, []record.Record{&record.Started{}, &record.Recalled{Used: []string{"fetch", "look"}}, send}, "2 send plan ask taint"},
		"read half":       {taint, []record.Record{&record.Started{}, &record.Recalled{Used: []string{"fetch"}}, send}, ""},
		"paid below": {`{"approve":[{"name":"dear","tool":"send","costAbove":1}]}`, []record.Record{
			&record.Started{}, &record.ChildEnded{Cost: new(1.5)}, send,
		}, "2 send arguments ask dear"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := policy.Review(logOf(c.log...), func(*record.Started) (*policy.Rules, error) { return rules(t, "fleet", c.rules), nil })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, strings.Join([]string{string(rune('0' + f.Step)), f.Tool, string(f.Point), f.Action, f.Rule}, " "))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

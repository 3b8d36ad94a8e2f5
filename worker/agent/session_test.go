package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

func spoken(role messages.Role, text string) messages.Message {
	return messages.Message{Role: role, Content: messages.TextContent(text)}
}

func talk(turns int, text string) []messages.Message {
	var out []messages.Message
	for i := range turns {
		out = append(out, spoken(messages.RoleUser, fmt.Sprint("ask ", i, text)), spoken(messages.RoleAssistant, fmt.Sprint("answer ", i, text)))
	}
	return out
}

func TestRecallWindow(t *testing.T) {
	call := messages.ToolCall{ID: "c", Name: "read_file", Arguments: `{"path":"a"}`}
	withTools := []messages.Message{
		spoken(messages.RoleUser, "ask"),
		{Role: messages.RoleAssistant, Content: []messages.Block{{Text: "I look."}, {Reasoning: &messages.Reasoning{Text: "hm"}}, {ToolCall: &call}}},
		{Role: messages.RoleTool, Content: []messages.Block{{ToolResult: &messages.ToolResult{CallID: "c", Content: messages.TextContent(strings.Repeat("x", 9000))}}}},
		spoken(messages.RoleAssistant, "answer"),
	}
	for name, tc := range map[string]struct {
		talk                     []messages.Message
		policy                   messages.SessionPolicy
		messages, older, dropped int
	}{
		"nothing":                      {nil, messages.SessionPolicy{}, 0, 0, 0},
		"all fits":                     {talk(3, ""), messages.SessionPolicy{}, 6, 0, 0},
		"too many":                     {talk(5, ""), messages.SessionPolicy{MaxMessages: 4}, 4, 0, 6},
		"begins with a user's":         {talk(5, ""), messages.SessionPolicy{MaxMessages: 3}, 2, 0, 8},
		"too long":                     {talk(5, strings.Repeat("x", 390)), messages.SessionPolicy{MaxTokens: 250}, 2, 0, 8},
		"one message is beyond it all": {talk(1, strings.Repeat("x", 4000)), messages.SessionPolicy{MaxTokens: 100}, 0, 0, 2},
		"summary of all but half":      {talk(5, ""), messages.SessionPolicy{MaxMessages: 8, Summary: messages.SummaryOn}, 10, 6, 0},
		"summary of all":               {talk(1, strings.Repeat("x", 4000)), messages.SessionPolicy{MaxTokens: 100, Summary: messages.SummaryOn}, 2, 2, 0},
		"without tools":                {withTools, messages.SessionPolicy{}, 3, 0, 0},
		"with tools":                   {withTools, messages.SessionPolicy{KeepTools: true}, 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := messages.Definition{Session: &tc.policy}
			r := agent.Recall("r", tc.talk, nil, d.SessionPolicy())
			if len(r.Messages) != tc.messages || r.Older != tc.older || r.Dropped != tc.dropped {
				t.Errorf("%d messages, %d older, %d dropped", len(r.Messages), r.Older, r.Dropped)
			}
			for _, m := range r.Messages {
				for _, b := range m.Content {
					if b.Reasoning != nil || b.ToolResult != nil && len(b.ToolResult.Shown()) > 5000 {
						t.Errorf("kept: %+v", b)
					}
				}
			}
		})
	}
}

// turn folds a whole run of a session, and returns what it was shown and what it leaves.
func turn(t *testing.T, d messages.Definition, from []messages.Message, ask string) (shown, left []messages.Message, summaries int) {
	t.Helper()
	s := &agent.State{}
	must := func(rs ...record.Record) {
		for _, r := range rs {
			if err := s.Advance(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	task := messages.Task{ID: "r", Tenant: "t", Session: "s", Input: messages.TextInput(ask)}
	must(&record.Started{Task: task, Agent: d}, &record.Claimed{Claim: "k"})
	if _, ok := s.Next(agent.ToolCalling{}, true).(*agent.JoinSession); !ok {
		t.Fatal("it does not join")
	}
	must(agent.Recall("r", from, nil, d.SessionPolicy()))
	call, ok := s.Next(agent.ToolCalling{}, true).(*agent.CallModel)
	if ok && call.Summary {
		summaries++
		must(&record.Summarised{Text: "the summary", Usage: messages.Usage{Input: 3, Total: 3}, Cost: new(0.5)})
		if s.Usage.Total != 3 || s.Cost != 0.5 || len(s.ModelCalls) != 1 {
			t.Errorf("the summary costs nothing: %+v %v", s.Usage, s.Cost)
		}
		call, ok = s.Next(agent.ToolCalling{}, true).(*agent.CallModel)
	}
	if !ok || call.Step != 1 {
		t.Fatalf("planned: %+v", call)
	}
	must(&record.StepStarted{Step: 1}, &record.ModelReplied{
		Step: 1, Stop: messages.StopEnd, Message: spoken(messages.RoleAssistant, "answer to "+ask),
	})
	f, ok := s.Next(agent.ToolCalling{}, true).(*agent.Finish)
	if !ok {
		t.Fatal("it does not end")
	}
	must(&record.Finished{Result: messages.AgentResult{Status: f.Status, Success: true, Result: f.Result}})
	return call.Messages, s.Conversation(), summaries
}

// A long session stays within its window forever.
func TestSessionOfManyTurns(t *testing.T) {
	for _, summary := range []string{messages.SummaryOff, messages.SummaryOn} {
		t.Run(summary, func(t *testing.T) {
			d := messages.Definition{
				Name: "a", Instructions: "Be brief.", Session: &messages.SessionPolicy{MaxMessages: 20, MaxTokens: 1000, Summary: summary},
			}
			d.SetDefaults()
			var left []messages.Message
			sums := 0
			for i := range 200 {
				shown, next, n := turn(t, d, left, fmt.Sprintf("ask %d %s", i, strings.Repeat("x", i)))
				left = next
				sums += n
				size := 0
				for _, m := range shown[1 : len(shown)-1] {
					size += len(m.Text())
				}
				if len(shown) > 22 || size > 4000 {
					t.Fatalf("turn %d: %d messages of %d bytes", i, len(shown), size)
				}
				if shown[0].Role != messages.RoleSystem || len(shown) > 2 && shown[1].Role != messages.RoleUser {
					t.Fatalf("turn %d begins with %s, %s", i, shown[0].Role, shown[1].Role)
				}
				if summary == messages.SummaryOn && i > 20 && !strings.HasSuffix(left[0].Content[0].Text, "the summary") {
					t.Fatalf("turn %d: it does not begin with the summary: %v", i, left[0])
				}
			}
			if summary == messages.SummaryOn && (sums == 0 || sums > 120) || summary == messages.SummaryOff && sums > 0 {
				t.Errorf("%d summaries", sums)
			}
		})
	}
}

func TestConversationOfARunWithoutAnAnswer(t *testing.T) {
	s := &agent.State{}
	for _, r := range []record.Record{
		&record.Started{Task: messages.Task{ID: "r", Session: "s", Input: messages.TextInput("ask")}},
		&record.Recalled{Messages: talk(1, "")},
		&record.Finished{Result: messages.AgentResult{Status: messages.StatusFailed, Error: &messages.RunError{Code: messages.CodeModelAuth}}},
	} {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	want := append(talk(1, ""), spoken(messages.RoleUser, "ask"), spoken(messages.RoleAssistant, "(This turn ended without an answer: model_auth.)"))
	if diff := cmp.Diff(want, s.Conversation()); diff != "" {
		t.Error(diff)
	}
}

// A log that is older than turns continues without one.
func TestOldRunOfASession(t *testing.T) {
	s := &agent.State{}
	d := messages.Definition{Name: "a"}
	d.SetDefaults()
	for _, r := range []record.Record{
		&record.Started{Task: messages.Task{ID: "r", Session: "s", Input: messages.TextInput("ask")}, Agent: d}, &record.StepStarted{Step: 1},
	} {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	if a, ok := s.Next(agent.ToolCalling{}, true).(*agent.CallModel); !ok || a.Step != 1 {
		t.Errorf("planned %T", a)
	}
}

package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// begun is when the runs of these tests began.
var begun = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// cent is a price list on which every call costs a cent, except that of the model "mystery".
func cent(_, model string, _ messages.Usage) (float64, bool) { return 0.01, model != "mystery" }

func paid(step int, tokens int64, calls ...string) *record.ModelReplied {
	r := replied(step, messages.StopToolCalls, "", calls...)
	r.Usage = messages.Usage{Input: tokens, Total: tokens}
	r.Cost = new(0.01)
	return r
}

func ask(park uint64, limit string) []record.Record {
	return []record.Record{&record.Parked{Reason: queue.ReasonBudget, Limit: limit, Question: limit + ": all used"}}
}

// within asks what a run may still do, as its owner does: its time first, then its budget.
func within(s *agent.State, next agent.Action, now time.Time, price agent.Price) (agent.Action, []*record.BudgetWarned) {
	if _, ends := next.(*agent.Finish); ends {
		return next, nil
	}
	if f := s.Overdue(now); f != nil {
		return f, nil
	}
	return s.Afford(next, now, price)
}

func TestWithin(t *testing.T) {
	one := []record.Record{&record.StepStarted{Step: 1}, paid(1, 100, "a"), &record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "a"}}, returned(1, "a", "A")}
	wants := []record.Record{&record.StepStarted{Step: 1}, paid(1, 100, "a", "b")}
	began := []record.Record{&record.StepStarted{Step: 1}, paid(1, 100, "a", "b"), &record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "a"}}}
	answered := func(limit, text string, isError bool) []record.Record {
		rs := append([]record.Record{}, one...)
		rs = append(rs, ask(0, limit)...)
		return append(rs, &record.Answered{By: "ann", Content: messages.TextContent(text), IsError: isError}, &record.Claimed{Claim: "d", Resumes: queue.ReasonBudget})
	}
	budget := func(c messages.Caps) messages.Budget { return messages.Budget{Caps: c} }
	asks := func(c messages.Caps) messages.Budget { return messages.Budget{Caps: c, OnBudget: messages.OnBudgetAsk} }
	soft := func(c messages.Caps) messages.Budget { return messages.Budget{Caps: c, Soft: 0.5} }
	for name, tc := range map[string]struct {
		budget  messages.Budget
		limits  messages.Limits
		model   string
		records []record.Record
		after   time.Duration
		want    string // the action and the sentence, then the warnings
	}{
		"no budget":             {records: one, want: "model 2"},
		"model calls left":      {budget: budget(messages.Caps{ModelCalls: 2}), records: one, want: "model 2"},
		"no model call left":    {budget: budget(messages.Caps{ModelCalls: 1}), records: one, want: "failed (budget) modelCalls: 1 of 1 used, and the next model call needs 1"},
		"the task has less":     {budget: budget(messages.Caps{ModelCalls: 9}), limits: messages.Limits{Caps: messages.Caps{ModelCalls: 1}}, records: one, want: "failed (budget) modelCalls: 1 of 1 used, and the next model call needs 1"},
		"the task wants more":   {budget: budget(messages.Caps{ModelCalls: 1}), limits: messages.Limits{Caps: messages.Caps{ModelCalls: 9}}, records: one, want: "failed (budget) modelCalls: 1 of 1 used, and the next model call needs 1"},
		"half of the calls":     {budget: soft(messages.Caps{ModelCalls: 2}), records: one, want: "model 2 +modelCalls 1/2"},
		"warned once":           {budget: soft(messages.Caps{ModelCalls: 2}), records: append(one[:4:4], &record.BudgetWarned{Limit: "modelCalls"}), want: "model 2"},
		"asks for a model call": {budget: asks(messages.Caps{ModelCalls: 1}), records: one, want: "park budget modelCalls: 1 of 1 used, and the next model call needs 1"},
		"granted":               {budget: asks(messages.Caps{ModelCalls: 1}), records: answered("modelCalls", " Continue\n", false), want: "model 2"},
		"granted without words": {budget: asks(messages.Caps{ModelCalls: 1}), records: answered("modelCalls", "", false), want: "model 2"},
		"another text":          {budget: asks(messages.Caps{ModelCalls: 1}), records: answered("modelCalls", "perhaps", false), want: "park budget modelCalls: 1 of 1 used, and the next model call needs 1"},
		"denied":                {budget: asks(messages.Caps{ModelCalls: 1}), records: answered("modelCalls", "", true), want: "failed (budget) modelCalls: all used; more was denied by ann"},
		"granted of another":    {budget: asks(messages.Caps{ModelCalls: 1}), records: answered("tokens", "continue", false), want: "park budget modelCalls: 1 of 1 used, and the next model call needs 1"},

		"tool calls left":     {budget: budget(messages.Caps{ToolCalls: 2}), records: wants, want: "tools"},
		"too many tool calls": {budget: budget(messages.Caps{ToolCalls: 1}), records: wants, want: "failed (budget) toolCalls: 0 of 1 used, and the tool calls of this step need 2"},
		"one has begun":       {budget: budget(messages.Caps{ToolCalls: 1}), records: began, want: "failed (budget) toolCalls: 1 of 1 used, and the tool calls of this step need 1"},
		"half of the tools":   {budget: soft(messages.Caps{ToolCalls: 2}), records: began, want: "tools +toolCalls 1/2"},
		"asks for tools":      {budget: asks(messages.Caps{ToolCalls: 1}), records: wants, want: "park budget toolCalls: 0 of 1 used, and the tool calls of this step need 2"},

		"tokens left":     {budget: budget(messages.Caps{Tokens: 10_000}), records: one, want: "model 2"},
		"too few tokens":  {budget: budget(messages.Caps{Tokens: 4_000}), records: one, want: "failed (budget) tokens: 100 of 4000 used, and the next model call may need"},
		"tokens at first": {budget: budget(messages.Caps{Tokens: 4_000}), want: "failed (budget) tokens: 0 of 4000 used, and the next model call may need 4098"},
		"half the tokens": {budget: soft(messages.Caps{Tokens: 10_000}), records: []record.Record{&record.StepStarted{Step: 1}, paid(1, 5_000, "a")}, want: "tools +tokens 5000/10000"},
		"asks for tokens": {budget: asks(messages.Caps{Tokens: 4_000}), records: one, want: "park budget tokens: 100 of 4000 used"},

		"money left":            {budget: budget(messages.Caps{Cost: new(0.02)}), records: one, want: "model 2"},
		"too little money":      {budget: budget(messages.Caps{Cost: new(0.019)}), records: one, want: "failed (budget) cost: $0.01 of $0.019 used, and the next model call may need $0.01"},
		"the task has no money": {budget: budget(messages.Caps{Cost: new(1.0)}), limits: messages.Limits{Caps: messages.Caps{Cost: new(0.0)}}, want: "failed (budget) cost: $0.00 of $0.00 used, and the next model call may need $0.01"},
		"half the money":        {budget: soft(messages.Caps{Cost: new(0.02)}), records: one, want: "model 2 +cost 0.01/0.02"},
		"asks for money":        {budget: asks(messages.Caps{Cost: new(0.01)}), records: one, want: "park budget cost: $0.01 of $0.01 used, and the next model call may need $0.01"},
		"money granted":         {budget: asks(messages.Caps{Cost: new(0.01)}), records: answered("cost", "continue", false), want: "model 2"},
		"an unknown price":      {budget: budget(messages.Caps{Cost: new(1.0)}), model: "mystery", want: `failed (budget) cost: the run may cost $1.00 at most, and the price of model "mystery" is unknown; add it to LONGSHORE_PRICES`},
		"no person to ask":      {budget: asks(messages.Caps{Cost: new(1.0)}), model: "mystery", want: `failed (budget) cost: the run may cost $1.00 at most, and the price of model "mystery" is unknown`},
		"an unpriced reply":     {budget: budget(messages.Caps{Cost: new(1.0)}), records: []record.Record{&record.StepStarted{Step: 1}, replied(1, messages.StopToolCalls, "", "a"), returned(1, "a", "A")}, want: "failed (budget) cost: the run may cost $1.00 at most, and the price of"},
		"unknown and allowed":   {budget: messages.Budget{Caps: messages.Caps{Cost: new(1.0)}, UnknownPrice: messages.UnknownPriceAllow}, model: "mystery", want: "model 1"},

		"time left":              {budget: budget(messages.Caps{WallTime: messages.Duration(time.Minute)}), records: one, after: 59 * time.Second, want: "model 2"},
		"time is over":           {budget: budget(messages.Caps{WallTime: messages.Duration(time.Minute)}), records: one, after: time.Minute, want: "failed (budget) wallTime: the run has taken the 1m0s that it may take"},
		"time never asks":        {budget: asks(messages.Caps{WallTime: messages.Duration(time.Minute)}), records: wants, after: time.Hour, want: "failed (budget) wallTime"},
		"half the time":          {budget: soft(messages.Caps{WallTime: messages.Duration(time.Minute)}), records: wants, after: 40 * time.Second, want: "tools +wallTime 40/60"},
		"the task has less time": {budget: budget(messages.Caps{WallTime: messages.Duration(time.Hour)}), limits: messages.Limits{Caps: messages.Caps{WallTime: messages.Duration(time.Second)}}, after: time.Second, want: "failed (budget) wallTime"},
		"an answer is kept":      {budget: budget(messages.Caps{ModelCalls: 1, WallTime: messages.Duration(time.Second)}), records: []record.Record{&record.StepStarted{Step: 1}, replied(1, messages.StopEnd, "done")}, after: time.Hour, want: "completed done"},
	} {
		t.Run(name, func(t *testing.T) {
			task := messages.Task{Input: messages.TextInput("hi"), Limits: &tc.limits}
			s := state(t, messages.Definition{Model: tc.model, Budget: &tc.budget}, task, tc.records...)
			s.StartedAt = begun
			before := encode(t, s)
			action, warned := within(s, agent.ToolCalling{}.Plan(s), begun.Add(tc.after), cent)
			got := said(action)
			for _, w := range warned {
				got = fmt.Sprintf("%s +%s %v/%v", got, w.Limit, w.Spent, w.Allowed)
			}
			if strings.HasPrefix(tc.want, "failed") || strings.HasPrefix(tc.want, "park") {
				got = got[:min(len(got), len(tc.want))] // sentences may continue
			}
			if got != tc.want {
				t.Errorf("action %q, want %q", got, tc.want)
			}
			if string(before) != string(encode(t, s)) {
				t.Error("the check changed the state")
			}
		})
	}
}

func said(a agent.Action) string {
	switch a := a.(type) {
	case *agent.Finish:
		if a.Err != nil {
			return describe(a) + " " + a.Err.Message
		}
	case *agent.Park:
		return "park " + a.Parked.Reason + " " + a.Parked.Question
	}
	return describe(a)
}

// The deadline of a task and the wall time of its agent: whichever is first ends the run, with its own code.
func TestEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		deadline time.Duration
		wall     time.Duration
		want     messages.Code
	}{
		"neither":         {},
		"a deadline":      {deadline: time.Minute, want: messages.CodeDeadline},
		"wall time":       {wall: time.Minute, want: messages.CodeBudget},
		"deadline first":  {deadline: time.Minute, wall: time.Hour, want: messages.CodeDeadline},
		"wall time first": {deadline: time.Hour, wall: time.Minute, want: messages.CodeBudget},
	} {
		t.Run(name, func(t *testing.T) {
			task := messages.Task{Input: messages.TextInput("hi")}
			if tc.deadline > 0 {
				task.Deadline = new(begun.Add(tc.deadline))
			}
			s := state(t, messages.Definition{Budget: &messages.Budget{Caps: messages.Caps{WallTime: messages.Duration(tc.wall)}}}, task)
			s.StartedAt = begun
			at, code, ok := s.Ends()
			if code != tc.want || ok != (tc.want != "") || ok && !at.Equal(begun.Add(time.Minute)) {
				t.Errorf("ends %v %s %v", at, code, ok)
			}
			action, _ := within(s, &agent.CallModel{Step: 1}, begun.Add(2*time.Minute), nil)
			if f, late := action.(*agent.Finish); late != ok || late && f.Err.Code != tc.want {
				t.Errorf("then: %s", said(action))
			}
		})
	}
}

// The last reply tells how many tokens a byte is.
func TestEstimateIsCalibrated(t *testing.T) {
	text := strings.Repeat("x", 40_000)
	s := state(t, messages.Definition{MaxTokens: 1, Budget: &messages.Budget{Caps: messages.Caps{Tokens: 1_000_000}}},
		messages.Task{Input: messages.TextInput(text)})
	need := func() (n int64) {
		s.Agent.Budget.Cost = new(1.0)
		within(s, &agent.CallModel{Messages: s.Transcript}, begun, func(_, _ string, u messages.Usage) (float64, bool) {
			n = u.Input
			return 0, true
		})
		return n
	}
	if n := need(); n < 10_000 || n > 10_010 {
		t.Errorf("at first %d tokens, want a quarter of the bytes", n)
	}
	for _, r := range []record.Record{&record.StepStarted{Step: 1}, paid(1, 20_000, "a"), returned(1, "a", text)} {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	if n := need(); n < 40_000 || n > 40_100 {
		t.Errorf("then %d tokens, want half of the bytes", n)
	}
}

// A cost is known only when that of every call is, and only one answer to a question counts.
func TestCostAndAnswersAreSummedOnce(t *testing.T) {
	s := state(t, messages.Definition{}, messages.Task{Input: messages.TextInput("hi")}, &record.StepStarted{Step: 1}, paid(1, 1, "a"))
	end := func() *float64 { return s.Conclude(messages.Ref{}, &agent.Finish{}, begun).CostEstimate }
	if c := end(); c == nil || *c != 0.01 {
		t.Errorf("cost %v", c)
	}
	for _, r := range append(ask(0, "tokens"), &record.Answered{}, &record.Answered{}) {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	if s.Extended["tokens"] != 1 {
		t.Errorf("granted %v", s.Extended)
	}
	if err := s.Advance(replied(2, messages.StopEnd, "x")); err != nil {
		t.Fatal(err)
	}
	if c := end(); c != nil {
		t.Errorf("cost %v, although a price is unknown", *c)
	}
}

package messages_test

import (
	"encoding/json"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// planStory is a run that plans: two steps at once, one of which fails; the model is too slow to say what then, and
// once more not there, and the plan continues, is changed and is summed up.
func planStory(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	first := started()
	first.Agent.Planner, first.Agent.Plan = messages.PlannerPlan, nil
	first.Task.Limits.MaxSteps = 5
	plan := &messages.Plan{Steps: []messages.PlanStep{
		{ID: "one", Description: "Read a.go.", Tool: "read_file", Args: []byte(`{"path":"a.go"}`)},
		{ID: "two", Description: "Read b.go.", Tool: "read_file", Args: []byte(`{"path":"b.go"}`), Critical: new(false)},
		{ID: "mail", Description: "Send it.", Tool: "send_mail", Args: []byte(`{"path":"${steps.one.output}"}`), DependsOn: []string{"one"}},
		{ID: "more", Description: "Send that too.", Tool: "send_mail", DependsOn: []string{"two"}},
	}}
	changed := *plan
	changed.Steps = append(changed.Steps[:4:4], messages.PlanStep{ID: "log", Description: "Look once more.", Tool: "read_file", DependsOn: []string{"mail"}})
	begin := func(step int, id string) *record.StepStarted { return &record.StepStarted{Step: step, StepID: id} }
	end := func(step int, id string, status messages.StepStatus, reason string) *record.StepEnded {
		return &record.StepEnded{Step: step, StepID: id, Status: status, Reason: reason}
	}
	ask := func(step int, why messages.Purpose) *record.StepStarted {
		return &record.StepStarted{Step: step, Purpose: why}
	}
	begun := func(step int, id, tool, args string) *record.ToolStarted {
		return &record.ToolStarted{Step: step, StepID: id, Call: call(id, tool, args)}
	}
	result := func(step int, id, tool, text string, code messages.Code) *record.ToolReturned {
		r := returned(step, call(id, tool, ""), text, code)
		r.StepID = id
		return r
	}
	away := messages.RunError{Code: messages.CodeModelTimeout, Message: "model: timeout"}

	s.add(first, claimed("k1", "w1", 7), ask(1, messages.PurposePlan))
	s.add(replied(1, planText(t, plan)), &record.Planned{Step: 1, Decision: record.DecisionReady, Plan: plan},
		stepEnded(1, messages.StepCompleted), begin(2, "one"), begin(2, "two"),
		begun(2, "one", "read_file", `{"path":"a.go"}`), begun(2, "two", "read_file", `{"path":"b.go"}`))
	s.add(result(2, "two", "read_file", "b.go: does not exist", messages.CodeToolFailed),
		end(2, "two", messages.StepFailed, "b.go: does not exist"))
	s.add(result(2, "one", "read_file", "package a", ""), end(2, "one", messages.StepCompleted, ""), ask(2, messages.PurposeObserve))
	s.add(&record.ModelFailed{Step: 2, Error: away, Fallback: record.FallbackContinue},
		&record.Planned{Step: 2, Decision: record.DecisionContinue, Fallback: true, Reason: "the model did not answer in time; the plan is kept"},
		end(2, "more", messages.StepSkipped, `it depends on "two", which failed`), stepEnded(2, messages.StepCompleted),
		begin(3, "mail"), begun(3, "mail", "send_mail", `{"path":"package a"}`))
	sent := result(3, "mail", "send_mail", "sent", "")
	sent.Files = []string{"outbox/1.txt"}
	s.add(sent, end(3, "mail", messages.StepCompleted, ""), ask(3, messages.PurposeObserve))
	until := noon
	park := s.add(&record.ModelFailed{Step: 3, Error: away, Fallback: record.FallbackPark}, &record.Parked{Reason: "model", Until: &until})
	s.add(&record.Expired{Park: park})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 90, Resumes: "model"})
	s.add(replied(3, `{"decision":"adapt","reasoning":"look once more",`+
		`"insert":[{"id":"log","description":"Look once more.","tool":"read_file","dependsOn":["mail"]}]}`), &record.Planned{Step: 3, Decision: record.DecisionAdapt, Reason: "look once more", Plan: &changed},
		stepEnded(3, messages.StepCompleted), begin(4, "log"), begun(4, "log", "read_file", "{}"))
	s.add(result(4, "log", "read_file", "fine", ""), end(4, "log", messages.StepCompleted, ""), ask(4, messages.PurposeObserve))
	s.add(replied(4, `{"decision":"complete"}`), &record.Planned{Step: 4, Decision: record.DecisionComplete},
		stepEnded(4, messages.StepCompleted), ask(5, messages.PurposeSummary))
	f := finished(5, "a.go was mailed.", nil)
	f.Result.Summary, f.Result.Outputs, f.Result.Logs = "a.go was mailed.", []string{"outbox/1.txt"}, ref.LogSubject()
	s.add(replied(5, "a.go was mailed."), stepEnded(5, messages.StepCompleted), f)
	return s.entries
}

func planText(t *testing.T, plan *messages.Plan) string {
	t.Helper()
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

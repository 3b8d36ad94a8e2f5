package messages_test

import (
	"encoding/json"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// startedWith is the first record of a run of an agent with the settings of the loop.
func startedWith(change func(d *messages.Definition)) *record.Started {
	s := started()
	s.Agent.OnInvalidOutput, s.Agent.OnTruncated = messages.OnErrorModel, messages.TruncatedFail
	s.Agent.Parallel, s.Agent.RepeatLimit, s.Task.Limits = 8, new(3), nil
	change(&s.Agent)
	return s
}

// protocol is a run of the planner "json": a reply of another form, an unknown tool, a call, an answer that does not
// fit the output schema and one that does.
func protocol(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	s.add(startedWith(func(d *messages.Definition) {
		d.Planner, d.MaxSteps = messages.PlannerJSON, 6
		d.OutputSchema = json.RawMessage(`{"type":"object","required":["n"]}`)
		d.Prompts = map[string]string{messages.PromptProtocol: "Reply in JSON. " + messages.PlaceTools}
	}), claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	s.add(replied(1, "I shall read a.go."), stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, `{"type":"tool","name":"rm","args":{}}`))
	s.add(returned(2, call("json-2", "rm", `{}`), `Tool "rm" not found. Allowed tools: read_file, send_mail`, messages.CodeInvalidInput),
		stepEnded(2, messages.StepCompleted), stepStarted(3))
	read := call("json-3", "read_file", `{"path":"a.go"}`)
	s.add(replied(3, ` {"type":"tool","name":"read_file","args":{"path":"a.go"}} `), &record.ToolStarted{Step: 3, Call: read})
	s.add(returned(3, read, "package a", ""), stepEnded(3, messages.StepCompleted), stepStarted(4))
	s.add(replied(4, `{"type":"final","content":"one"}`), stepEnded(4, messages.StepCompleted), stepStarted(5))
	s.add(replied(5, `{"type":"final","content":{"n":1}}`), stepEnded(5, messages.StepCompleted), finished(5, `{"n":1}`, nil))
	return s.entries
}

// limits is a native run with a reply that is cut within a call and continues, an image, and a call that is repeated
// until it ends the run; what the model thought is kept.
func limits(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	s.add(startedWith(func(d *messages.Definition) {
		d.OnTruncated, d.Reasoning, d.RepeatLimit, d.Parallel = messages.TruncatedContinue, messages.ReasoningKeep, new(1), 1
	}), claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	read := call("c1", "read_file", `{"path":"a.png"}`)
	cut := replied(1, "Let me ", call("c1", "read_file", `{"pa`))
	cut.Stop = messages.StopLength
	s.add(cut, stepEnded(1, messages.StepCompleted), stepStarted(2))
	for step := 2; step <= 3; step++ {
		thought := replied(step, "", read)
		thought.Message.Content = append([]messages.Block{
			{Reasoning: &messages.Reasoning{Family: "scripted", Text: "A picture?", Signature: "s"}},
		}, thought.Message.Content...)
		s.add(thought, &record.ToolStarted{Step: step, Call: read})
		seen := returned(step, read, "A picture: ", "")
		seen.Result.Content = append(seen.Result.Content, messages.Block{
			Image: &messages.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")},
		})
		if step == 2 {
			s.add(seen, stepEnded(step, messages.StepCompleted), stepStarted(step+1))
			continue
		}
		s.add(seen, stepEnded(step, messages.StepFailed), finished(step, "", &messages.RunError{
			Code:    messages.CodeMaxSteps,
			Message: "the model goes in circles: 2 times in a row the same call of read_file with the same result (repeatLimit is 1)",
		}))
	}
	return s.entries
}

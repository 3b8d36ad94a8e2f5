package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Conclude is the result of a run that ends now with f.
func (s *State) Conclude(run messages.Ref, f *Finish, now time.Time) messages.AgentResult {
	r := messages.AgentResult{
		ID: run.Run, Success: f.Status == messages.StatusCompleted, Status: f.Status, Error: s.informed(f.Err),
		StartedAt: s.StartedAt, FinishedAt: now, SessionID: s.Task.Session, Steps: s.Step,
		Actions: s.actions(), ModelCalls: slices.Clone(s.ModelCalls), TokenUsage: s.Usage, CostEstimate: s.costEstimate(), EventStream: run.EventFilter(),
		Provenance: s.provenance(),
		Summary:    f.Summary, Outputs: s.Outputs, Logs: run.LogSubject(),
		MemoryDeltas: s.MemoryDeltas,
		Aborted:      f.Status == messages.StatusCancelled,
		RetryInfo:    s.retryInfo(), Diagnostics: s.diagnostics(run),
		Metrics: &messages.Metrics{DurationMs: now.Sub(s.StartedAt).Milliseconds()},
		Seed:    s.Task.Seed, Deterministic: s.deterministic(),
	}
	if s.Delegations > 0 {
		r.Below = new(s.Below)
	}
	if r.Success {
		r.Result = f.Result
		if len(s.OutputSchema()) > 0 {
			r.Output = value(f.Result)
		}
	}
	if r.SessionID == "" {
		r.SessionID = run.Run
	}
	for _, a := range r.Actions {
		if a.Type != messages.ActionTool {
			continue
		}
		if r.Metrics.ToolLatencyMs == nil {
			r.Metrics.ToolLatencyMs = map[string]int64{}
		}
		r.Metrics.ToolLatencyMs[a.Name] += a.Millis
	}
	r.Attachments = s.attachments(run)
	if f := s.Files; f != nil && f.Manifest != "" {
		r.Files = &messages.ResultFiles{Step: f.Step, Manifest: f.Manifest, Count: f.Files, Bytes: f.Bytes, LeftOut: f.LeftOut}
	}
	r.Summarise()
	s.bound(&r)
	return r
}

// value is an answer as JSON without spacing; nil when it is none.
func value(answer string) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, []byte(answer)) != nil {
		return nil
	}
	return out.Bytes()
}

// provenance says what made the result.
func (s *State) provenance() *messages.Provenance {
	p := &messages.Provenance{Agent: s.Agent.Name, Revision: s.Agent.Revision, Memories: s.memoriesUsed()}
	if s.Agent.Planner != messages.PlannerTools {
		p.Planner = s.Agent.Planner
	}
	if used := s.Agent.Prompt; used != nil {
		p.Prompts = []messages.PromptUsed{{ID: used.ID, Version: used.Version}}
	}
	for i := range s.ModelCalls {
		c := &s.ModelCalls[i]
		if c.Model == "" && c.Provider == "" {
			continue
		}
		name := path.Join(c.Provider, c.Model)
		if len(p.Models) < maxModelsUsed && !slices.Contains(p.Models, name) {
			p.Models = append(p.Models, name)
		}
	}
	return p
}

// scripted is the provider of replies that are played.
const scripted = "scripted"

// deterministic reports whether the run would go the same way again: nothing in it was drawn, by us or by a model.
func (s *State) deterministic() bool {
	return s.Task.Seed != nil && !slices.ContainsFunc(s.ModelCalls, func(c messages.ModelCall) bool {
		return !c.Cached && c.Provider != scripted
	})
}

// attachments are the places of the files that the run wrote, as many as fit.
func (s *State) attachments(run messages.Ref) map[string]string {
	folder := run.Folder()
	var out map[string]string
	room := maxAttached
	for _, file := range s.Outputs {
		if room -= 2*len(file) + len(folder); room < 0 {
			break
		}
		if out == nil {
			out = map[string]string{}
		}
		out[file] = folder + "/" + file
	}
	return out
}

// actions lists the calls that have a result, in the model's order, and the decisions about a plan.
func (s *State) actions() []messages.ActionResult {
	var out []messages.ActionResult
	facts := s.factsOfCalls()
	step := 0
	var calls []messages.ToolCall
	for i := range s.Transcript {
		m := &s.Transcript[i]
		switch m.Role {
		case messages.RoleAssistant:
			step++
			calls = m.Calls()
		case messages.RoleTool:
			for j, b := range m.Content {
				out = append(out, facts.of(step, calls[j], b.ToolResult))
			}
		case messages.RoleSystem, messages.RoleUser:
		}
	}
	if s.Plan != nil {
		out = append(out, s.planActions(&facts)...)
	}
	for _, c := range s.Open { // of a step that was cut short
		if c.Result != nil {
			out = append(out, facts.of(step, c.Call, c.Result))
		}
	}
	return out
}

// planActions are the decisions about a plan and the calls of its steps, as they came.
func (s *State) planActions(facts *callFacts) []messages.ActionResult {
	var out []messages.ActionResult
	made := s.Plan.Made
	for i := 0; i <= len(s.Plan.Calls); i++ {
		for len(made) > 0 && made[0].After <= i {
			a := made[0]
			made = made[1:]
			out = append(out, messages.ActionResult{
				Step: a.Step, Type: messages.ActionPlanner, CallID: a.ID, Name: a.Name, Input: a.Plan, Output: a.Reason,
				OK: a.Name != string(record.DecisionAbort),
			})
		}
		if i < len(s.Plan.Calls) {
			c := &s.Plan.Calls[i]
			out = append(out, facts.of(c.Step, c.Call, &c.Result))
		}
	}
	return out
}

// callFacts are what a state knows of calls, by CallKey.
type callFacts struct {
	edited map[string]string
	codes  map[string]messages.Code
	millis map[string]int64
	meta   map[string]json.RawMessage
}

func (s *State) factsOfCalls() callFacts {
	return callFacts{s.Edited.all(), s.Codes.all(), s.ToolMillis.all(), s.Meta.all()}
}

// of is the action of a call that has a result.
func (a *callFacts) of(step int, c messages.ToolCall, r *messages.ToolResult) messages.ActionResult {
	key := CallKey(step, c.ID)
	return messages.ActionResult{
		Step: step, Type: messages.ActionTool, CallID: c.ID, Name: c.Name, Input: cmp.Or(a.edited[key], c.Arguments),
		Output: r.Shown(), OK: !r.IsError, Code: a.codes[key], Millis: a.millis[key], Meta: a.meta[key],
	}
}

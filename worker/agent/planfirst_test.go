package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// play works a plan as a runner would, without one. The model says replies in turn: a text, or an error written as
// "!code" or "!network". Tools answer with answers by call id; "!text" is a failure, "?text" a refused approval.
type play struct {
	def     messages.Definition
	task    messages.Task
	replies []string
	answers map[string]string
	told    map[int]string // by the number of the model call during which it is sent

	prompts []string // of the calls made, the last message of each
	trace   []string
	end     *agent.Finish
}

func (p *play) run(t *testing.T) []string {
	t.Helper()
	p.def.Planner = messages.PlannerPlan
	p.def.SetDefaults()
	if p.task.Input == nil {
		p.task.Input = messages.TextInput("the goal")
	}
	started := &record.Started{Task: p.task, Agent: p.def}
	for _, name := range p.def.Tools {
		started.Tools = append(started.Tools, messages.ToolSpec{Name: name, Description: "Tool " + name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	s := &agent.State{}
	add := func(r record.Record) {
		t.Helper()
		b, err := record.EncodeRecords([]record.Record{r})
		if err != nil {
			t.Fatal(err)
		}
		back, err := record.DecodeRecords(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Advance(back[0]); err != nil {
			t.Fatal(err)
		}
		if s, err = agent.Decode(encode(t, s)); err != nil { // any step may be taken by another worker
			t.Fatal(err)
		}
		p.note(r)
	}
	add(started)
	add(&record.Claimed{Claim: "c"})
	for range 400 {
		before := encode(t, s)
		action, _ := within(s, agent.Planners()[messages.PlannerPlan].Plan(s), time.Time{}, nil)
		if diff := cmp.Diff(string(before), string(encode(t, s))); diff != "" {
			t.Fatalf("planning changed the state: %s", diff)
		}
		switch a := action.(type) {
		case *agent.Finish:
			for _, r := range a.Before {
				add(r)
			}
			p.end = a
			p.trace = append(p.trace, strings.TrimSpace(fmt.Sprint(a.Status, " ", code(a.Err))))
			return p.trace
		case *agent.Decide:
			for _, r := range a.Records {
				add(r)
			}
		case *agent.Park:
			add(&a.Parked)
			add(&record.Claimed{Claim: "c", Resumes: a.Parked.Reason})
		case *agent.CallTools:
			for _, c := range s.Open {
				r := &record.ToolReturned{Step: s.Step, Name: c.Call.Name, StepID: c.Call.ID, Result: messages.ToolResult{CallID: c.Call.ID}}
				text, known := p.answers[c.Call.ID]
				if !known {
					text = c.Call.Name + " " + c.Call.Arguments
				}
				switch {
				case strings.HasPrefix(text, "!"):
					r.Result.IsError, r.Code, text = true, messages.CodeToolFailed, text[1:]
				case strings.HasPrefix(text, "?"):
					r.Result.IsError, r.Code, text = true, messages.CodeApprovalDenied, text[1:]
				}
				r.Result.Content = messages.TextContent(text)
				add(r)
			}
		case *agent.CallModel:
			if !s.Calling {
				if s.StepOpen {
					add(&record.StepEnded{Step: s.Step, Status: messages.StepCompleted})
				}
				add(&record.StepStarted{Step: a.Step, Purpose: a.Purpose})
				continue
			}
			p.prompts = append(p.prompts, a.Messages[len(a.Messages)-1].Text())
			if len(p.replies) == 0 {
				t.Fatalf("the model is asked once more: %s", p.prompts[len(p.prompts)-1])
			}
			if said := p.told[len(p.prompts)]; said != "" {
				add(&record.Steered{ID: "x", Message: said})
			}
			text := p.replies[0]
			p.replies = p.replies[1:]
			if why, failed := strings.CutPrefix(text, "!"); failed {
				code := messages.Code(why)
				if why == "network" {
					code = messages.CodeModelTimeout
				}
				add(&record.ModelFailed{
					Step: a.Step, Error: messages.RunError{Code: code}, Fallback: agent.Fallback(s, code, why == "network"),
				})
				continue
			}
			stop := messages.StopEnd
			if text == "(cut)" {
				stop = messages.StopLength
			}
			add(&record.ModelReplied{Step: a.Step, Stop: stop, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(text)}})
		default:
			t.Fatalf("unknown action %T", a)
		}
	}
	t.Fatalf("the run does not end: %v", p.trace)
	return nil
}

func code(e *messages.RunError) messages.Code {
	if e == nil {
		return ""
	}
	return e.Code
}

// note keeps what a watcher would see.
func (p *play) note(r record.Record) {
	switch r := r.(type) {
	case *record.StepStarted:
		if r.StepID != "" {
			p.trace = append(p.trace, "+"+r.StepID)
		} else {
			p.trace = append(p.trace, string(r.Purpose))
		}
	case *record.StepEnded:
		if r.StepID != "" {
			p.trace = append(p.trace, map[messages.StepStatus]string{"completed": "-", "failed": "!", "skipped": "~"}[r.Status]+r.StepID)
		}
	case *record.ModelFailed:
		p.trace = append(p.trace, "error:"+r.Fallback)
	case *record.Planned:
		word := string(r.Decision)
		if r.Fallback {
			word += "(fallback)"
		}
		p.trace = append(p.trace, word)
	case *record.Parked:
		p.trace = append(p.trace, "parked:"+r.Reason)
	}
}

// Plans by their steps: "a", "b<a" waits for a, "b?" is not critical.
func planJSON(specs ...string) string {
	b, err := json.Marshal(planOf(specs...))
	if err != nil {
		panic(err)
	}
	return string(b)
}

func planOf(specs ...string) *messages.Plan {
	p := &messages.Plan{}
	for _, spec := range specs {
		id, after, waits := strings.Cut(spec, "<")
		id, easy := strings.CutSuffix(id, "?")
		s := messages.PlanStep{ID: id, Description: "Do " + id + ".", Tool: "t"}
		if easy {
			s.Critical = new(false)
		}
		if waits {
			s.DependsOn = strings.Split(after, ",")
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

const (
	proceed = `{"decision":"continue","reasoning":"fine"}`
	timeout = "!model_timeout"
	network = "!network"
)

func adapt(insert *messages.Plan, skip ...string) string {
	d := map[string]any{"decision": "adapt", "reasoning": "better so"}
	if insert != nil {
		d["insert"] = insert.Steps
	}
	if skip != nil {
		d["skip"] = skip
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestPlanFirst(t *testing.T) {
	type task = messages.Task
	type def = messages.Definition
	given := func(specs ...string) task { return task{Plan: planOf(specs...)} }
	for name, tc := range map[string]struct {
		def     def
		task    task
		replies []string
		answers map[string]string
		want    string
	}{
		"a plan is made, worked, observed and summed up": {
			replies: []string{planJSON("a", "b<a"), proceed, proceed, "All done."},
			want:    "plan ready +a -a observe continue +b -b observe continue summary completed",
		},
		"steps that wait for nothing begin together": {
			task: given("a", "b", "c<a,b"), want: "ready +a +b -a -b +c -c completed",
		},
		"a given plan needs no model": {task: given("a"), want: "ready +a -a completed"},
		"the agent's plan is a given one": {
			def: def{Plan: planOf("x")}, want: "ready +x -x completed",
		},
		"the task's plan goes before the agent's": {
			def: def{Plan: planOf("x")}, task: given("a"), want: "ready +a -a completed",
		},
		"a given plan may be observed": {
			def: def{Observe: messages.ObserveAlways}, task: given("a"), replies: []string{proceed, "Done."},
			want: "ready +a -a observe continue summary completed",
		},
		"observed on failure only: none": {
			def: def{Observe: messages.ObserveOnFailure}, replies: []string{planJSON("a", "b<a"), "Done."},
			want: "plan ready +a -a +b -b summary completed",
		},
		"observed on failure only: one": {
			def: def{Observe: messages.ObserveOnFailure}, replies: []string{planJSON("a?", "b"), proceed, "Done."},
			answers: map[string]string{"a": "!no"}, want: "plan ready +a +b !a -b observe continue summary completed",
		},
		"never observed": {
			def: def{Observe: messages.ObserveNever}, replies: []string{planJSON("a", "b<a"), "Done."},
			want: "plan ready +a -a +b -b summary completed",
		},
		"a given plan with an unknown tool": {
			def: def{Tools: []string{"u"}}, task: given("a"), want: "failed invalid_input",
		},

		"adapt inserts": {
			replies: []string{planJSON("a"), adapt(planOf("b<a", "c<b")), proceed, proceed, "Done."},
			want:    "plan ready +a -a observe adapt +b -b observe continue +c -c observe continue summary completed",
		},
		"adapt skips, and what depends on it": {
			replies: []string{planJSON("a", "b<a", "c<b", "d<a"), adapt(nil, "b"), proceed, "Done."},
			want:    "plan ready +a -a observe adapt ~b ~c +d -d observe continue summary completed",
		},
		"adapt replaces a step to come": {
			replies: []string{planJSON("a", "b<a"), adapt(planOf("b", "c<b")), proceed, proceed, "Done."},
			want:    "plan ready +a -a observe adapt +b -b observe continue +c -c observe continue summary completed",
		},
		"complete leaves the rest": {
			replies: []string{planJSON("a", "b<a", "c<b"), `{"decision":"complete"}`, "Done."},
			want:    "plan ready +a -a observe complete ~b ~c summary completed",
		},
		"abort": {
			replies: []string{planJSON("a", "b<a"), `{"decision":"abort","reasoning":"no way"}`},
			want:    "plan ready +a -a observe abort ~b failed tool_failed",
		},

		"a budget ends it": {
			def:  def{Budget: &messages.Budget{Caps: messages.Caps{ToolCalls: 1}}},
			task: given("a", "b", "c<a"), want: "ready +a +b ~a ~b ~c failed budget",
		},
		"a critical step fails": {
			task: given("a", "b<a"), answers: map[string]string{"a": "!no"}, want: "ready +a !a ~b failed tool_failed",
		},
		"a critical step fails and the model would continue": {
			replies: []string{planJSON("a", "b"), proceed}, answers: map[string]string{"a": "!no"},
			want: "plan ready +a +b !a -b observe continue failed tool_failed",
		},
		"a critical step fails and the plan is adapted": {
			replies: []string{planJSON("a", "b<a"), adapt(planOf("c")), proceed, "Done."}, answers: map[string]string{"a": "!no"},
			want: "plan ready +a !a observe adapt ~b +c -c observe continue summary completed",
		},
		"a failed step is replaced under its id, and what depends on it continues": {
			replies: []string{planJSON("a?", "b<a"), adapt(planOf("a?<x", "x")), proceed, proceed, "Done."},
			answers: map[string]string{"a": "!no"},
			want:    "plan ready +a !a observe adapt +x -x observe continue +a !a observe continue ~b summary completed",
		},
		"a critical step fails and the goal is achieved": {
			replies: []string{planJSON("a", "b<a"), `{"decision":"complete"}`, "Done."}, answers: map[string]string{"a": "!no"},
			want: "plan ready +a !a observe complete ~b summary completed",
		},
		"a step that is not critical fails": {
			task: given("a?", "b<a", "c<b", "d"), answers: map[string]string{"a": "!no"}, want: "ready +a +d !a -d ~b ~c completed",
		},
		"a refused approval skips the step, critical or not": {
			task: given("a", "b<a", "c"), answers: map[string]string{"a": "?User denied approval"},
			want: "ready +a +c ~a -c ~b completed",
		},
		"a failed tool ends the run when the agent says so": {
			def: def{OnToolError: messages.OnErrorFail}, task: given("a?", "b<a"), answers: map[string]string{"a": "!no"},
			want: "ready +a !a ~b failed tool_failed",
		},

		"an invalid plan is corrected": {
			replies: []string{"Sure! {}", planJSON("a"), proceed, "Done."}, want: "plan plan ready +a -a observe continue summary completed",
		},
		"a plan is invalid twice": {
			replies: []string{"Sure!", planJSON("a<a")}, want: "plan plan failed model_invalid_output",
		},
		"a plan that was cut is corrected": {
			replies: []string{"(cut)", planJSON("a"), proceed, "Done."}, want: "plan plan ready +a -a observe continue summary completed",
		},
		"an invalid plan ends the run when the agent says so": {
			def: def{OnInvalidOutput: messages.OnErrorFail}, replies: []string{"Sure!"}, want: "plan failed model_invalid_output",
		},
		"an unknown tool is an invalid plan": {
			def: def{Tools: []string{"u"}, OnInvalidOutput: messages.OnErrorFail}, replies: []string{planJSON("a")},
			want: "plan failed model_invalid_output",
		},
		"an invalid decision is corrected": {
			replies: []string{planJSON("a"), "continue", proceed, "Done."}, want: "plan ready +a -a observe observe continue summary completed",
		},
		"a decision is invalid twice": {
			replies: []string{planJSON("a"), "continue", adapt(planOf("a"))}, want: "plan ready +a -a observe observe failed model_invalid_output",
		},
		"each observation may be wrong once": {
			replies: []string{planJSON("a", "b<a"), "?", proceed, "?", proceed, "Done."},
			want:    "plan ready +a -a observe observe continue +b -b observe observe continue summary completed",
		},

		"no plan in time": {replies: []string{timeout}, want: "plan error: failed model_timeout"},
		"no decision in time: the plan is kept": {
			replies: []string{planJSON("a", "b<a"), timeout, proceed, "Done."},
			want:    "plan ready +a -a observe error:continue continue(fallback) +b -b observe continue summary completed",
		},
		"no decision in time about a critical failure": {
			replies: []string{planJSON("a"), timeout}, answers: map[string]string{"a": "!no"},
			want: "plan ready +a !a observe error:continue continue(fallback) failed tool_failed",
		},
		"no summary in time: results are joined": {
			replies: []string{planJSON("a"), proceed, timeout}, want: "plan ready +a -a observe continue summary error:continue completed",
		},
		"an empty summary: results are joined": {
			replies: []string{planJSON("a"), proceed, ""}, want: "plan ready +a -a observe continue summary completed",
		},
		"any other error of the model ends the run": {
			replies: []string{planJSON("a", "b<a"), "!model_auth"}, want: "plan ready +a -a observe error: ~b failed model_auth",
		},
		"network: park": {
			replies: []string{network, planJSON("a"), network, network, proceed, "Done."},
			want: "plan error:park parked:model ready +a -a observe error:park parked:model error:park parked:model " +
				"continue summary completed",
		},
		"network: retry": {
			def: def{OnNetworkError: messages.NetworkRetry}, replies: []string{planJSON("a"), network, network, network, proceed, "Done."},
			want: "plan ready +a -a observe error:retry error:retry error:retry continue summary completed",
		},
		"network: retried in vain": {
			def: def{OnNetworkError: messages.NetworkRetry}, replies: []string{planJSON("a"), network, network, network, network},
			want: "plan ready +a -a observe error:retry error:retry error:retry error: failed model_timeout",
		},
		"network: abort": {
			def: def{OnNetworkError: messages.NetworkAbort}, replies: []string{planJSON("a", "b<a"), network},
			want: "plan ready +a -a observe error: ~b failed model_timeout",
		},
		"network: parked in vain": {
			replies: append([]string{planJSON("a")}, strings.Split(strings.Repeat(network+" ", 11), " ")[:11]...),
			want:    "plan ready +a -a observe" + strings.Repeat(" error:park parked:model", 10) + " error: failed model_timeout",
		},

		"the limit of steps": {
			def: def{MaxSteps: 2}, task: given("a", "b<a", "c<b"), want: "ready +a -a +b -b ~c failed max_steps",
		},
		"the limit counts the summary": {
			def: def{MaxSteps: 3}, replies: []string{planJSON("a", "b<a"), proceed}, want: "plan ready +a -a observe continue ~b failed max_steps",
		},
		"just within the limit": {
			def: def{MaxSteps: 3}, replies: []string{planJSON("a"), proceed, "Done."}, want: "plan ready +a -a observe continue summary completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &play{def: tc.def, task: tc.task, replies: tc.replies, answers: tc.answers}
			if p.def.Tools == nil {
				p.def.Tools = []string{"t"}
			}
			if diff := cmp.Diff(strings.Fields(tc.want), strings.Fields(strings.Join(p.run(t), " "))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(p.replies) > 0 {
				t.Errorf("the model was not asked for %q", p.replies)
			}
		})
	}
}

// References carry outputs on, as text, also over a step in between.
func TestPlanReferences(t *testing.T) {
	plan := planOf("a", "b<a", "c<b")
	plan.Steps[1].Args = json.RawMessage(`{"x":"<${steps.a.output}>"}`)
	plan.Steps[2].Args = json.RawMessage(`{"x":["${steps.a.output}","${steps.b.output}"]}`)
	p := &play{def: messages.Definition{Tools: []string{"t"}}, task: messages.Task{Plan: plan}, answers: map[string]string{"a": "\"A\" ${steps.c.output}"}}
	p.run(t)
	want := `t {"x":["\"A\" ${steps.c.output}","t {\"x\":\"<\\\"A\\\" ${steps.c.output}>\"}"]}`
	if diff := cmp.Diff(want, p.end.Result); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "3 of 3 steps completed.\n- a (completed, critical): Do a.\n- b (completed, critical): Do b.\n- c (completed, critical): Do c."; want != p.end.Summary {
		t.Errorf("summary: %s", p.end.Summary)
	}
}

// Outputs that are too large for the arguments of another call fail that step.
func TestPlanArgumentsAreBounded(t *testing.T) {
	plan := planOf("a", "b?<a", "c<b", "d<a")
	plan.Steps[1].Args = json.RawMessage(`{"x":"` + strings.Repeat("${steps.a.output}", 300) + `"}`)
	p := &play{
		def: messages.Definition{Tools: []string{"t"}, Observe: messages.ObserveOnFailure}, task: messages.Task{Plan: plan},
		answers: map[string]string{"a": strings.Repeat("x", 4<<10)}, replies: []string{proceed, "Done."},
	}
	if diff := cmp.Diff("ready +a -a !b +d -d observe continue ~c summary completed", strings.Join(p.run(t), " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the model is told: the task, the tools, what is wrong, what has come of the steps.
func TestPlanPrompts(t *testing.T) {
	p := &play{
		def: messages.Definition{Tools: []string{"t"}, Prompts: map[string]string{
			"summary": "Sum up {task.description} in Latin:\n{results}",
		}},
		task:    messages.Task{Input: messages.TextInput("the goal {plan}"), Context: json.RawMessage(`{"k":1}`)},
		replies: []string{planJSON("a<z"), planJSON("a", "b?"), "hm", proceed, "Factum est."},
		answers: map[string]string{"a": "A {results}", "b": "!B"},
	}
	p.run(t)
	for i, wants := range [][]string{
		{"The user wants: the goal {plan}\n\nContext, as JSON:\n{\"k\":1}\n", `{"name":"t","description":"Tool t"`, "${steps.ID.output}", "Request approval"},
		{`This is not a valid plan: steps[0].dependsOn[0]: no step has the id "z".`},
		{
			"- a (completed, critical): Do a.\n- b (failed): Do b. [B]\n", "Previous step: Do a.; Do b.",
			"a (completed): A {results}\nb (failed): B\n", `"decision": "continue"`,
		},
		{"This is not a valid decision: body: not valid JSON at byte 0."},
		{"Sum up the goal {plan}\n\nContext, as JSON:\n{\"k\":1} in Latin:\na (completed): A {results}\nb (failed): B\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(p.prompts[i], want) {
				t.Errorf("call %d lacks %q:\n%s", i, want, p.prompts[i])
			}
		}
	}
	if p.end.Result != "Factum est." || p.end.Summary != "Factum est." {
		t.Errorf("result %q, summary %q", p.end.Result, p.end.Summary)
	}
}

// Decisions that are refused, with the words that the model is told.
func TestPlanDecisionsRefused(t *testing.T) {
	for reply, want := range map[string]string{
		``:                                  `body: is empty`,
		`{}`:                                `decision: must be continue, adapt, complete or abort`,
		`{"decision":"ready"}`:              `decision: must be continue, adapt, complete or abort`,
		`{"decision":"adapt"}`:              `decision: adapt needs insert or skip`,
		`{"decision":"go","why":1}`:         `why: unknown field`,
		`{"decision":1}`:                    `decision: must be a string, not a number`,
		"```json\n" + proceed + "\n```":     "body: not valid JSON at byte 0",
		proceed + proceed:                   `body: unexpected data after the value at byte 42`,
		adapt(planOf("a")):                  `insert[0].id: "a" has completed; take another id`,
		adapt(planOf("x", "x")):             `insert[1].id: "x" is inserted twice`,
		adapt(planOf("x<y")):                `the changed plan: steps[2].dependsOn[0]: no step has the id "y"`,
		adapt(planOf("b<c", "c<b")):         `the changed plan: steps[1].dependsOn: the steps wait for each other: b -> c -> b`,
		adapt(nil, "y"):                     `skip[0]: no step has the id "y"`,
		adapt(nil, "a"):                     `skip[0]: "a" has ended already`,
		adapt(nil, "b", "b"):                `skip[1]: "b" is named twice`,
		adapt(planOf("x"), "x"):             `skip[0]: "x" is inserted too`,
		`{"decision":"abort","skip":["b"]}`: `decision: insert and skip are for adapt, not for abort`,
		`{"decision":"adapt","insert":[{"id":"x","description":"x","tool":"u"}]}`: `the changed plan: steps[2].tool: Tool "u" not found. Allowed tools: t`,
	} {
		p := &play{
			def: messages.Definition{Tools: []string{"t"}, OnInvalidOutput: messages.OnErrorFail}, replies: []string{planJSON("a", "b<a"), reply},
		}
		p.run(t)
		if got := p.end.Err.Message; got != "Invalid observe: "+want {
			t.Errorf("%s:\n got %s\nwant Invalid observe: %s", reply, got, want)
		}
	}
}

// A plan may ask for an approval of a step; its call is marked.
func TestPlanMarksCallsThatNeedApproval(t *testing.T) {
	plan := planOf("a", "b", "c")
	plan.RequiredApprovals = []string{"a"}
	plan.Steps[1].RequiredApprovals = []string{"ann"}
	s := state(t, messages.Definition{Planner: messages.PlannerPlan}, messages.Task{Input: messages.TextInput("hi")},
		&record.Planned{Decision: record.DecisionReady, Plan: plan},
		&record.StepStarted{Step: 1, StepID: "a"}, &record.StepStarted{Step: 1, StepID: "b"}, &record.StepStarted{Step: 1, StepID: "c"})
	var got []bool
	for _, c := range s.Open {
		got = append(got, c.Approve)
	}
	if diff := cmp.Diff([]bool{true, true, false}, got); diff != "" {
		t.Error(diff)
	}
}

// A log that does not fit its plan is broken; it is never a panic.
func TestPlanRecordsOutOfPlace(t *testing.T) {
	for name, r := range map[string]record.Record{
		"a step without a plan":   &record.StepStarted{Step: 1, StepID: "a"},
		"an end without a plan":   &record.StepEnded{Step: 1, StepID: "a"},
		"a result without a call": returned(1, "a", "A"),
	} {
		s := state(t, messages.Definition{}, messages.Task{Input: messages.TextInput("hi")})
		if s.Advance(r) == nil {
			t.Errorf("%s was folded", name)
		}
	}
}

// Advancing a clone of a run with a plan leaves the original as it was.
func TestPlanCloneIsApart(t *testing.T) {
	s := state(t, messages.Definition{Planner: messages.PlannerPlan}, messages.Task{Input: messages.TextInput("hi")},
		&record.Planned{Decision: record.DecisionReady, Plan: planOf("a", "b", "c<a")},
		&record.StepStarted{Step: 1, StepID: "a"}, &record.StepStarted{Step: 1, StepID: "b"}, returned(1, "b", "B"))
	before := encode(t, s)
	c := s.Clone()
	for _, r := range []record.Record{
		&record.StepEnded{Step: 1, StepID: "b", Status: messages.StepFailed}, returned(1, "a", "A"),
		&record.StepEnded{Step: 1, StepID: "a", Status: messages.StepCompleted},
		&record.Planned{Decision: record.DecisionAdapt, Plan: planOf("a", "b"), Renewed: []string{"b"}},
	} {
		if err := c.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(before), string(encode(t, s))); diff != "" {
		t.Error(diff)
	}
}

// Whatever a model says, planning ends with an action and no panic.
func FuzzPlanReply(f *testing.F) {
	f.Add(planJSON("a", "b<a"), proceed)
	f.Add(planJSON("a?", "b<a"), adapt(planOf("b", "x<b"), "a"))
	f.Add(`{"steps":[{"id":"a","description":"x","tool":"t","args":{"x":"${steps.a.output}"}}]}`, `{"decision":"complete"}`)
	f.Fuzz(func(t *testing.T, plan, decision string) {
		for _, text := range []string{plan, decision} {
			if strings.HasPrefix(text, "!") || text == "(cut)" {
				return // the play's own words
			}
		}
		replies := []string{plan, plan}
		for range 120 {
			replies = append(replies, decision)
		}
		p := &play{def: messages.Definition{Tools: []string{"t"}, MaxSteps: 12}, replies: replies, answers: map[string]string{"a": "!no"}}
		p.run(t)
	})
}

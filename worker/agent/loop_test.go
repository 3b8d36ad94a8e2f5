package agent_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// plan is what the planner of the state's agent wants: describe, and for a failure its text.
func plan(t *testing.T, s *agent.State) string {
	t.Helper()
	before := encode(t, s)
	a := agent.Planners()[s.Agent.Planner].Plan(s)
	if diff := cmp.Diff(string(before), string(encode(t, s))); diff != "" {
		t.Errorf("planning changed the state: %s", diff)
	}
	if f, ok := a.(*agent.Finish); ok && f.Err != nil {
		return describe(a) + " " + f.Err.Message
	}
	return describe(a)
}

func lastText(s *agent.State) string { return s.Transcript[len(s.Transcript)-1].Text() }

var hi = messages.Task{Input: messages.TextInput("hi")}

func step(n int) record.Record { return &record.StepStarted{Step: n} }

// round is a step with one call, its arguments and its result.
func round(n int, args, result string) []record.Record {
	r := replied(n, messages.StopToolCalls, "", "a")
	r.Message.Content[len(r.Message.Content)-1].ToolCall.Arguments = args
	return []record.Record{step(n), r, returned(n, "a", result)}
}

func rounds(n int, f func(i int) (args, result string)) (out []record.Record) {
	for i := 1; i <= n; i++ {
		args, result := f(i)
		out = append(out, round(i, args, result)...)
	}
	return out
}

func TestRepeatedCalls(t *testing.T) {
	same := func(int) (string, string) { return `{"a":1,"b":2}`, "R" }
	for name, tc := range map[string]struct {
		limit *int // of the definition; nil: the default
		steps int
		n     int
		call  func(int) (string, string)
		told  bool
		want  string
	}{
		"twice is nothing":            {n: 2, call: same, want: "model 3"},
		"three times is told":         {n: 3, call: same, told: true, want: "model 4"},
		"five times is told":          {n: 5, call: same, told: true, want: "model 6"},
		"six times is the end":        {n: 6, call: same, want: "failed (max_steps) the model goes in circles: 6 times in a row the same call of t with the same result (repeatLimit is 3)"},
		"the agent's limit":           {limit: new(1), n: 1, call: same, told: true, want: "model 2"},
		"twice the agent's limit":     {limit: new(1), n: 2, call: same, want: "failed (max_steps) the model goes in circles: 2 times in a row the same call of t with the same result (repeatLimit is 1)"},
		"never":                       {limit: new(0), n: 9, call: same, want: "model :"},
		"another result is progress":  {n: 9, call: func(i int) (string, string) { return "{}", strconv.Itoa(i) }, want: "model :"},
		"another call is progress":    {n: 9, call: func(i int) (string, string) { return fmt.Sprintf(`{"a":%d}`, i), "R" }, want: "model :"},
		"one between is progress":     {n: 9, call: func(i int) (string, string) { return fmt.Sprintf(`{"a":%d}`, i/2%2), "R" }, want: "model :"},
		"spacing and order are none":  {n: 3, call: func(i int) (string, string) { return []string{`{"a":1,"b":2}`, ` {"b":2, "a":1}`}[i%2], "R" }, told: true, want: "model 4"},
		"what is not JSON counts":     {n: 3, call: func(int) (string, string) { return "{", "R" }, told: true, want: "model 4"},
		"the limit of steps is first": {steps: 6, n: 6, call: same, told: true, want: "failed (max_steps) no final answer within the limit of steps, 6"},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, messages.Definition{RepeatLimit: tc.limit, MaxSteps: tc.steps}, hi, rounds(tc.n, tc.call)...)
			if got := plan(t, s); got != tc.want {
				t.Errorf("plan: %q, want %q", got, tc.want)
			}
			res := s.Transcript[len(s.Transcript)-1].Content[0].ToolResult
			if got := strings.Contains(res.Shown(), "(Note: this call was made"); got != tc.told && s.Failure == nil {
				t.Errorf("the model was told: %v: %s", got, res.Shown())
			}
		})
	}
}

// The note is for the model: the record, and with it the event, has the result as it was.
func TestRecordsKeepTheResult(t *testing.T) {
	records := rounds(3, func(int) (string, string) { return "{}", "R" })
	state(t, messages.Definition{}, hi, records...)
	for _, r := range records {
		if r, ok := r.(*record.ToolReturned); ok && r.Result.Shown() != "R" {
			t.Errorf("the record was changed: %q", r.Result.Shown())
		}
	}
}

// A run that is older than the settings has none of them in its definition, and folds as before.
func TestOldDefinitionsFoldAsBefore(t *testing.T) {
	old := messages.Definition{Name: "a", Planner: messages.PlannerTools, MaxSteps: 25, MaxTokens: 9, OnToolError: messages.OnErrorFail}
	fold := func(records ...record.Record) *agent.State {
		s := &agent.State{}
		for _, r := range append([]record.Record{&record.Started{Task: hi, Agent: old}, &record.Claimed{Claim: "c"}}, records...) {
			if err := s.Advance(r); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	s := fold(rounds(9, func(int) (string, string) { return "{}", "R" })...)
	if got := plan(t, s); got != "model :" || s.Transcript[len(s.Transcript)-1].Content[0].ToolResult.Shown() != "R" {
		t.Errorf("repeats: %s", got)
	}
	if got := plan(t, fold(step(1), replied(1, messages.StopLength, "", "a"))); got != "tools" {
		t.Errorf("calls of a cut reply: %s", got)
	}
	if got := plan(t, fold(step(1), replied(1, messages.StopLength, "ab"))); !strings.HasPrefix(got, "failed (model_truncated)") {
		t.Errorf("a cut reply: %s", got)
	}
	if got := plan(t, fold(step(1), replied(1, messages.StopEnd, "ok"))); got != "completed ok" {
		t.Errorf("an answer: %s", got)
	}
	refused := returned(1, "a", "Tool not found")
	refused.Result.IsError, refused.Code = true, messages.CodeInvalidInput
	if got := plan(t, fold(step(1), replied(1, messages.StopToolCalls, "", "a"), refused)); got != "failed (tool_failed) Tool not found" {
		t.Errorf("a refused call: %s", got)
	}
}

func TestTruncatedReplies(t *testing.T) {
	goesOn := messages.Definition{OnTruncated: messages.TruncatedContinue, MaxTokens: 7}
	cut := func(n int, text string, calls ...string) []record.Record {
		return []record.Record{step(n), replied(n, messages.StopLength, text, calls...)}
	}
	var six []record.Record
	for i := 1; i <= 6; i++ {
		six = append(six, cut(i, "x")...)
	}
	for name, tc := range map[string]struct {
		def     messages.Definition
		records []record.Record
		want    string
	}{
		"is a failure":                 {messages.Definition{MaxTokens: 7}, cut(1, "o"), "failed (model_truncated) the reply was cut at the limit of 7 tokens; raise maxTokens of the agent"},
		"its calls are not made":       {messages.Definition{MaxTokens: 7}, cut(1, "o", "a", "b"), "failed (model_truncated) the reply was cut at the limit of 7 tokens; raise maxTokens of the agent"},
		"continues":                    {goesOn, cut(1, "The an"), "model 2"},
		"continues without text":       {goesOn, cut(1, ""), "model 2"},
		"continues without its calls":  {goesOn, cut(1, "", "a", "b"), "model 2"},
		"is joined":                    {goesOn, append(append(cut(1, "The an"), cut(2, "swer ")...), step(3), replied(3, messages.StopEnd, "is 7")), "completed The answer is 7"},
		"has an end":                   {goesOn, six, "failed (model_truncated) the reply was cut at the limit of 7 tokens, 6 times in a row; raise maxTokens of the agent"},
		"is counted in a row":          {goesOn, append(six[:10:10], append(round(6, "{}", "R"), append(cut(7, "a"), step(8), replied(8, messages.StopEnd, "b"))...)...), "completed ab"},
		"takes no step too many":       {messages.Definition{OnTruncated: messages.TruncatedContinue, MaxTokens: 7, MaxSteps: 1}, cut(1, "x"), "failed (model_truncated) the reply was cut at the limit of 7 tokens; raise maxTokens of the agent"},
		"text before calls is no part": {goesOn, append(append(cut(1, "Let me "), step(2), replied(2, messages.StopToolCalls, "look", "a"), returned(2, "a", "A")), step(3), replied(3, messages.StopEnd, "ok")), "completed ok"},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, tc.def, hi, tc.records...)
			if got := plan(t, s); got != tc.want {
				t.Errorf("plan: %q, want %q", got, tc.want)
			}
			wellFormed(t, s.Transcript)
		})
	}
	s := state(t, goesOn, hi, cut(1, "The an", "a")...)
	if got := lastText(s); !strings.Contains(got, "Go on exactly where it stopped") || !strings.Contains(got, "was not made") {
		t.Errorf("the model is told %q", got)
	}
}

// wellFormed tells what providers refuse: calls without results, empty messages, two of a role in a row.
func wellFormed(t *testing.T, ms []messages.Message) {
	t.Helper()
	for i := range ms {
		if len(ms[i].Content) == 0 {
			t.Errorf("message %d is empty", i)
		}
		if i > 0 && ms[i].Role == ms[i-1].Role {
			t.Errorf("messages %d and %d are of one role, %s", i-1, i, ms[i].Role)
		}
		if len(ms[i].Calls()) > 0 && (i+1 == len(ms) || ms[i+1].Role != messages.RoleTool) {
			t.Errorf("message %d has calls without results", i)
		}
	}
}

const numberSchema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}},"additionalProperties":false}`

func TestOutputSchema(t *testing.T) {
	def := messages.Definition{OutputSchema: json.RawMessage(numberSchema)}
	answers := func(texts ...string) (out []record.Record) {
		for i, text := range texts {
			out = append(out, step(i+1), replied(i+1, messages.StopEnd, text))
		}
		return out
	}
	for name, tc := range map[string]struct {
		def     messages.Definition
		task    json.RawMessage
		records []record.Record
		want    string
	}{
		"fits":                        {def, nil, answers(`{"n":1}`), `completed {"n":1}`},
		"of the task":                 {messages.Definition{}, json.RawMessage(numberSchema), answers("one", `{"n":1}`), `completed {"n":1}`},
		"in a fence":                  {def, nil, answers("```json\n{\"n\":1}\n```\n"), `completed {"n":1}`},
		"in a plain fence":            {def, nil, answers("```\n{\"n\":1}\n```"), `completed {"n":1}`},
		"a large number":              {def, nil, answers(`{"n":9007199254740993}`), `completed {"n":9007199254740993}`},
		"may be corrected":            {def, nil, answers("one"), "model 2"},
		"is corrected":                {def, nil, answers("one", `{"n":1}`), `completed {"n":1}`},
		"is corrected once":           {def, nil, answers("one", `{"n":"1"}`), "failed (output_schema)"},
		"has two keys":                {def, nil, answers(`{"n":1,"n":2}`), "model 2"},
		"has more":                    {def, nil, answers(`{"n":1,"m":2}`), "model 2"},
		"has another after it":        {def, nil, answers(`{"n":1} {"n":2}`), "model 2"},
		"in a fence of another":       {def, nil, answers("```yaml\n{\"n\":1}\n```"), "model 2"},
		"with text before the fence":  {def, nil, answers("Here: ```json\n{\"n\":1}\n```"), "model 2"},
		"no step is left":             {messages.Definition{MaxSteps: 1, OutputSchema: json.RawMessage(numberSchema)}, nil, answers("one"), "failed (output_schema)"},
		"a refusal does not fit":      {def, nil, []record.Record{step(1), replied(1, messages.StopRefusal, "no")}, "model 2"},
		"nothing is no answer":        {def, nil, answers(""), "failed (model_invalid_output) the model answered with nothing"},
		"calls come before":           {def, nil, append(round(1, "{}", "R"), step(2), replied(2, messages.StopEnd, `{"n":1}`)), `completed {"n":1}`},
		"calls after a correction":    {def, nil, append(append(answers("one"), round(2, "{}", "R")...), step(3), replied(3, messages.StopEnd, `{"n":1}`)), `completed {"n":1}`},
		"continued":                   {messages.Definition{OnTruncated: messages.TruncatedContinue, OutputSchema: json.RawMessage(numberSchema)}, nil, []record.Record{step(1), replied(1, messages.StopLength, `{"n"`), step(2), replied(2, messages.StopEnd, `:1}`)}, `completed {"n":1}`},
		"a filtered one is something": {def, nil, []record.Record{step(1), replied(1, messages.StopContentFilter, "x")}, "failed (model_content_filter)"},
	} {
		t.Run(name, func(t *testing.T) {
			task := hi
			task.OutputSchema = tc.task
			s := state(t, tc.def, task, tc.records...)
			if got := plan(t, s); !strings.HasPrefix(got, tc.want) {
				t.Errorf("plan: %q, want %q", got, tc.want)
			}
			wellFormed(t, s.Transcript)
		})
	}
	s := state(t, def, hi, answers("one")...)
	if got := lastText(s); !strings.Contains(got, "does not fit the output schema: it is not JSON") {
		t.Errorf("the model is told %q", got)
	}
	if got := lastText(state(t, def, hi, answers(`{}`)...)); !strings.Contains(got, `"n"`) {
		t.Errorf("the model is not told which field: %q", got)
	}
	a, ok := agent.ToolCalling{}.Plan(s).(*agent.CallModel)
	if !ok || a.Format == nil || string(a.Format.Schema) != numberSchema {
		t.Errorf("the schema is not asked for: %+v", a)
	}
	if got := s.Transcript[0]; got.Role != messages.RoleSystem || !strings.Contains(got.Text(), numberSchema) {
		t.Errorf("the model is not told the schema: %v", got)
	}
}

func TestCheckOutputSchema(t *testing.T) {
	for name, tc := range map[string]struct{ task, agent, want string }{
		"none":        {"", "", ""},
		"the task's":  {numberSchema, "", ""},
		"the agent's": {"", numberSchema, ""},
		"both":        {numberSchema, numberSchema, "outputSchema: the agent a has one of its own"},
		"a reference": {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, "", "outputSchema: $ref is not supported: write the schema out"},
		"a list":      {`{"type":"array"}`, "", `outputSchema: "type" must be "object"`},
		"no type":     {`{}`, "", `outputSchema: "type" must be "object"`},
		"no schema":   {"", `{"type":"object","required":"n"}`, "outputSchema: read schema: "},
		"a bad regex": {"", `{"type":"object","properties":{"a":{"pattern":"("}}}`, "outputSchema: resolve schema: "},
	} {
		err := agent.CheckOutputSchema(&messages.Task{OutputSchema: json.RawMessage(tc.task)},
			&messages.Definition{Name: "a", Planner: messages.PlannerTools, OutputSchema: json.RawMessage(tc.agent)})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	err := agent.CheckOutputSchema(&messages.Task{OutputSchema: json.RawMessage(numberSchema)}, &messages.Definition{Planner: messages.PlannerPlan})
	if err == nil || err.Error() != "outputSchema: the planner plan does not check answers" {
		t.Errorf("a planner that checks nothing: %v", err)
	}
}

func TestInvalidOutputMayEndTheRun(t *testing.T) {
	refused := func(code messages.Code) *record.ToolReturned {
		r := returned(1, "a", `Tool "t" not found. Allowed tools: none`)
		r.Result.IsError, r.Code = true, code
		return r
	}
	begun := &record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "a"}}
	call := []record.Record{step(1), replied(1, messages.StopToolCalls, "", "a")}
	for name, tc := range map[string]struct {
		output, tool string
		records      []record.Record
		want         string
	}{
		"the model is told":             {"", "", append(call[:2:2], refused(messages.CodeInvalidInput)), "model 2"},
		"it ends":                       {"fail", "", append(call[:2:2], refused(messages.CodeInvalidInput)), `failed (model_invalid_output) Tool "t" not found. Allowed tools: none`},
		"a tool's failure is no output": {"fail", "", append(call[:2:2], begun, refused(messages.CodeToolFailed)), "model 2"},
		"nor is a tool's own refusal":   {"fail", "", append(call[:2:2], begun, refused(messages.CodeInvalidInput)), "model 2"},
		"and is no tool's failure":      {"", "fail", append(call[:2:2], refused(messages.CodeInvalidInput)), "model 2"},
		"a tool's own refusal is":       {"", "fail", append(call[:2:2], begun, refused(messages.CodeInvalidInput)), `failed (tool_failed) Tool "t" not found. Allowed tools: none`},
	} {
		s := state(t, messages.Definition{OnInvalidOutput: tc.output, OnToolError: tc.tool}, hi, tc.records...)
		if got := plan(t, s); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// What the model thought stays in front of its calls, where its provider wants it.
func TestReasoningIsKept(t *testing.T) {
	r := replied(1, messages.StopToolCalls, "", "a")
	thought := messages.Block{Reasoning: &messages.Reasoning{Family: "f", Text: "hm", Signature: "s"}}
	r.Message.Content = append([]messages.Block{thought}, r.Message.Content...)
	s := state(t, messages.Definition{Reasoning: messages.ReasoningEcho}, hi, step(1), r, returned(1, "a", "A"))
	if diff := cmp.Diff(r.Message.Content, s.Transcript[1].Content); diff != "" {
		t.Error(diff)
	}
}

// An image is a word in a result's text, and itself in what the model sees.
func TestImagesReachTheModel(t *testing.T) {
	img := messages.Block{Image: &messages.Image{MediaType: "image/png", Data: make([]byte, 12_000)}}
	r := returned(1, "a", "the chart: ")
	r.Result.Content = append(r.Result.Content, img)
	s := state(t, messages.Definition{}, hi, step(1), replied(1, messages.StopToolCalls, "", "a"), r)
	res := s.Transcript[len(s.Transcript)-1].Content[0].ToolResult
	if res.Content[1].Image == nil || res.Shown() != "the chart: [image png, 12 kB]" {
		t.Errorf("%s", res.Shown())
	}
	got := s.Conclude(messages.Ref{}, &agent.Finish{Status: messages.StatusCompleted}, s.StartedAt).Actions[0].Output
	if got != res.Shown() {
		t.Errorf("the result shows %q", got)
	}
	again, err := agent.Decode(encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Transcript, again.Transcript); diff != "" {
		t.Error(diff)
	}
}

package messages_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/record"
)

// step is a step that is right in itself, as JSON.
func step(id string, more ...string) string {
	return fmt.Sprintf(`{"id":%q,"description":"Do it.","tool":"t"%s}`, id, strings.Join(more, ""))
}

func steps(all ...string) string { return `{"steps":[` + strings.Join(all, ",") + `]}` }

func TestDecodePlanRefuses(t *testing.T) {
	t.Parallel()
	tokens := "must be 1 to 64 characters of A-Z a-z 0-9 _ -"
	after := func(ids string) string { return `,"dependsOn":[` + ids + `]` }
	args := func(text string) string { return `,"args":{"x":"` + text + `"}` }
	var many []string
	for i := range 101 {
		many = append(many, step(fmt.Sprint("s", i)))
	}
	var heavy []string
	for i := range 9 {
		heavy = append(heavy, step(fmt.Sprint("s", i), args(strings.Repeat("x", 29<<10))))
	}
	for name, tc := range map[string]struct{ in, field, reason string }{
		"nothing":               {``, "plan", "is empty"},
		"prose":                 {`Here is the plan: {}`, "plan", "not valid JSON at byte 0"},
		"an array":              {`[]`, "plan", "must be an object, not an array"},
		"no steps":              {`{}`, "steps", "must be 1 to 100 steps, not 0"},
		"empty steps":           {steps(), "steps", "must be 1 to 100 steps, not 0"},
		"null steps":            {`{"steps":null}`, "steps", "must be 1 to 100 steps, not 0"},
		"too many steps":        {steps(many...), "steps", "must be 1 to 100 steps, not 101"},
		"too large":             {steps(heavy...), "plan", "larger than 262144 bytes"},
		"cut off":               {`{"steps":[{"id":"a"`, "steps[0]", "not valid JSON: it ends too early"},
		"prose behind":          {steps(step("a")) + ` Done.`, "plan", "unexpected data after the value at byte 57"},
		"unknown field":         {`{"steps":[],"goal":"x"}`, "goal", "unknown field"},
		"unknown field of step": {steps(step("a", `,"when":1`)), "steps[0].when", "unknown field"},
		"field twice":           {steps(step("a", `,"tool":"u"`)), "steps[0].tool", "given twice"},
		"id no string":          {`{"steps":[{"id":1}]}`, "steps[0].id", "must be a string, not a number"},
		"no id":                 {steps(`{"description":"x","tool":"t"}`), "steps[0].id", tokens},
		"hostile id":            {steps(step("a.output}")), "steps[0].id", tokens},
		"long id":               {steps(step(strings.Repeat("a", 65))), "steps[0].id", tokens},
		"no description":        {steps(`{"id":"a","description":" ","tool":"t"}`), "steps[0].description", "is empty"},
		"long description":      {steps(`{"id":"a","tool":"t","description":"` + strings.Repeat("x", 4097) + `"}`), "steps[0].description", "larger than 4096 bytes"},
		"no tool":               {steps(`{"id":"a","description":"x"}`), "steps[0].tool", tokens},
		"args an array":         {steps(step("a", `,"args":[]`)), "steps[0].args", "must be an object"},
		"args null":             {steps(step("a", `,"args":null`)), "steps[0].args", "null is not allowed"},
		"args twice":            {steps(step("a", `,"args":{"x":1,"x":2}`)), "steps[0].args.x", "given twice"},
		"args too large":        {steps(step("a", args(strings.Repeat("x", 64<<10)))), "steps[0].args", "larger than 65536 bytes"},
		"same id":               {steps(step("a"), step("b"), step("a")), "steps[2].id", `"a" is the id of steps[0] already`},
		"unknown dependency":    {steps(step("a", after(`"z"`))), "steps[0].dependsOn[0]", `no step has the id "z"`},
		"dependency twice":      {steps(step("a"), step("b", after(`"a","a"`))), "steps[1].dependsOn[1]", `"a" is named twice`},
		"waits for itself":      {steps(step("a", after(`"a"`))), "steps[0].dependsOn", "the steps wait for each other: a -> a"},
		"cycle": {
			steps(step("x"), step("a", after(`"x","c"`)), step("b", after(`"a"`)), step("c", after(`"b"`))),
			"steps[1].dependsOn", "the steps wait for each other: a -> c -> b -> a",
		},
		"critical no boolean":        {steps(step("a", `,"critical":"no"`)), "steps[0].critical", "must be true or false, not a string"},
		"negative duration":          {steps(step("a", `,"estimatedDuration":-1`)), "steps[0].estimatedDuration", "must be 0 to 2592000 seconds"},
		"duration of the plan":       {`{"steps":[` + step("a") + `],"estimatedDuration":1e9}`, "estimatedDuration", "must be 0 to 2592000 seconds"},
		"approval of no tool":        {steps(step("a", `,"requiredApprovals":[""]`)), "steps[0].requiredApprovals[0]", "is empty"},
		"approval no list":           {steps(step("a", `,"requiredApprovals":true`)), "steps[0].requiredApprovals", "must be an array, not a boolean"},
		"approval of unknown step":   {`{"steps":[` + step("a") + `],"requiredApprovals":["b"]}`, "requiredApprovals[0]", `no step has the id "b"`},
		"reference to nothing":       {steps(step("a", args("${steps.z.output}"))), "steps[0].args", `${steps.z.output}: no step has the id "z"`},
		"reference to itself":        {steps(step("a", args("${steps.a.output}"))), "steps[0].args", `${steps.a.output}: the step must depend on "a" to use its output`},
		"reference without depends":  {steps(step("a"), step("b", args("${steps.a.output}"))), "steps[1].args", `${steps.a.output}: the step must depend on "a" to use its output`},
		"reference to a path":        {steps(step("a"), step("b", after(`"a"`), args("${steps.a.output.name}"))), "steps[1].args.x", `"${steps.a.output.name}" is no reference; write ${steps.ID.output}`},
		"reference without end":      {steps(step("a"), step("b", after(`"a"`), args("${steps.a"))), "steps[1].args.x", `"${steps.a" is no reference; write ${steps.ID.output}`},
		"reference in depth":         {steps(step("a", `,"args":{"x":[{"y":"${steps.}"}]}`)), "steps[0].args.x[0].y", `"${steps.}" is no reference; write ${steps.ID.output}`},
		"reference written escaped":  {steps(step("a", args(`\u0024{steps.z.output}`))), "steps[0].args", `${steps.z.output}: no step has the id "z"`},
		"reference to what is later": {steps(step("a", args("${steps.b.output}")), step("b", after(`"a"`))), "steps[0].args", `${steps.b.output}: the step must depend on "b" to use its output`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := messages.DecodePlan([]byte(tc.in))
			wantFieldError(t, name, err)
			noDiff(t, "error", error(&messages.FieldError{Field: tc.field, Reason: tc.reason}), err)
		})
	}
}

// The plan of the specification, fields as it names them.
func TestDecodePlanAcceptsTheDocumented(t *testing.T) {
	t.Parallel()
	p, err := messages.DecodePlan([]byte(`{"steps":[
		{"id":"1","description":"Read","tool":"read_file","args":{"path":"a"}},
		{"id":"2","description":"Write","tool":"write_file","args":{"path":"b","content":"${steps.1.output}"},"dependsOn":["1"]}
	],"estimatedDuration":12,"requiredApprovals":["2"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Steps[0].IsCritical() || p.NeedsApproval(&p.Steps[0]) || !p.NeedsApproval(&p.Steps[1]) {
		t.Errorf("critical or approvals are wrong: %+v", p)
	}
}

func TestCheckTools(t *testing.T) {
	t.Parallel()
	p := fullPlan()
	noDiff(t, "known", error(nil), p.CheckTools([]string{"x", "read_file"}))
	for want, allowed := range map[string][]string{"none": nil, "a, b": {"a", "b"}} {
		noDiff(t, want, error(&messages.FieldError{
			Field: "steps[0].tool", Reason: `Tool "read_file" not found. Allowed tools: ` + want,
		}), p.CheckTools(allowed))
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	outputs := map[string]string{"a": "A", "b-2": `"quoted" <b> ${steps.a.output}`}
	for in, want := range map[string]string{
		``:                          `{}`,
		`{"n": 1.50}`:               `{"n": 1.50}`,
		`{"x":"${steps.a.output}"}`: `{"x":"A"}`,
		`{"x":"<${steps.a.output}${steps.a.output}>$","n":1.50,"big":12345678901234567890}`: `{"big":12345678901234567890,"n":1.50,"x":"<AA>$"}`,
		`{"x":["${steps.b-2.output}",{"y":"${HOME} ${steps}"}]}`:                            `{"x":["\"quoted\" <b> ${steps.a.output}",{"y":"${HOME} ${steps}"}]}`,
		`{"${steps.a.output}":"\u0024{steps.a.output}"}`:                                    `{"${steps.a.output}":"A"}`,
	} {
		s := messages.PlanStep{Args: json.RawMessage(in)}
		got, err := s.Resolve(func(id string) (string, bool) { o, ok := outputs[id]; return o, ok })
		noDiff(t, in, error(nil), err)
		noDiff(t, in, want, got)
	}
	s := messages.PlanStep{Args: json.RawMessage(`{"x":"${steps.c.output}"}`)}
	_, err := s.Resolve(func(string) (string, bool) { return "", false })
	noDiff(t, "no output", error(&messages.FieldError{Field: "args.x", Reason: "${steps.c.output}: the step has no output"}), err)
}

// A plan of the largest size fits its event.
func TestPlanEventIsBounded(t *testing.T) {
	t.Parallel()
	p := &messages.Plan{}
	for i := range messages.MaxPlanSteps {
		s := messages.PlanStep{ID: fmt.Sprint(strings.Repeat("s", 60), i), Tool: "t", Description: strings.Repeat("\x01", 2000)}
		for _, d := range p.Steps {
			s.DependsOn = append(s.DependsOn, d.ID)
		}
		p.Steps = append(p.Steps, s)
	}
	r := &record.Planned{Decision: record.DecisionReady, Reason: strings.Repeat("\x01", 99_999), Plan: p}
	h := record.Follow(record.Head{}, r)
	events := record.Events(ref, record.Entry{Head: h, Records: []record.Record{r}})
	if len(events) != 1 || len(record.AppendEvent(nil, &events[0])) > messages.MaxPayload {
		t.Fatalf("%d events, the first of %d bytes", len(events), len(record.AppendEvent(nil, &events[0])))
	}
	var d record.PlanData
	decode(t, events[0].Data, &d)
	if !d.Truncated || len(d.Steps) == 0 {
		t.Errorf("truncated %v, %d steps", d.Truncated, len(d.Steps))
	}
}

func TestTaskResultOfAFailedRun(t *testing.T) {
	t.Parallel()
	r := fullResult()
	logs := []logentry.LogEntry{*fullLogEntry()}
	got := control.NewTaskResult(&r, logs)
	if got.Status != messages.StatusFailed || got.Summary != "One file was read." || got.Outputs[0] != "review.md" {
		t.Errorf("got %+v", got)
	}
	noDiff(t, "logs", logs, got.Logs)
	r.Outputs = nil
	if b, _ := json.Marshal(control.NewTaskResult(&r, nil)); !strings.Contains(string(b), `"outputs":[],`) {
		t.Errorf("no outputs are not an empty list: %s", b)
	}
}

func FuzzDecodePlan(f *testing.F) {
	f.Add([]byte(steps(step("a"), step("b", `,"dependsOn":["a"],"args":{"x":"${steps.a.output}","y":[1,{"z":"\u0024{steps.a.output}"}]}`))))
	f.Add([]byte(steps(step("a", `,"dependsOn":["b"]`), step("b", `,"dependsOn":["a"]`))))
	f.Add([]byte(`{"steps":[{"id":"a","args":{"x":"${steps."}}],"requiredApprovals":["a"],"estimatedDuration":1e400}`))
	seed(f, "testdata/golden/plan.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := messages.DecodePlan(data)
		if err != nil {
			wantFieldError(t, "plan", err)
			return
		}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := messages.DecodePlan(b); err != nil && len(b) <= 64<<10 {
			t.Fatalf("what was decoded cannot be decoded again: %v\n%s", err, b)
		}
		for i := range p.Steps {
			args, err := p.Steps[i].Resolve(func(id string) (string, bool) { return "${steps.x", p.Find(id) != nil })
			if err != nil || !json.Valid([]byte(args)) {
				t.Errorf("%s: %q, %v", p.Steps[i].Args, args, err)
			}
		}
	})
}

// However much was logged, a task result fits, keeps the newest entries, and says how many it left out.
func TestTaskResultFits(t *testing.T) {
	t.Parallel()
	r := fullResult()
	r.Summary = strings.Repeat("\x01", 9000)
	var logs []logentry.LogEntry
	for i := range 1000 {
		e := *fullLogEntry()
		e.Step = i
		logs = append(logs, e)
	}
	for _, n := range []int{4 << 10, 100 << 10, 10 << 20} {
		got := control.NewTaskResult(&r, logs)
		got.Fit(n)
		if b := encode(t, got); len(b) > n || len(got.Logs)+got.LogsLeftOut != 1000 || got.Logs[len(got.Logs)-1].Step != 999 {
			t.Errorf("%d: %d bytes, %d entries, %d left out", n, len(b), len(got.Logs), got.LogsLeftOut)
		}
	}
}

// A plan takes as long as its longest chain, when that is known of every step.
func TestPlanDuration(t *testing.T) {
	t.Parallel()
	step := func(id string, seconds float64, after ...string) messages.PlanStep {
		return messages.PlanStep{ID: id, Description: "D.", Tool: "t", EstimatedDuration: seconds, DependsOn: after}
	}
	for name, tc := range map[string]struct {
		plan  messages.Plan
		means map[string]float64
		want  float64
	}{
		"a chain and what is beside it": {messages.Plan{Steps: []messages.PlanStep{step("c", 3, "a"), step("a", 1), step("b", 2)}}, nil, 4},
		"measured":                      {messages.Plan{Steps: []messages.PlanStep{step("a", 1), step("b", 0, "a")}}, map[string]float64{"b": 0.5, "a": 9}, 1.5},
		"not known of one":              {messages.Plan{Steps: []messages.PlanStep{step("a", 1), step("b", 0)}}, nil, 0},
		"as planned":                    {messages.Plan{EstimatedDuration: 7, Steps: []messages.PlanStep{step("a", 1)}}, nil, 7},
		"a ring ends":                   {messages.Plan{Steps: []messages.PlanStep{step("a", 1, "b"), step("b", 1, "a")}}, nil, 4},
	} {
		r := &record.Planned{Decision: record.DecisionReady, Plan: &tc.plan, Means: tc.means}
		h := record.Follow(record.Head{}, r)
		var d record.PlanData
		decode(t, record.Events(ref, record.Entry{Head: h, Records: []record.Record{r}})[0].Data, &d)
		if d.EstimatedDuration != tc.want {
			t.Errorf("%s: %v, want %v", name, d.EstimatedDuration, tc.want)
		}
	}
}

package evaluation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/dispatcher/evaluation"
	"github.com/longshore-run/longshore/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// head begins every suite of these tests.
const head = "apiVersion: longshore.run/v1\nkind: EvalSuite\nmetadata: {name: s}\n"

func parse(t *testing.T, spec string) *evaluation.Suite {
	t.Helper()
	s, err := evaluation.Parse([]byte(head + "spec: " + spec))
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return s
}

func TestSuitesThatAreShippedAreSound(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/examples/evals/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := evaluation.Parse(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s := parse(t, `{cases: [{name: a, input: hi}]}`)
	if *s.Threshold != 1 || s.Repeat != 1 || s.Parallel != 4 || s.Agent != "default" || s.Cases[0].Repeat != 1 || s.Cases[0].Expect.Status != messages.StatusCompleted {
		t.Errorf("%+v", s)
	}
}

func TestSuitesThatAreWrong(t *testing.T) {
	t.Parallel()
	one := func(more string) string { return head + "spec: {cases: [{name: a, input: hi" + more + "}]}" }
	for name, tt := range map[string]struct{ text, field, reason string }{
		"nothing":             {"", "", "empty"},
		"no YAML":             {"a: [", "", "read YAML"},
		"two documents":       {one("") + "\n---\n" + one(""), "", "a second YAML document begins on line 6"},
		"a list":              {"[1]", "body", ""},
		"not a key":           {head + "spec: {1: 2}", "", "a key is not a string"},
		"another kind":        {strings.Replace(one(""), "EvalSuite", "Agent", 1), "kind", "EvalSuite"},
		"another version":     {strings.Replace(one(""), "/v1", "/v2", 1), "apiVersion", ""},
		"a name with a dot":   {strings.Replace(one(""), "name: s", "name: s.t", 1), "metadata.name", ""},
		"no spec":             {head, "spec", ""},
		"no cases":            {head + "spec: {}", "spec.cases", "must be 1 to"},
		"an unknown field":    {head + "spec: {cases: [], treshold: 1}", "spec.treshold", "unknown"},
		"a threshold of 2":    {head + "spec: {threshold: 2, cases: []}", "spec.threshold", ""},
		"a threshold of none": {head + "spec: {threshold: .nan, cases: []}", "", "number"},
		"a negative repeat":   {head + "spec: {repeat: -1, cases: [{name: a, input: hi}]}", "spec.repeat", ""},
		"too much at once":    {head + "spec: {parallel: 100000, cases: [{name: a, input: hi}]}", "spec.parallel", ""},
		"a long timeout":      {head + "spec: {timeout: 100h, cases: [{name: a, input: hi}]}", "spec.timeout", ""},
		"too many runs":       {head + "spec: {repeat: 1000, cases: [" + strings.Repeat("{name: NAME, input: hi},", 101) + "]}", "spec.cases", "runs"},
		"a case twice":        {head + "spec: {cases: [{name: a, input: hi}, {name: a, input: hi}]}", "spec.cases[1].name", "cases[0]"},
		"a case without name": {head + "spec: {cases: [{input: hi}]}", "spec.cases[0].name", ""},
		"no input":            {head + "spec: {cases: [{name: a}]}", "spec.cases[0] (a).input", "empty"},
		"an odd agent":        {one(", agent: '*'"), "spec.cases[0] (a).agent", ""},
		"steps below 0":       {one(", limits: {maxSteps: -1}"), "spec.cases[0] (a).limits.maxSteps", ""},
		"an odd status":       {one(", expect: {status: running}"), "spec.cases[0] (a).expect.status", ""},
		"an unknown expect":   {one(", expect: {containz: [a]}"), "spec.cases[0].expect.containz", "unknown"},
		"an empty text":       {one(", expect: {contains: ['']}"), "spec.cases[0] (a).expect.contains[0]", ""},
		"a negative cost":     {one(", expect: {maxCost: -1}"), "spec.cases[0] (a).expect.maxSteps, maxTokens, maxCost", ""},
		"a path of nowhere":   {one(", expect: {json: [{path: a.b, exists: true}]}"), "spec.cases[0] (a).expect.json[0].path", ""},
		"a filter in a path":  {one(", expect: {json: [{path: '$..a', exists: true}]}"), "spec.cases[0] (a).expect.json[0].path", ""},
		"a path for nothing":  {one(", expect: {json: [{path: $.a}]}"), "spec.cases[0] (a).expect.json[0].path", "one of"},
		"two expectations":    {one(", expect: {json: [{path: $.a, exists: true, contains: x}]}"), "spec.cases[0] (a).expect.json[0].path", "one of"},
		"no schema":           {one(", expect: {schema: {type: 7}}"), "spec.cases[0] (a).expect.schema", ""},
		"a schema elsewhere":  {one(", expect: {schema: {$ref: 'http://127.0.0.1:1/x'}}"), "spec.cases[0] (a).expect.schema", ""},
		"a schema forever":    {one(", expect: {schema: {anyOf: [{$ref: '#'}]}}"), "spec.cases[0] (a).expect.schema", "without references"},
		"a large file":        {strings.Repeat("#\n", 3<<20), "", "larger"},
		"aliases of aliases": {
			"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
				"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tt.text
			for i := 0; strings.Contains(text, "NAME"); i++ {
				text = strings.Replace(text, "NAME", "c"+string(rune('a'+i/26))+string(rune('a'+i%26)), 1)
			}
			_, err := evaluation.Parse([]byte(text))
			if err == nil || !strings.Contains(err.Error(), tt.reason) {
				t.Fatalf("%v", err)
			}
			field, ok := errors.AsType[*messages.FieldError](err)
			if tt.field != "" && (!ok || field.Field != tt.field) {
				t.Errorf("%v, want the field %s", err, tt.field)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	result := func(text string) messages.AgentResult {
		return messages.AgentResult{
			Success: true, Status: messages.StatusCompleted, Result: text, Steps: 3, TokenUsage: messages.Usage{Total: 100}, CostEstimate: new(0.5),
			Actions: []messages.ActionResult{{Name: "a"}, {Name: "b"}},
		}
	}
	object := result(`{"items":[{"name":"bolt","n":2.50,"big":12345678901234567890}],"a b":null}`)
	failed := messages.AgentResult{Status: messages.StatusFailed, Error: &messages.RunError{Code: messages.CodeMaxSteps, Message: "too many"}}
	unknown := result("x")
	unknown.CostEstimate = nil
	cut := result("x")
	cut.Actions, cut.Truncated = nil, true
	for name, tt := range map[string]struct {
		expect string
		result messages.AgentResult
		want   []string // beginnings of the reasons
	}{
		"completed by default": {`{}`, result("x"), nil},
		"failed":               {`{}`, failed, []string{"status: failed, want completed (max_steps: too many)"}},
		"expected to fail":     {`{status: failed, code: max_steps}`, failed, nil},
		"for another reason":   {`{status: failed, code: tool_failed}`, failed, []string{"code: want tool_failed (max_steps"}},
		"equal":                {`{equals: " x "}`, result("x\n"), nil},
		"not equal":            {`{equals: y}`, result("x"), []string{`equals: "x", want "y"`}},
		"texts":                {`{contains: [one, two], notContains: [three]}`, result("one three"), []string{`contains: "two"`, `notContains: "three"`}},
		"places":               {`{json: [{path: "$.items[0].name", equals: bolt}, {path: "$['a b']", exists: true}, {path: "$.items[0].n", equals: 2.5}]}`, object, nil},
		"large numbers":        {`{json: [{path: "$.items[0].big", equals: 12345678901234567890}]}`, object, nil},
		"parts":                {`{json: [{path: "$.items[0]", equals: {name: bolt, n: 2.5, big: 1}}]}`, object, []string{"json: $.items[0]: "}},
		"in a string":          {`{json: [{path: "$.items[0].name", contains: ol}, {path: "$.items", contains: ol}]}`, object, []string{`json: $.items: "ol" is not in`}},
		"nothing there":        {`{json: [{path: "$.items[1].name", equals: x}, {path: $.x, exists: false}, {path: "$.items.name", exists: true}]}`, object, []string{"json: $.items[1].name: nothing is there", "json: $.items.name: exists is false"}},
		"no JSON":              {`{json: [{path: $, exists: true}]}`, result("x"), []string{"json: the result is not JSON"}},
		"two values":           {`{json: [{path: $, exists: true}]}`, result("1 2"), []string{"json: the result is not JSON"}},
		"a schema":             {`{schema: {type: object, required: [items]}}`, object, nil},
		"another schema":       {`{schema: {type: array}}`, object, []string{"schema: "}},
		"tools":                {`{tools: [a, b]}`, result("x"), nil},
		"other tools":          {`{tools: [b, a]}`, result("x"), []string{"tools: [a, b], want [b, a]"}},
		"no tools":             {`{tools: []}`, result("x"), []string{"tools: [a, b], want []"}},
		"unknown tools":        {`{tools: [a]}`, cut, []string{"tools: the result is too large"}},
		"ceilings":             {`{maxSteps: 3, maxTokens: 100, maxCost: 0.5}`, result("x"), nil},
		"above all":            {`{maxSteps: 2, maxTokens: 99, maxCost: 0.4}`, result("x"), []string{"maxSteps: 3", "maxTokens: 100", "maxCost: $0.5"}},
		"an unknown cost":      {`{maxCost: 9}`, unknown, []string{"maxCost: the cost is unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := parse(t, "{cases: [{name: a, input: hi, expect: "+tt.expect+"}]}").Cases[0].Expect.Judge(&tt.result)
			for i := range min(len(got), len(tt.want)) {
				if strings.HasPrefix(got[i], tt.want[i]) {
					got[i] = tt.want[i]
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever a file holds, it is refused with an error or can be judged by.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../deploy/examples/evals/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(head + `spec: {cases: [{name: a, input: hi, expect: {json: [{path: "$[0]['x']", equals: {a: 1}}], schema: {$ref: "#"}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4<<10 {
			return
		}
		s, err := evaluation.Parse(data)
		if err != nil {
			return
		}
		for i := range s.Cases {
			s.Cases[i].Expect.Judge(&messages.AgentResult{Status: messages.StatusCompleted, Result: `{"a":[{"x":1}]}`})
		}
	})
}

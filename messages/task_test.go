package messages_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

func TestDecodeTaskFillsDefaults(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a string":    `{"input":"do it"}`,
		"blocks":      `{"input":[{"text":"do it"}]}`,
		"description": `{"description":"do it"}`,
		"no limits":   `{"input":"do it","labels":{}}`,
	} {
		got, err := messages.DecodeTask([]byte(in))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.Labels) == 0 {
			got.Labels = nil
		}
		noDiff(t, name, &messages.Task{
			Tenant: "default", Agent: "default", Priority: messages.PriorityNormal, Input: messages.TextInput("do it"),
		}, got)
	}
}

func TestDecodeTaskReadsWhatEncodeWrote(t *testing.T) {
	t.Parallel()
	want := fullTask()
	got, err := messages.DecodeTask(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	noDiff(t, "task", &want, got)
}

func TestDecodeTaskRefuses(t *testing.T) {
	t.Parallel()
	const tokens = "must be 1 to 64 characters of A-Z a-z 0-9 _ -"
	const mebi = 1 << 20
	long := strings.Repeat("x", 10<<10)
	labels := func(n int, key, value string) string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("%02d%s", i, key)] = value
		}
		b, err := json.Marshal(map[string]any{"input": "x", "labels": all})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cases := map[string]struct{ in, field, reason string }{
		"nothing":               {``, "task", "is empty"},
		"null":                  {`null`, "task", "null is not allowed"},
		"a string":              {`"do it"`, "task", "must be an object, not a string"},
		"no JSON":               {`input: x`, "task", "not valid JSON at byte 0"},
		"trailing data":         {`{"input":"x"}}`, "task", "unexpected data after the value at byte 13"},
		"unknown field":         {`{"input":"x","prompt":"y"}`, "prompt", "unknown field"},
		"unknown limit":         {`{"input":"x","limits":{"webhook":1}}`, "limits.webhook", "unknown field"},
		"other case":            {`{"Input":"x"}`, "Input", "unknown field: did you mean input?"},
		"given twice":           {`{"input":"x","input":"y"}`, "input", "given twice"},
		"twice in context":      {`{"input":"x","context":{"a":{"b":1,"b":2}}}`, "context.a.b", "given twice"},
		"invalid UTF-8":         {"{\"input\":\"\xff\"}", "input", "invalid UTF-8"},
		"half a pair":           {`{"input":"\ud83d"}`, "input", "invalid Unicode: half of a surrogate pair"},
		"no input":              {`{}`, "input", "is empty"},
		"empty input":           {`{"input":""}`, "input", "is empty"},
		"no blocks":             {`{"input":[]}`, "input", "is empty"},
		"empty blocks":          {`{"input":[{},{"text":""}]}`, "input", "is empty"},
		"NUL in the input":      {`{"input":"a\u0000b"}`, "input", "holds a NUL character"},
		"large input":           {`{"input":"` + strings.Repeat("x", mebi+1) + `"}`, "input", "larger than 1048576 bytes"},
		"large input in blocks": {`{"input":[{"text":"` + strings.Repeat("x", mebi) + `"},{"text":"x"}]}`, "input", "larger than 1048576 bytes"},
		"a number as input":     {`{"input":[1]}`, "input[0]", "must be an object, not a number"},
		"a string as block":     {`{"input":["x"]}`, "input[0]", "must be an object, not a string"},
		"an image":              {`{"input":[{"text":"x"},{"image":"x"}]}`, "input[1].image", "must be an object, not a string"},
		"a tool call":           {`{"input":[{"text":"x"},{"toolCall":{"id":"1","name":"rm","arguments":"{}"}}]}`, "input[1]", "must be one of text, image and file"},
		"a tool result":         {`{"input":[{"toolResult":{"callId":"1","content":[]}}]}`, "input[0]", "must be one of text, image and file"},
		"both names":            {`{"input":"x","description":"x"}`, "description", "give either input or description, not both"},
		"both, one empty":       {`{"input":"","description":"x"}`, "description", "give either input or description, not both"},
		"both, one no blocks":   {`{"input":[],"description":"x"}`, "description", "give either input or description, not both"},
		"bad description":       {`{"description":7}`, "description", "must be a string or an array, not a number"},
		"unknown priority":      {`{"input":"x","priority":"urgent"}`, "priority", "must be high, normal or low"},
		"priority of wake-ups":  {`{"input":"x","priority":"wake"}`, "priority", "must be high, normal or low"},
		"context of a string":   {`{"input":"x","context":"{}"}`, "context", "must be an object"},
		"context of an array":   {`{"input":"x","context":[{}]}`, "context", "must be an object"},
		"large context":         {`{"input":"x","context":{"a":"` + strings.Repeat("x", 256<<10) + `"}}`, "context", "larger than 262144 bytes"},
		"deep context":          {`{"input":"x","context":{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}}`, "context.a" + strings.Repeat("[0]", 30), "nested deeper than 32"},
		"label of a number":     {`{"input":"x","labels":{"team":1}}`, "labels.team", "must be a string, not a number"},
		"empty label name":      {`{"input":"x","labels":{"":"a"}}`, "labels", "an empty name"},
		"too many labels":       {labels(65, "", ""), "labels", "more than 64"},
		"long label name":       {labels(1, strings.Repeat("k", 255), ""), "labels.00" + strings.Repeat("k", 62) + "…", "larger than 256 bytes"},
		"long label":            {labels(1, "", strings.Repeat("v", 257)), "labels.00", "larger than 256 bytes"},
		"NUL in a label":        {labels(1, "", "\x00"), "labels.00", "holds a NUL character"},
		"NUL in a label name":   {labels(1, "\x00", ""), "labels.00?", "holds a NUL character"},
		"labels of escapes":     {labels(64, "", strings.Repeat("\x01", 256)), "labels", "larger than 40960 bytes as JSON"},
		"negative steps":        {`{"input":"x","limits":{"maxSteps":-1}}`, "limits.maxSteps", "must be 1 to 10000"},
		"too many steps":        {`{"input":"x","limits":{"maxSteps":10001}}`, "limits.maxSteps", "must be 1 to 10000"},
		"half a step":           {`{"input":"x","limits":{"maxSteps":1.5}}`, "limits.maxSteps", "must be an integer that fits in 64 bits"},
		"schema of a string":    {`{"input":"x","outputSchema":"{}"}`, "outputSchema", "must be an object"},
		"large schema":          {`{"input":"x","outputSchema":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`, "outputSchema", "larger than 65536 bytes"},
		"long traceparent":      {`{"input":"x","traceparent":"` + long + `"}`, "traceparent", "larger than 128 bytes"},
	}
	cases["a parent of its own"] = struct{ in, field, reason string }{
		`{"parent":{"run":"r","number":1,"index":0},"input":"x"}`, "parent", "is set by the fleet alone: the tool delegate makes the runs that have one",
	}
	for _, name := range []string{"id", "tenant", "agent", "session", "workspace"} {
		for what, token := range map[string]string{
			"star": "*", "greater than": ">", "dot": "a.b", "long": long, "65": long[:65], "space": " ", "slash": "../x",
			"letter": "ä", "newline": `a\n`, "NUL": `\u0000`,
		} {
			cases[name+" of "+what] = struct{ in, field, reason string }{
				`{"input":"x","` + name + `":"` + token + `"}`, name, tokens,
			}
		}
	}
	for _, name := range []string{
		"id", "tenant", "agent", "input", "context", "session", "priority", "labels", "limits", "traceparent", "description",
	} {
		reason := "null is not allowed"
		cases["null for "+name] = struct{ in, field, reason string }{`{"` + name + `":null}`, name, reason}
		reason = map[bool]string{true: "must be an object", false: "must be a string"}[name == "limits" || name == "labels"]
		switch name {
		case "input", "description":
			reason = "must be a string or an array"
		case "context":
			continue // it may be any JSON; that it is an object is checked later
		}
		cases["boolean for "+name] = struct{ in, field, reason string }{`{"` + name + `":true}`, name, reason + ", not a boolean"}
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := messages.DecodeTask([]byte(tc.in))
			wantFieldError(t, name, err)
			noDiff(t, "error", error(&messages.FieldError{Field: tc.field, Reason: tc.reason}), err)
		})
	}
}

func TestDecodeTaskAcceptsTheLargest(t *testing.T) {
	t.Parallel()
	labels := map[string]string{}
	for i := range 64 {
		labels[fmt.Sprintf("%02d", i)+strings.Repeat("k", 254)] = strings.Repeat("v", 256)
	}
	want := messages.Task{
		ID: strings.Repeat("-", 64), Tenant: strings.Repeat("_", 64), Agent: strings.Repeat("a", 64),
		Session: strings.Repeat("Z", 64), Priority: messages.PriorityLow, Input: messages.TextInput(strings.Repeat("x", 1<<20)),
		Context: json.RawMessage(`{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}`),
		Labels:  labels, Limits: &messages.Limits{MaxSteps: 10_000}, Traceparent: "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-" + strings.Repeat("t", 72),
	}
	got, err := messages.DecodeTask(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	noDiff(t, "task", &want, got)

	// A record that holds it can be read, however deep its context is.
	b, err := record.EncodeRecords([]record.Record{&record.Started{Task: want}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.DecodeRecords(b); err != nil {
		t.Error(err)
	}
}

func TestDecodeTaskFor(t *testing.T) {
	t.Parallel()
	got, err := messages.DecodeTaskFor(ref, messages.PriorityLow, []byte(`{"input":"x","tenant":"acme"}`))
	if err != nil {
		t.Fatal(err)
	}
	noDiff(t, "task", &messages.Task{
		ID: ref.Run, Tenant: ref.Tenant, Agent: "default", Priority: messages.PriorityLow, Input: messages.TextInput("x"),
	}, got)
	for field, body := range map[string]string{
		"id": `{"input":"x","id":"*"}`, "tenant": `{"input":"x","tenant":"other"}`, "priority": `{"input":"x","priority":"high"}`,
	} {
		_, err := messages.DecodeTaskFor(ref, messages.PriorityLow, []byte(body))
		wantFieldError(t, field, err)
		if !strings.HasPrefix(err.Error(), field+": is ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestValidateOfTaskThatWasNotDecoded(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*messages.Task){
		"input":             func(t *messages.Task) { t.Input = messages.TextInput("\xff") },
		"context":           func(t *messages.Task) { t.Context = json.RawMessage(`{"a":1`) },
		"context.a":         func(t *messages.Task) { t.Context = json.RawMessage(`{"a":1,"a":2}`) },
		"labels.a":          func(t *messages.Task) { t.Labels = map[string]string{"a": "\xff"} },
		"tenant":            func(t *messages.Task) { t.Tenant = "" },
		"agent":             func(t *messages.Task) { t.Agent = "" },
		"priority":          func(t *messages.Task) { t.Priority = "" },
		"limits.maxSteps":   func(t *messages.Task) { t.Limits = &messages.Limits{MaxSteps: -1} },
		"outputSchema.type": func(t *messages.Task) { t.Plan, t.OutputSchema = nil, json.RawMessage(`{}`) },
	} {
		task := fullTask()
		change(&task)
		err := task.Validate()
		wantFieldError(t, field, err)
		if !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestFingerprintIsOfTheMeaning(t *testing.T) {
	t.Parallel()
	same := []string{
		`{"id":"a","input":"x","context":{"a":1,"b":[2]},"labels":{"a":"1","b":"2"}}`,
		` { "labels" : {"b":"2","a":"\u0031"}, "context" : { "b" : [ 2 ], "a" : 1 }, "input":[{"text":"x"}], "id":"a" } `,
		`{"id":"a","description":"x","context":{"a":1,"b":[2]},"labels":{"a":"1","b":"2"},"limits":{}}`,
		`{"id":"a","tenant":"default","agent":"default","priority":"normal","input":"x","context":{"b":[2],"a":1},` +
			`"labels":{"a":"1","b":"2"}}`,
	}
	var prints []string
	for _, in := range same {
		task, err := messages.DecodeTask([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		prints = append(prints, task.Fingerprint())
	}
	if len(slices.Compact(prints)) != 1 {
		t.Errorf("the same task has several fingerprints: %v", prints)
	}
}

func TestFingerprintSeesEveryField(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*messages.Task){
		"ID":     func(t *messages.Task) { t.ID = "other" },
		"Tenant": func(t *messages.Task) { t.Tenant = "other" },
		"Agent":  func(t *messages.Task) { t.Agent = "other" },
		"Input":  func(t *messages.Task) { t.Input[1].Text = "other" },
		"Context": func(t *messages.Task) {
			t.Context = json.RawMessage(`{"repository":"longshore","lines":[1,2.51,null]}`)
		},
		"Session":   func(t *messages.Task) { t.Session = "other" },
		"Priority":  func(t *messages.Task) { t.Priority = messages.PriorityLow },
		"Labels":    func(t *messages.Task) { t.Labels["team"] = "other" },
		"Limits":    func(t *messages.Task) { t.Limits.MaxSteps++ },
		"Plan":      func(t *messages.Task) { t.Plan.Steps[0].Args = json.RawMessage(`{"path":"b.go"}`) },
		"Workspace": func(t *messages.Task) { t.Workspace = "other" },
		"OutputSchema": func(t *messages.Task) {
			t.OutputSchema = json.RawMessage(`{"type":"object","required":["m"]}`)
		},
		"Seed":        func(t *messages.Task) { t.Seed = new(int64(8)) },
		"Deadline":    func(t *messages.Task) { t.Deadline = new(t.Deadline.Add(time.Second)) },
		"NotBefore":   func(t *messages.Task) { t.NotBefore = new(t.NotBefore.Add(time.Second)) },
		"Webhook":     func(t *messages.Task) { t.Webhook = nil },
		"Concurrency": func(t *messages.Task) { t.Concurrency.Key += "x" },
		"Requires":    func(t *messages.Task) { t.Requires = messages.Labels{"gpu": "false"} },
		"Files":       func(t *messages.Task) { t.Files = []messages.TaskFile{{Path: "a.txt", Text: new("")}} },
		"Manifest":    func(t *messages.Task) { t.Manifest = strings.Repeat("0a", 32) },
	}
	seen := map[string]string{}
	task := fullTask()
	seen[task.Fingerprint()] = "unchanged"
	for name, change := range changes {
		task := fullTask()
		change(&task)
		if other, ok := seen[task.Fingerprint()]; ok {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[task.Fingerprint()] = name
	}
	if n := reflect.TypeFor[messages.Task]().NumField(); n != len(changes)+2 {
		t.Errorf("a task has %d fields and %d were tried, besides Traceparent and By", n, len(changes))
	}
	retry := fullTask()
	retry.Traceparent, retry.By = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "bob"
	if _, ok := seen[retry.Fingerprint()]; !ok {
		t.Error("the same task sent again within another trace counts as another task")
	}
}

func TestFingerprintTellsLargeNumbersApart(t *testing.T) {
	t.Parallel()
	a, b := fullTask(), fullTask()
	a.Context, b.Context = json.RawMessage(`{"n":9007199254740992}`), json.RawMessage(`{"n":9007199254740993}`)
	if a.Fingerprint() == b.Fingerprint() {
		t.Error("two numbers that differ have one fingerprint")
	}
}

func TestFingerprintOfASchemaIsOfItsMeaning(t *testing.T) {
	t.Parallel()
	a, b := fullTask(), fullTask()
	a.OutputSchema = json.RawMessage(`{"type":"object","required":["n"]}`)
	b.OutputSchema = json.RawMessage(`{ "required":["n"], "type":"object" }`)
	if a.Fingerprint() != b.Fingerprint() {
		t.Error("the same schema has two fingerprints")
	}
}

func TestInputWithoutContentIsNotNull(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(messages.Task{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"input":[]}`, string(b)); diff != "" {
		t.Error(diff)
	}
}

package messages_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

var batch = messages.BatchRef{Tenant: "default", ID: "b"}

func TestTaskIDOfALine(t *testing.T) {
	for _, custom := range []string{"a", strings.Repeat("ü", 100), "*.>", " "} {
		ref := messages.BatchRef{Tenant: "t", ID: strings.Repeat("x", 36)}
		id := ref.TaskID(custom)
		if !strict.ValidToken(id) || id != ref.TaskID(custom) || id == ref.TaskID(custom+"x") {
			t.Errorf("%q: %q", custom, id)
		}
		if back, ok := messages.BatchOf(messages.Ref{Tenant: "t", Run: id}); !ok || back != ref {
			t.Errorf("%q: %v", id, back)
		}
	}
	for _, run := range []string{messages.NewID(time.Now()), "x", "_" + strings.Repeat("0", 26), "b_" + strings.Repeat("g", 26)} {
		if ref, ok := messages.BatchOf(messages.Ref{Tenant: "t", Run: run}); ok {
			t.Errorf("%q is of %v", run, ref)
		}
	}
}

func TestBatchTemplate(t *testing.T) {
	for name, tc := range map[string]struct{ template, line, want, wrong string }{
		"places":           {`{"input":"{{a}} and {{ b }}","agent":"{{c}}"}`, `{"a":"x","b":1.50,"c":"poet"}`, "x and 1.50", ""},
		"a value is text":  {`{"input":"{{a}}"}`, `{"a":"{{b}}"}`, "{{b}}", ""},
		"quotes":           {`{"input":"say {{a}}"}`, `{"a":"\"},{\"input\":\"x"}`, `say "},{"input":"x`, ""},
		"more than needed": {`{"input":"{{a}}"}`, `{"a":true,"other":"x"}`, "true", ""},
		"missing":          {`{"input":"{{a}}"}`, `{}`, "", "vars.a"},
		"an object":        {`{"input":"{{a}}"}`, `{"a":{}}`, "", "vars.a"},
		"bad name":         {`{"input":"{{a b}}"}`, `{}`, "", "template"},
		"unknown field":    {`{"inputs":"{{a}}"}`, `{}`, "", "template.inputs"},
		"an agent":         {`{"input":"x","agent":"{{a}}"}`, `{"a":"no name"}`, "", "agent"},
		"an id":            {`{"input":"x","id":"mine"}`, `{}`, "", "id"},
		"too large":        {`{"input":"` + strings.Repeat("{{a}}", 3000) + `"}`, `{"a":"` + strings.Repeat("x", 1000) + `"}`, "", "vars"},
	} {
		t.Run(name, func(t *testing.T) {
			tpl, err := messages.ParseBatchTemplate([]byte(tc.template))
			var task *messages.Task
			if err == nil {
				_, task, err = messages.DecodeBatchLine(batch, []byte(`{"custom_id":"1","vars":`+tc.line+`}`), tpl)
			}
			var field *messages.FieldError
			switch {
			case tc.wrong != "":
				if !errors.As(err, &field) || field.Field != tc.wrong {
					t.Errorf("%v, want %s", err, tc.wrong)
				}
			case err != nil || task.Input.Text() != tc.want:
				t.Errorf("%v, %v", task, err)
			}
		})
	}
	tpl, err := messages.ParseBatchTemplate([]byte(`{"input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := messages.DecodeBatchLine(batch, []byte(`{"custom_id":"1","input":"y"}`), tpl); err == nil {
		t.Error("a line with a task of its own beside a template")
	}
}

func TestBatchSettings(t *testing.T) {
	now := time.Now()
	past, far, minus := now.Add(-time.Second), now.Add(15*24*time.Hour), -1.0
	for field, s := range map[string]messages.BatchSettings{
		"name": {Name: strings.Repeat("x", 257)}, "maxCost": {MaxCost: &minus}, "expiresAt": {ExpiresAt: &past},
	} {
		var wrong *messages.FieldError
		if err := s.Check(now); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := (&messages.BatchSettings{ExpiresAt: &far}).Check(now); err == nil {
		t.Error("a batch that outlives its events")
	}
}

// Whatever a line is, it is a task that can be stored and read again, or an error.
func FuzzBatchLine(f *testing.F) {
	for _, s := range []string{
		`{"custom_id":"a","input":"x"}`, `{"custom_id":"a","vars":{"a":1}}`, `{"custom_id":"\u0000","input":"x"}`, `[]`, `{`, `null`,
		`{"custom_id":"a","input":["x"]}`, `{"custom_id":"a","description":"x","labels":{"k":"v"}}`, `{"custom_id":"a","Input":"x"}`,
		`{"custom_id":"a","custom_id":"b","input":"x"}`, `{"custom_id":"a","context":{"a":[[[[1e400]]]]},"input":"x"}`,
	} {
		f.Add([]byte(s))
	}
	tpl, err := messages.ParseBatchTemplate([]byte(`{"input":"a {{a}}","labels":{"k":"{{a}}"}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, template := range []*messages.BatchTemplate{nil, tpl} {
			custom, task, err := messages.DecodeBatchLine(batch, data, template)
			if err != nil {
				if _, ok := errors.AsType[*messages.FieldError](err); !ok {
					t.Errorf("%T names no field: %v", err, err)
				}
				continue
			}
			body, err := json.Marshal(messages.BatchLine{Line: 1, CustomID: custom, Task: *task})
			if err != nil {
				t.Fatal(err)
			}
			var back messages.BatchLine
			if err := strict.Decode(body, &back); err != nil || back.Task.Fingerprint() != task.Fingerprint() || back.Task.ID != batch.TaskID(custom) {
				t.Errorf("%s: %v", body, err)
			}
		}
	})
}

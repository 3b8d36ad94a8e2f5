package messages_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestBudgetIsChecked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, field string }{
		"negative calls":       {`{"modelCalls":-1}`, "modelCalls"},
		"too many calls":       {`{"toolCalls":1000001}`, "toolCalls"},
		"negative tokens":      {`{"tokens":-5}`, "tokens"},
		"half a token":         {`{"tokens":0.5}`, "tokens"},
		"negative cost":        {`{"cost":-0.01}`, "cost"},
		"a fortune":            {`{"cost":1e10}`, "cost"},
		"cost as text":         {`{"cost":"1"}`, "cost"},
		"seconds as a number":  {`{"wallTime":90}`, "wallTime"},
		"no duration":          {`{"wallTime":"soon"}`, "wallTime"},
		"a negative duration":  {`{"wallTime":"-1s"}`, "wallTime"},
		"a long duration":      {`{"wallTime":"9000h"}`, "wallTime"},
		"an overlong duration": {`{"wallTime":"99999999999h"}`, "wallTime"},
		"an unknown field":     {`{"dollars":1}`, "dollars"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := messages.DecodeTask([]byte(`{"input":"x","limits":` + tc.in + `}`))
			wantField(t, "limits."+tc.field, err)
			var d messages.Definition
			err = strict.Decode([]byte(`{"name":"a","budget":`+tc.in+`}`), &d)
			if err == nil {
				d.SetDefaults()
				err = d.Validate()
			}
			wantField(t, "budget."+tc.field, err)
		})
	}
	for field, b := range map[string]messages.Budget{
		"budget.soft":         {Soft: 1},
		"budget.onBudget":     {OnBudget: "beg"},
		"budget.unknownPrice": {UnknownPrice: "guess"},
		"budget.cost":         {Caps: messages.Caps{Cost: new(math.NaN())}},
	} {
		d := messages.Definition{Name: "a", Budget: &b}
		d.SetDefaults()
		wantField(t, field, d.Validate())
	}
	_, err := messages.DecodeTask([]byte(`{"input":"x","limits":{"soft":0.5}}`))
	wantField(t, "limits.soft", err) // how a budget is kept is the agent's
	_, err = messages.DecodeTask([]byte(`{"input":"x","deadline":"tomorrow"}`))
	wantField(t, "deadline", err)
}

func wantField(t *testing.T, field string, err error) {
	t.Helper()
	fe, ok := err.(*messages.FieldError)
	if !ok || fe.Field != field {
		t.Errorf("error %v, want one of field %s", err, field)
	}
}

func TestTasksNarrow(t *testing.T) {
	t.Parallel()
	caps := func(in string) (c messages.Caps) {
		if err := strict.Decode([]byte(in), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	const granted = `{"modelCalls":5,"toolCalls":5,"tokens":500,"cost":0.5,"wallTime":"5m0s"}`
	for name, tc := range map[string]struct{ agent, task, want string }{
		"nothing asked":        {granted, `{}`, granted},
		"nothing granted":      {`{}`, granted, granted},
		"less":                 {granted, `{"modelCalls":1,"toolCalls":2,"tokens":3,"cost":0.25,"wallTime":"4s"}`, `{"modelCalls":1,"toolCalls":2,"tokens":3,"cost":0.25,"wallTime":"4s"}`},
		"more changes nothing": {granted, `{"modelCalls":9,"toolCalls":9,"tokens":900,"cost":9,"wallTime":"9h"}`, granted},
		"no money at all":      {granted, `{"cost":0}`, `{"modelCalls":5,"toolCalls":5,"tokens":500,"cost":0,"wallTime":"5m0s"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := messages.Definition{Budget: &messages.Budget{Caps: caps(tc.agent)}}
			got, err := json.Marshal(d.Caps(&messages.Limits{Caps: caps(tc.task)}))
			if err != nil || string(got) != tc.want {
				t.Errorf("caps %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// The same moment in another zone is the same task.
func TestFingerprintOfADeadline(t *testing.T) {
	t.Parallel()
	a, b := fullTask(), fullTask()
	b.Deadline = new(b.Deadline.In(time.FixedZone("far", 9*3600)))
	if a.Fingerprint() != b.Fingerprint() {
		t.Error("the zone of the deadline makes another task")
	}
}

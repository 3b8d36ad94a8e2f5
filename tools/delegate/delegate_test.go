package delegate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/delegate"
	"github.com/longshore-run/longshore/tools/toolstest"
)

func set(t testing.TB) (*tools.Set, tools.Tool) {
	t.Helper()
	ts, err := delegate.Tools()
	if err != nil {
		t.Fatal(err)
	}
	s, err := tools.NewSet(ts...)
	if err != nil {
		t.Fatal(err)
	}
	return s, ts[0]
}

func ask(t testing.TB, s *tools.Set, args string) (*tools.Delegation, string) {
	t.Helper()
	specs, err := s.Specs([]string{messages.ToolDelegate})
	if err != nil {
		t.Fatal(err)
	}
	raw, refused := s.Check(messages.ToolCall{ID: "c", Name: messages.ToolDelegate, Arguments: args}, specs)
	if refused != nil {
		return nil, refused.Content[0].Text
	}
	r, err := s.Call(t.Context(), messages.ToolDelegate, tools.Call{Arguments: raw, Delegate: &messages.Delegate{Agents: []string{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Delegation == nil {
		return nil, r.Content[0].Text
	}
	return r.Delegation, ""
}

func TestConformance(t *testing.T) {
	_, tool := set(t)
	toolstest.Run(t, tool,
		toolstest.Case{Arguments: `{"tasks":[{"agent":"a","input":"x"}]}`, Delegate: &messages.Delegate{Agents: []string{"a"}}},
		toolstest.Case{Arguments: `{"tasks":[{"agent":"b","input":"x"}]}`, Delegate: &messages.Delegate{Agents: []string{"a"}}, Fails: true},
		toolstest.Case{Arguments: `{"tasks":[{"agent":"a","input":"x"}]}`, Fails: true})
}

func TestDelegate(t *testing.T) {
	s, _ := set(t)
	two := `"tasks":[{"agent":"a","input":"x"},{"agent":"b","input":"y"}]`
	for args, want := range map[string]tools.Delegation{
		`{` + two + `}`: {Need: 2, Any: true},
		`{` + two + `,"wait":"all","onFailure":"fail"}`:               {Need: 2, OnFailure: "fail"},
		`{` + two + `,"wait":"first"}`:                                {Need: 1},
		`{` + two + `,"wait":"quorum","quorum":2,"onFailure":"fail"}`: {Need: 2, OnFailure: "fail"},
	} {
		d, why := ask(t, s, args)
		if d == nil || len(d.Tasks) != 2 || d.Tasks[1] != (tools.Subtask{Agent: "b", Input: "y"}) || d.Need != want.Need || d.Any != want.Any || d.OnFailure != want.OnFailure {
			t.Errorf("%s: %+v %s", args, d, why)
		}
	}
	many := strings.TrimSuffix(strings.Repeat(`{"agent":"a","input":"x"},`, 65), ",")
	large := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"agent":"a","input":%q},`, strings.Repeat("x", 64<<10)), 9), ",")
	for args, want := range map[string]string{
		`{"tasks":[]}`:                               "tasks: give 1 to 64.",
		`{"tasks":[` + many + `]}`:                   "tasks: give 1 to 64.",
		`{"tasks":[` + large + `]}`:                  "tasks: the inputs are longer than",
		`{"tasks":[{"agent":"c","input":"x"}]}`:      `tasks[0].agent: "c" is none of the agents that you may ask: a, b.`,
		`{"tasks":[{"agent":"a","input":" \n"}]}`:    "tasks[0].input: is empty.",
		`{"tasks":[{"agent":"a","input":"\u0000"}]}`: "tasks[0].input: must be text.",
		`{"tasks":[{"agent":"a","input":"` + strings.Repeat("x", 64<<10+1) + `"}]}`: "tasks[0].input: longer than 65536 bytes",
		`{` + two + `,"wait":"some"}`:                      "wait: must be",
		`{` + two + `,"wait":"quorum"}`:                    "quorum: must be 1 to 2",
		`{` + two + `,"wait":"quorum","quorum":3}`:         "quorum: must be 1 to 2",
		`{` + two + `,"quorum":1}`:                         "quorum: only with wait quorum.",
		`{` + two + `,"onFailure":"ignore"}`:               "onFailure: must be",
		`{` + two + `,"parent":"r"}`:                       "parent",
		`{"tasks":[{"agent":"a","input":"x","budget":1}]}`: "budget",
	} {
		if d, why := ask(t, s, args); d != nil || !strings.Contains(why, want) {
			t.Errorf("%.80s: %+v %q, want %q", args, d, why, want)
		}
	}
	_, tool := set(t)
	if r, err := tool.Call(t.Context(), tools.Call{Arguments: []byte(`{` + two + `}`)}); err != nil || !r.IsError {
		t.Errorf("an agent that may ask no one: %+v %v", r, err)
	}
}

// Whatever a model writes, what comes out is within the bounds.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"tasks":[{"agent":"a","input":"x"}]}`, `{"tasks":[{"agent":"a","input":"x"}],"wait":"quorum","quorum":-1}`,
		`{"tasks":null}`, `{"tasks":[null]}`, `[]`, `{"tasks":[{"agent":"a","input":"x"}],"quorum":1e99}`, `{"tasks":[{"agent":"a","input":"\ud800"}]}`,
	} {
		f.Add(seed)
	}
	s, _ := set(f)
	f.Fuzz(func(t *testing.T, args string) {
		d, why := ask(t, s, args)
		switch {
		case d == nil && why == "":
			t.Error("it is refused without a reason")
		case d != nil && (len(d.Tasks) < 1 || len(d.Tasks) > 64 || d.Need < 1 || d.Need > len(d.Tasks)):
			t.Errorf("%+v", d)
		case d != nil && !json.Valid([]byte(args)):
			t.Error("it was no JSON")
		}
	})
}

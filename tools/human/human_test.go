package human_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/human"
	"github.com/longshore-run/longshore/tools/toolstest"
)

func TestAskHuman(t *testing.T) {
	ts, err := human.Tools()
	if err != nil {
		t.Fatal(err)
	}
	toolstest.Run(t, ts[0], toolstest.Case{Arguments: `{"question":"Which colour?"}`}, toolstest.Case{Arguments: `{"question":""}`, Fails: true})
	for name, tc := range map[string]struct{ question, want string }{
		"a question": {" Which colour? ", ""},
		"none":       {" \n", "The question is empty."},
		"too long":   {strings.Repeat("?", 8<<10+1), "The question is longer than 8 KiB: ask in fewer words."},
	} {
		t.Run(name, func(t *testing.T) {
			args, err := json.Marshal(map[string]string{"question": tc.question})
			if err != nil {
				t.Fatal(err)
			}
			r, err := ts[0].Call(t.Context(), tools.Call{Arguments: args})
			switch {
			case err != nil:
				t.Fatal(err)
			case tc.want != "":
				if !r.IsError || r.Content[0].Text != tc.want {
					t.Errorf("%+v", r)
				}
			case r.Park == nil || r.Park.Reason != "answer" || r.Park.Question != "Which colour?" || r.Park.For <= 0:
				t.Errorf("%+v", r.Park)
			}
		})
	}
}

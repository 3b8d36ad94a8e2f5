package model_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/model"
)

func TestErrorSaysFirstWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		err  model.Error
		want string
	}{
		"class alone":     {model.Error{Class: model.Network}, "model: network"},
		"detail":          {model.Error{Class: model.Overloaded, Status: 503, Detail: "busy"}, "model: overloaded (HTTP 503): busy"},
		"hint":            {model.Error{Class: model.Auth, Hint: "check the key"}, "model: auth: check the key"},
		"hint and detail": {model.Error{Class: model.Auth, Status: 401, Detail: "no", Hint: "check the key"}, "model: auth (HTTP 401): check the key (no)"},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	long := model.Error{Class: model.ContextLength, Detail: strings.Repeat("x", 500), Hint: "give it less to read"}
	if got := long.Error()[:100]; !strings.Contains(got, "give it less") {
		t.Errorf("got %q, want the hint before what the provider said", got)
	}
}

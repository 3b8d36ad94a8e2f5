package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestCatalogOverHTTP(t *testing.T) {
	h := open(t)
	var applied control.AgentApplied
	h.do("PUT", "/v1/agents/writer?ifRevision=0", `{"instructions":"One."}`, 200, &applied, "Longshore-By", "ann")
	if !applied.Changed || applied.Revision == 0 || applied.Name != "writer" {
		t.Errorf("%+v", applied)
	}
	first := applied.Revision
	h.do("PUT", "/v1/agents/writer", `{"name":"writer","instructions":"Two."}`, 200, &applied)
	var history control.History
	h.do("GET", "/v1/agents/writer/revisions", "", 200, &history)
	if len(history.Changes) != 2 || history.Changes[1].By != "ann" || history.Changes[1].Revision != first {
		t.Errorf("%+v", history)
	}
	var was control.AgentRevision
	h.do("GET", fmt.Sprintf("/v1/agents/writer/revisions/%d", first), "", 200, &was)
	if was.Agent == nil || was.Agent.Instructions != "One." {
		t.Errorf("%+v", was)
	}
	var p messages.Prompt
	h.do("PUT", "/v1/prompts/greet", `{"text":"Hi {name}","requiredVars":["name"],"tags":["a"]}`, 200, &p, "Longshore-By", "ann")
	if p.Version == 0 || p.Author != "ann" || p.Engine != messages.EngineFString {
		t.Errorf("%+v", p)
	}
	var r control.PromptRendered
	h.do("POST", "/v1/prompts/greet/render", `{"vars":{"name":"Bo"},"throwOnMissing":true}`, 200, &r)
	if r.Text != "Hi Bo" || r.TokensEstimate != 2 || r.Version != p.Version {
		t.Errorf("%+v", r)
	}
	var list control.PromptList
	h.do("GET", "/v1/prompts?tag=a", "", 200, &list)
	if len(list.Prompts) != 1 || list.Prompts[0].Text != "" {
		t.Errorf("%+v", list)
	}
	var v control.PromptVerdict
	h.do("POST", "/v1/prompts:validate", `{"id":"x","engine":"mustache","text":"{{> file}}"}`, 200, &v)
	if v.OK || len(v.Errors) == 0 {
		t.Errorf("%+v", v)
	}
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		code               messages.Code
		field              string
	}{
		"agent of an old":          {"PUT", "/v1/agents/writer?ifRevision=" + strconv.FormatUint(first, 10), `{}`, 409, "conflict", ""},
		"agent by another name":    {"PUT", "/v1/agents/writer", `{"name":"other"}`, 400, "invalid_input", "name"},
		"agent with a typo":        {"PUT", "/v1/agents/writer", `{"instructoins":"x"}`, 400, "invalid_input", "instructoins"},
		"agent with no steps":      {"PUT", "/v1/agents/writer", `{"maxSteps":-1}`, 400, "invalid_input", "maxSteps"},
		"agent of nothing":         {"PUT", "/v1/agents/writer", ``, 400, "invalid_input", "body"},
		"hostile agent":            {"PUT", "/v1/agents/a.%3E", `{}`, 400, "invalid_input", "name"},
		"revision of words":        {"PUT", "/v1/agents/writer?ifRevision=one", `{}`, 400, "invalid_input", "ifRevision"},
		"agent never there":        {"GET", "/v1/agents/unknown/revisions", "", 404, "unknown_agent", ""},
		"no revision":              {"GET", "/v1/agents/writer/revisions/0", "", 400, "invalid_input", "revision"},
		"another revision":         {"GET", "/v1/agents/writer/revisions/999", "", 404, "unknown_agent", ""},
		"delete unknown":           {"DELETE", "/v1/agents/unknown", "", 404, "unknown_agent", ""},
		"delete an old":            {"DELETE", "/v1/agents/writer?ifRevision=1000", "", 409, "conflict", ""},
		"prompt of nothing":        {"PUT", "/v1/prompts/p", `{}`, 400, "invalid_input", "text"},
		"prompt that is broken":    {"PUT", "/v1/prompts/p", `{"text":"{"}`, 400, "invalid_input", "prompt"},
		"prompt by another id":     {"PUT", "/v1/prompts/p", `{"id":"q","text":"x"}`, 400, "invalid_input", "id"},
		"hostile prompt":           {"GET", "/v1/prompts/%2A", "", 400, "invalid_input", "id"},
		"large prompt":             {"PUT", "/v1/prompts/p", `{"text":"` + strings.Repeat("x", 64<<10+1) + `"}`, 400, "invalid_input", "text"},
		"no prompt":                {"GET", "/v1/prompts/q", "", 404, "not_found", ""},
		"no version":               {"GET", "/v1/prompts/greet?version=99", "", 404, "not_found", ""},
		"versions of none":         {"GET", "/v1/prompts/q/versions", "", 404, "not_found", ""},
		"prompt of an old":         {"PUT", "/v1/prompts/greet?ifVersion=99", `{"text":"x"}`, 409, "conflict", ""},
		"render without variables": {"POST", "/v1/prompts/greet/render", ``, 400, "invalid_input", "vars"},
		"render of a list":         {"POST", "/v1/prompts/greet/render", `{"vars":[]}`, 400, "invalid_input", "vars"},
		"render of none":           {"POST", "/v1/prompts/q/render", `{}`, 404, "not_found", ""},
		"delete no prompt":         {"DELETE", "/v1/prompts/q", "", 404, "not_found", ""},
		"a parameter":              {"GET", "/v1/prompts?all=1", "", 400, "invalid_input", "all"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hall{t, h.dev, h.url}
			var p messages.Problem
			h.do(tc.method, tc.path, tc.body, tc.status, &p)
			if p.Code != tc.code || p.Field != tc.field || p.Detail == "" {
				t.Errorf("%+v", p)
			}
		})
	}
	h.do("DELETE", "/v1/prompts/greet", "", 200, nil)
	h.do("DELETE", "/v1/agents/writer", "", 200, nil)
}

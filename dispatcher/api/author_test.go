package api_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// An author changes an agent's texts, not what it may do.
func TestAuthorsChangeTextsAlone(t *testing.T) {
	g := openGuarded(t)
	admin, author := g.key(control.AllTenants, control.RoleAdmin), g.key(control.AllTenants, control.RoleAuthor)
	g.do("PUT", "/v1/agents/clerk", `{"name":"clerk","instructions":"File it.","tools":["read_file"],"grants":{"hosts":["a.example"]}}`, http.StatusOK, nil, admin...)
	for name, tc := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"the same":          {`{"name":"clerk","instructions":"File it.","tools":["read_file"],"grants":{"hosts":["a.example"]}}`, 200, ""},
		"other texts":       {`{"name":"clerk","instructions":"File it well.","description":"Files.","tools":["read_file"],"grants":{"hosts":["a.example"]}}`, 200, ""},
		"another tool":      {`{"name":"clerk","tools":["read_file","shell"],"grants":{"hosts":["a.example"]}}`, 403, "agent.tools"},
		"wider grants":      {`{"name":"clerk","tools":["read_file"],"grants":{"hosts":["*"]}}`, 403, "agent.grants"},
		"no grants":         {`{"name":"clerk","tools":["read_file"]}`, 403, "agent.grants"},
		"a hook":            {`{"name":"clerk","tools":["read_file"],"grants":{"hosts":["a.example"]},"hooks":[{"on":"pre_tool","url":"https://evil.example/"}]}`, 403, "agent.hooks"},
		"a laxer policy":    {`{"name":"clerk","tools":["read_file"],"grants":{"hosts":["a.example"]},"policy":{"events":{"redact":false}}}`, 403, "agent.policy"},
		"no approvals":      {`{"name":"clerk","tools":["read_file"],"grants":{"hosts":["a.example"]},"approve":{"never":["read_file"]}}`, 403, "agent.approve"},
		"a new one of text": {`{"name":"poet","instructions":"Write."}`, 200, ""},
		"a new one":         {`{"name":"thief","instructions":"Take.","tools":["shell"]}`, 403, "agent.tools"},
	} {
		path := "/v1/agents/clerk"
		for _, other := range []string{"poet", "thief"} {
			if strings.Contains(tc.body, `"`+other+`"`) {
				path = "/v1/agents/" + other
			}
		}
		var p messages.Problem
		if tc.status == http.StatusOK {
			g.do("PUT", path, tc.body, tc.status, nil, author...)
			continue
		}
		g.do("PUT", path, tc.body, tc.status, &p, author...)
		if !strings.Contains(p.Detail, tc.field) || p.Code != messages.CodeForbidden {
			t.Errorf("%s: %+v", name, p)
		}
		g.do("PUT", path, tc.body, http.StatusOK, nil, admin...) // who may
		g.do("PUT", "/v1/agents/clerk", `{"name":"clerk","instructions":"File it.","tools":["read_file"],"grants":{"hosts":["a.example"]}}`, http.StatusOK, nil, admin...)
	}
	g.do("DELETE", "/v1/agents/clerk", "", http.StatusForbidden, nil, author...)
}

// What an author may not store, the check of a text says too, with its line.
func TestCheckOfATextKnowsItsAuthor(t *testing.T) {
	g := openGuarded(t)
	admin, author, viewer := g.key(control.AllTenants, control.RoleAdmin), g.key(control.AllTenants, control.RoleAuthor), g.key(control.AllTenants, control.RoleViewer)
	g.do("PUT", "/v1/agents/clerk", `{"name":"clerk","instructions":"File it.","tools":["read_file"]}`, http.StatusOK, nil, admin...)
	check := func(text string, as []string) (v control.AgentVerdict) {
		g.do("POST", "/v1/agents:validate", `{"text":`+strconv.Quote(text)+`,"name":"clerk"}`, http.StatusOK, &v, as...)
		return v
	}
	const more = "name: clerk\ninstructions: File it.\ntools:\n  - read_file\n  - shell\n"
	if v := check(more, admin); !v.OK || v.Agent == nil || len(v.Agent.Tools) != 2 {
		t.Errorf("of an admin: %+v", v)
	}
	for _, as := range [][]string{author, viewer} {
		if v := check(more, as); v.OK || v.Agent != nil || len(v.Problems) != 1 || v.Problems[0].Line != 3 || v.Problems[0].Field != "tools" {
			t.Errorf("%+v", v)
		}
	}
	if v := check("name: clerk\ninstructions: File it well.\ntools: [read_file]\n", author); !v.OK {
		t.Errorf("of texts: %+v", v)
	}
	var formatted control.AgentVerdict
	g.do("POST", "/v1/agents:validate", `{"format":true,"text":`+strconv.Quote(`{"name":"clerk","instructions":"File it.\nWell.\n","tools":["read_file","shell"],"revision":1}`)+`}`, http.StatusOK, &formatted, viewer...)
	if formatted.OK || !strings.HasPrefix(formatted.Text, "apiVersion: longshore.run/v1\n") || !strings.Contains(formatted.Text, "  instructions: |\n    File it.\n    Well.\n") {
		t.Errorf("formatted: %+v", formatted)
	}
	if again := check(formatted.Text, admin); !again.OK || again.Text != "" {
		t.Errorf("checked without a format: %+v", again)
	}
	g.do("POST", "/v1/agents:validate", `{"text":"`+strings.Repeat("x", control.MaxAgentText+1)+`"}`, http.StatusBadRequest, nil, viewer...)
	var stored messages.Definition
	g.do("GET", "/v1/agents/clerk", "", http.StatusOK, &stored, viewer...)
	if stored.Instructions != "File it." || len(stored.Tools) != 1 {
		t.Errorf("a check stored %+v", stored)
	}
}

// A granter decides what agents may do, and nothing else that an admin decides.
func TestGrantersGrantAlone(t *testing.T) {
	g := openGuarded(t)
	granter, operator := g.key(control.AllTenants, control.RoleGranter), g.key(control.AllTenants, control.RoleOperator)
	const clerk = `{"name":"clerk","instructions":"File it.","tools":["read_file","write_file"],"grants":{"hosts":["a.example"]},"approve":{"never":["write_file"]}}`
	g.do("PUT", "/v1/agents/clerk", clerk, http.StatusForbidden, nil, operator...)
	g.do("PUT", "/v1/agents/clerk", clerk, http.StatusOK, nil, granter...)
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "/v1/agents/clerk", ""},
		{"PUT", "/v1/quotas/tenant/acme", `{"slots":1}`},
		{"POST", "/v1/keys", `{"tenant":"*","roles":["admin"]}`},
		{"GET", "/v1/keys", ""},
		{"POST", "/v1/tasks?tenant=acme", `{"input":"go"}`},
		{"POST", "/v1/tasks/r/approvals?tenant=acme", `{"callId":"c","approved":true}`},
	} {
		var p messages.Problem
		g.do(c.method, c.path, c.body, http.StatusForbidden, &p, granter...)
		if p.Code != messages.CodeForbidden {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	if err := control.CheckAccess("acme", []control.AccessRole{control.RoleGranter}); err == nil {
		t.Error("a tenant has a granter of its own")
	}
}

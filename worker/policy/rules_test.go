package policy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/policy"
)

// rules are those of one policy, written as JSON.
func rules(t testing.TB, source, asJSON string) *policy.Rules {
	t.Helper()
	r, err := policy.NewRules(layer(t, source, asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func layer(t testing.TB, source, asJSON string) policy.Layer {
	t.Helper()
	p := new(messages.Policy)
	if err := json.Unmarshal([]byte(asJSON), p); err != nil {
		t.Fatal(err)
	}
	if err := p.Check("policy"); err != nil {
		t.Fatal(err)
	}
	return policy.Layer{Source: source, Policy: p}
}

func TestCategories(t *testing.T) {
	for category, c := range map[string]struct{ found, left []string }{
		"email": {[]string{"ann@example.com", "a.b+c@mail.example.co.uk"}, []string{"@ann", "ann@localhost", "user@host:22"}},
		"phone": {[]string{"+49 30 1234567", "+14155550123", "(415) 555-0123", "415-555-0123"}, []string{"+1", "12-34", "2026-11-23 10:00", "1234567"}},
		"card":  {[]string{"4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"}, []string{"4111111111111112", "0000000000000000", "123456789012"}},
		"iban":  {[]string{"DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19"}, []string{"DE89370400440532013001", "AB12"}},
		"ssn":   {[]string{"078-05-1120"}, []string{"000-12-3456", "666-12-3456", "912-12-3456", "123-00-4567", "123-45-0000", "1234-56-7890"}},
		"key": {
			[]string{
				"sk-proj-" + strings.Repeat("a1", 10), "ghp_" + strings.Repeat("A", 36), "AKIA" + strings.Repeat("Z", 16), "xoxb-1234567890-abc",
				"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
			},
			[]string{"sk-short", "task-force-of-many-words-here", "AKIA", "-----BEGIN CERTIFICATE-----"},
		},
	} {
		r := rules(t, "fleet", fmt.Sprintf(`{"content":[{"name":"r","category":%q}]}`, category))
		for _, text := range c.found {
			out, found, blocked := r.Text(messages.PolicyOutput, "t", "before "+text+" after")
			if out != "before [redacted] after" || len(found) != 1 || blocked {
				t.Errorf("%s %q: %q, %v", category, text, out, found)
			}
			if len(found) > 0 && strings.Contains(found[0].Reason, text) {
				t.Errorf("%s: the reason repeats it: %s", category, found[0].Reason)
			}
		}
		for _, text := range c.left {
			if out, _, _ := r.Text(messages.PolicyOutput, "t", "before "+text+" after"); out != "before "+text+" after" {
				t.Errorf("%s %q became %q", category, text, out)
			}
		}
	}
	if len(messages.PolicyCategories()) != 6 {
		t.Error("a category is without cases")
	}
}

func TestCalls(t *testing.T) {
	for name, c := range map[string]struct {
		policy, tool, args string
		use, rule          string // the arguments in use, and the rule that refuses the call or changed it
		refused            bool
	}{
		"no rules":              {`{}`, "shell", `{}`, `{}`, "", false},
		"denied":                {`{"tools":{"deny":["shell"]}}`, "shell", `{}`, "", "tools.deny", true},
		"denied by a star":      {`{"tools":{"deny":["mcp_*"]}}`, "mcp_x", `{}`, "", "tools.deny", true},
		"another is denied":     {`{"tools":{"deny":["mcp_*"]}}`, "amcp_x", `{}`, `{}`, "", false},
		"allowed":               {`{"tools":{"allow":["read_*"]}}`, "read_file", `{}`, `{}`, "", false},
		"not allowed":           {`{"tools":{"allow":["read_*"]}}`, "write_file", `{}`, "", "tools.allow", true},
		"none is allowed":       {`{"tools":{"allow":[]}}`, "read_file", `{}`, "", "tools.allow", true},
		"deny goes first":       {`{"tools":{"allow":["a"],"deny":["a"]}}`, "a", `{}`, "", "tools.deny", true},
		"a host":                {`{"hosts":["*.example.com"]}`, "get", `{"url":"https://a.example.com/x"}`, `{"url":"https://a.example.com/x"}`, "", false},
		"another host":          {`{"hosts":["*.example.com"]}`, "get", `{"url":"https://evil.net/?a.example.com"}`, "", "hosts", true},
		"a host in a list":      {`{"hosts":["a.example"]}`, "get", `{"all":[{"at":"see HTTPS://EVIL.net/x"}]}`, "", "hosts", true},
		"no hosts":              {`{"hosts":[]}`, "get", `{"url":"http://a.example"}`, "", "hosts", true},
		"in a word":             {`{"hosts":["a.example"]}`, "say", `{"text":"![x](https://evil.net/?q=1)"}`, "", "hosts", true},
		"in JSON in a text":     {`{"hosts":["a.example"]}`, "post", `{"body":"{\"to\":\"https://evil.net\"}"}`, "", "hosts", true},
		"in escaped JSON":       {`{"hosts":["a.example"]}`, "post", `{"body":"{\"to\":\"https\\u003a//evil.net\"}"}`, "", "hosts", true},
		"with backslashes":      {`{"hosts":["a.example"]}`, "get", `{"url":"https:\\\\evil.net\\@a.example"}`, "", "hosts", true},
		"without slashes":       {`{"hosts":["a.example"]}`, "get", `{"url":"https:evil.net"}`, "", "hosts", true},
		"of another scheme":     {`{"hosts":["a.example"]}`, "get", `{"url":"wss://evil.net"}`, "", "hosts", true},
		"behind a user":         {`{"hosts":["a.example"]}`, "get", `{"url":"https://a.example\"@evil.net"}`, "", "hosts", true},
		"over two lines":        {`{"hosts":["a.example"]}`, "get", `{"url":"https://a.example\n.evil.net/"}`, "", "hosts", true},
		"after an empty user":   {`{"hosts":["a.example"]}`, "get", `{"url":"https://@evil.net"}`, "", "hosts", true},
		"in percents":           {`{"hosts":["a.example"]}`, "get", `{"url":"https://evil%2enet/"}`, "", "hosts", true},
		"a listed one in text":  {`{"hosts":["a.example"]}`, "say", `{"text":"<a href=\"https://a.example/x\">me@evil.net</a>, (https://a.example). https://a.example"}`, `{"text":"<a href=\"https://a.example/x\">me@evil.net</a>, (https://a.example). https://a.example"}`, "", false},
		"a listed one in JSON":  {`{"hosts":["a.example"]}`, "say", `{"body":"{\"to\":\"https://a.example\",\"by\":\"me@evil.net\"}"}`, `{"body":"{\"to\":\"https://a.example\",\"by\":\"me@evil.net\"}"}`, "", false},
		"lines of listed ones":  {`{"hosts":["a.example"]}`, "say", `{"text":"https://a.example\nhttps://a.example:443"}`, `{"text":"https://a.example\nhttps://a.example:443"}`, "", false},
		"a title":               {`{"hosts":["a.example"]}`, "say", `{"text":"http: the protocol. https:443"}`, `{"text":"http: the protocol. https:443"}`, "", false},
		"a listed address":      {`{"hosts":["[2001:db8::1]:8080"]}`, "get", `{"url":"http://[2001:DB8::1]:8080/"}`, `{"url":"http://[2001:DB8::1]:8080/"}`, "", false},
		"a field twice":         {`{"content":[{"name":"c","category":"card"}]}`, "t", `{"a":4111111111111111,"a":1}`, `{}`, "c", false},
		"after the end":         {`{"content":[{"name":"c","category":"card"}]}`, "t", `{"a":1} 4111111111111111`, `{"a":1} [redacted]`, "c", false},
		"no URL":                {`{"hosts":[]}`, "get", `{"q":"what is a http server"}`, `{"q":"what is a http server"}`, "", false},
		"an argument":           {`{"content":[{"name":"m","category":"email"}]}`, "t", `{"a":[{"b":"to ann@example.com"}]}`, `{"a":[{"b":"to [redacted]"}]}`, "m", false},
		"a name of a field":     {`{"content":[{"name":"m","category":"email"}]}`, "t", `{"ann@example.com":1}`, `{"[redacted]":1}`, "m", false},
		"a number":              {`{"content":[{"name":"c","category":"card"}]}`, "t", `{"n":4111111111111111}`, `{"n":"[redacted]"}`, "c", false},
		"an escape":             {`{"content":[{"name":"m","category":"email"}]}`, "t", `{"a":"ann\u0040example.com"}`, `{"a":"[redacted]"}`, "m", false},
		"a blocked argument":    {`{"content":[{"name":"m","pattern":"(?i)drop table","action":"block"}]}`, "t", `{"q":"DROP TABLE users"}`, "", "m", true},
		"of another tool":       {`{"content":[{"name":"m","tools":["u"],"category":"email"}]}`, "t", `{"a":"ann@example.com"}`, `{"a":"ann@example.com"}`, "", false},
		"at another point":      {`{"content":[{"name":"m","at":["output"],"category":"email"}]}`, "t", `{"a":"ann@example.com"}`, `{"a":"ann@example.com"}`, "", false},
		"arguments of nonsense": {`{"content":[{"name":"m","category":"email"}]}`, "t", `{"a":"ann@example.com`, `{"a":"[redacted]`, "m", false},
	} {
		t.Run(name, func(t *testing.T) {
			use, found, refusal := rules(t, "agent a", c.policy).Call(c.tool, c.args)
			if (refusal != nil) != c.refused || use != c.use {
				t.Fatalf("%q, refusal %v", use, refusal)
			}
			switch {
			case refusal != nil:
				if refusal.Rule != c.rule || refusal.Source != "agent a" || !strings.HasSuffix(refusal.Reason, "(rule "+c.rule+" of the agent a)") {
					t.Errorf("refused by %+v", refusal)
				}
			case c.rule == "":
				if len(found) > 0 {
					t.Errorf("found %+v", found)
				}
			case len(found) != 1 || found[0].Rule != c.rule:
				t.Errorf("found %+v", found)
			}
		})
	}
}

// A rule finds text that is written in another way: escaped as in JSON, also twice, with digits and signs of other scripts, or with
// characters between that are not seen. What stands around it stays as it is.
func TestSpeltInAnotherWay(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"ann\u0040example.com\n"}`:            `{"a":"[redacted]\n"}`,
		`{"a":"{\"b\":\"ann\\u0040example.com\"}"}`: `{"a":"{\"b\":\"[redacted]\"}"}`,
		"Project\u00a0Falcon":                       "[redacted]",
		"Pro\u200bject Fal\u200dcon!":               "[redacted]!",
		"Ｐｒｏｊｅｃｔ　Ｆａｌｃｏｎ":                            "[redacted]",
		`Project\tFalcon`:                           "[redacted]",
		"Pr\u043eject Falcon":                       "Pr\u043eject Falcon", // Cyrillic
	} {
		for _, action := range []string{messages.PolicyRedact, messages.PolicyBlock} {
			r := rules(t, "fleet", fmt.Sprintf(`{"content":[{"name":"f","pattern":"Project\\sFalcon","action":%[1]q},{"name":"m","category":"email","action":%[1]q}]}`, action))
			out, _, blocked := r.Text(messages.PolicyReply, "", text)
			if blocks := action == messages.PolicyBlock && want != text; blocked != blocks || !blocks && out != want {
				t.Errorf("%s %q: %q, %v", action, text, out, blocked)
			}
		}
	}
}

// Rules of the fleet, the tenant and the agent hold together: what one of them forbids no other allows.
func TestTheStricterWins(t *testing.T) {
	r, err := policy.NewRules(
		layer(t, "fleet", `{"tools":{"deny":["shell"]},"hosts":["a.example","b.example"]}`),
		policy.Layer{Source: "tenant acme"},
		layer(t, "agent x", `{"tools":{"allow":["shell","get"]},"hosts":["b.example","c.example"]}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, url, source string }{
		{"shell", "", "fleet"}, {"other", "", "agent x"}, {"get", "https://a.example", "agent x"}, {"get", "https://c.example", "fleet"}, {"get", "https://b.example", ""},
	} {
		_, _, refusal := r.Call(c.tool, fmt.Sprintf(`{"url":%q}`, c.url))
		if (refusal == nil) != (c.source == "") || refusal != nil && refusal.Source != c.source {
			t.Errorf("%s %s: %+v, want %q", c.tool, c.url, refusal, c.source)
		}
	}
	if none, err := policy.NewRules(policy.Layer{Source: "fleet"}); none != nil || err != nil {
		t.Errorf("no rules are %v, %v", none, err)
	}
}

// The rules of the agents above a run hold for it as well, and say whose they are.
func TestRulesFromAbove(t *testing.T) {
	operator := []policy.Layer{layer(t, "fleet", `{"tools":{"deny":["shell"]}}`)}
	above := []record.RulesFor{{Agent: "top", Policy: layer(t, "", `{"tools":{"deny":["mail"]}}`).Policy}}
	r, err := policy.For(operator, above, &messages.Definition{Name: "low", Policy: layer(t, "", `{"tools":{"deny":["get"]}}`).Policy})
	if err != nil {
		t.Fatal(err)
	}
	for tool, source := range map[string]string{"shell": "fleet", "mail": "agent top", "get": "agent low"} {
		if _, _, refusal := r.Call(tool, `{}`); refusal == nil || refusal.Source != source {
			t.Errorf("%s: %+v, want a refusal of %s", tool, refusal, source)
		}
	}
}

func TestAsks(t *testing.T) {
	const taint = `{"taint":{"private":["sql_*"],"untrusted":["http_get"],"egress":["http_post","mail"]}}`
	for name, c := range map[string]struct {
		policy string
		call   policy.Asked
		rule   string
	}{
		"a tool":                 {`{"approve":[{"name":"r","tool":"mail"}]}`, policy.Asked{Tool: "mail"}, "r"},
		"another tool":           {`{"approve":[{"name":"r","tool":"mail"}]}`, policy.Asked{Tool: "mailbox"}, ""},
		"an argument":            {`{"approve":[{"name":"r","tool":"*","argument":"to.host","pattern":"^prod"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"to":{"host":"prod-1"}}`)}, "r"},
		"another argument":       {`{"approve":[{"name":"r","tool":"*","argument":"to.host","pattern":"^prod"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"host":"prod-1"}`)}, ""},
		"a number":               {`{"approve":[{"name":"r","tool":"*","argument":"n","pattern":"^[0-9]{4,}$"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"n":1000}`)}, "r"},
		"the whole of them":      {`{"approve":[{"name":"r","tool":"*","pattern":"force"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"force":true}`)}, "r"},
		"a host":                 {`{"approve":[{"name":"r","tool":"*","hosts":["*.prod.example"]}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"u":"https://a.prod.example/"}`)}, "r"},
		"another host":           {`{"approve":[{"name":"r","tool":"*","hosts":["*.prod.example"]}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"u":"https://a.test.example/"}`)}, ""},
		"the first":              {`{"approve":[{"name":"r","tool":"t","first":true}]}`, policy.Asked{Tool: "t", First: true}, "r"},
		"the second":             {`{"approve":[{"name":"r","tool":"t","first":true}]}`, policy.Asked{Tool: "t"}, ""},
		"an expensive run":       {`{"approve":[{"name":"r","tool":"t","costAbove":1}]}`, policy.Asked{Tool: "t", Cost: 1.01}, "r"},
		"a cheap run":            {`{"approve":[{"name":"r","tool":"t","costAbove":1}]}`, policy.Asked{Tool: "t", Cost: 1}, ""},
		"private data leaves":    {taint, policy.Asked{Tool: "mail", Had: []string{"http_get", "sql_query"}}, "taint"},
		"only private":           {taint, policy.Asked{Tool: "mail", Had: []string{"sql_query"}}, ""},
		"only untrusted":         {taint, policy.Asked{Tool: "mail", Had: []string{"http_get"}}, ""},
		"it stays in the run":    {taint, policy.Asked{Tool: "write_file", Had: []string{"http_get", "sql_query"}}, ""},
		"the whole, escaped":     {`{"approve":[{"name":"r","tool":"*","pattern":"DROP"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"sql":"DR\u004fP TABLE x"}`)}, "r"},
		"the whole, over lines":  {`{"approve":[{"name":"r","tool":"*","pattern":"DROP\\s+TABLE"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"sql":"DROP\nTABLE x"}`)}, "r"},
		"in a list":              {`{"approve":[{"name":"r","tool":"*","argument":"to.mail","pattern":"@prod"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"to":[{"mail":"a@test"},{"mail":"a@prod"}]}`)}, "r"},
		"a list of signs":        {`{"approve":[{"name":"r","tool":"*","argument":"cmd","pattern":"&&"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"cmd":["a","&&","b"]}`)}, "r"},
		"a host in JSON":         {`{"approve":[{"name":"r","tool":"*","hosts":["*.prod.example"]}]}`, policy.Asked{Tool: "t", Arguments: []byte(`{"body":"{\"u\":\"https://a.prod.example\"}"}`)}, "r"},
		"of arguments that lack": {`{"approve":[{"name":"r","tool":"*","argument":"a","pattern":".*"}]}`, policy.Asked{Tool: "t", Arguments: []byte(`[]`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := rules(t, "fleet", c.policy).Asks(c.call)
			if (f == nil) != (c.rule == "") || f != nil && (f.Rule != c.rule || f.Action != messages.PolicyAsk) {
				t.Errorf("%+v, want %q", f, c.rule)
			}
		})
	}
	for name, c := range map[string]struct {
		policy string
		edit   bool
	}{
		"a rule that lets it be":        {`{"approve":[{"name":"r","tool":"mail","edit":true}]}`, true},
		"a rule that does not":          {`{"approve":[{"name":"r","tool":"mail"}]}`, false},
		"a second rule that does not":   {`{"approve":[{"name":"r","tool":"mail","edit":true},{"name":"s","tool":"*"}]}`, false},
		"a second rule about others":    {`{"approve":[{"name":"r","tool":"mail","edit":true},{"name":"s","tool":"get"}]}`, true},
		"private data that would leave": {`{"approve":[{"name":"r","tool":"mail","edit":true}],` + taint[1:], false},
	} {
		if f := rules(t, "fleet", c.policy).Asks(policy.Asked{Tool: "mail", Had: []string{"http_get", "sql_query"}}); f == nil || f.Rule != "r" || f.Edit != c.edit {
			t.Errorf("%s: %+v", name, f)
		}
	}
	var none *policy.Rules
	if none.Asks(policy.Asked{Tool: "t"}) != nil || none.Judges(messages.PolicyReply) {
		t.Error("no rules ask")
	}
}

// A redirect leads to a host that a person must agree to calls of: it is not followed, unless the call named such a host and a person
// agreed.
func TestRedirects(t *testing.T) {
	r := rules(t, "fleet", `{"hosts":["*.example"],"approve":[{"name":"p","tool":"get","hosts":["*.prod.example"],"argument":"method","pattern":"POST"}]}`)
	for _, c := range []struct{ tool, args, to, rule string }{
		{"get", `{"method":"POST","url":"https://a.example"}`, "b.example:443", ""},
		{"get", `{"method":"POST","url":"https://a.example"}`, "evil.net:443", "hosts"},
		{"get", `{"method":"POST","url":"https://a.example"}`, "x.prod.example:443", "p"},
		{"get", `{"method":"GET","url":"https://a.example"}`, "x.prod.example:443", ""},
		{"other", `{"method":"POST","url":"https://a.example"}`, "x.prod.example:443", ""},
		{"get", `{"method":"POST","url":"https://y.prod.example"}`, "x.prod.example:443", ""},
	} {
		f := r.Redirect(policy.Asked{Tool: c.tool, Arguments: []byte(c.args)}, c.to)
		if (f == nil) != (c.rule == "") || f != nil && (f.Rule != c.rule || f.Action != messages.PolicyBlock) {
			t.Errorf("%s %s to %s: %+v, want %q", c.tool, c.args, c.to, f, c.rule)
		}
	}
	var none *policy.Rules
	if none.Redirect(policy.Asked{}, "a.example:443") != nil {
		t.Error("no rules forbid a redirect")
	}
}

// Redacting what was redacted changes nothing, and JSON stays JSON.
func FuzzCall(f *testing.F) {
	for _, args := range []string{`{"a":"ann@example.com","n":4111111111111111}`, `[`, `{"a":{"b":["+49 30 1234567"]}}`, `"x"`, "\xff"} {
		f.Add(args)
	}
	r := rules(f, "fleet", `{"content":[{"name":"a","category":"email"},{"name":"b","category":"card"},{"name":"c","category":"phone"},{"name":"d","category":"key"},`+
		`{"name":"e","category":"iban"},{"name":"f","category":"ssn"}]}`)
	f.Fuzz(func(t *testing.T, args string) {
		use, found, refusal := r.Call("t", args)
		if refusal != nil {
			t.Fatalf("refused: %+v", refusal)
		}
		if json.Valid([]byte(args)) && !json.Valid([]byte(use)) {
			t.Errorf("%q became %q", args, use)
		}
		if len(found) == 0 && use != args {
			t.Errorf("%q became %q without a finding", args, use)
		}
		if again, _, _ := r.Call("t", use); again != use && !slices.Contains([]rune(use), '\uFFFD') {
			t.Errorf("%q, then %q", use, again)
		}
	})
}

// What a rule hides is not in the reason that the model and the events are told.
func ExampleRules_Call() {
	r, err := policy.NewRules(policy.Layer{Source: "tenant acme", Policy: &messages.Policy{
		Tools:   &messages.ToolRules{Deny: []string{"shell"}},
		Content: []messages.ContentRule{{Name: "no-addresses", Category: "email"}},
	}})
	if err != nil {
		panic(err)
	}
	use, found, _ := r.Call("note", `{"text":"ask ann@example.com"}`)
	fmt.Println(use, found[0].Reason)
	_, _, refusal := r.Call("shell", `{}`)
	fmt.Println(refusal.Reason)
	// Output:
	// {"text":"ask [redacted]"} an e-mail address was taken out (rule no-addresses of the tenant acme)
	// the tool shell is not allowed (rule tools.deny of the tenant acme)
}

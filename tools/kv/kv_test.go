package kv_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/kvtest"
)

// desk makes calls as a runner does.
type desk struct {
	set   *tools.Set
	specs []messages.ToolSpec
	calls int
}

func newDesk(t *testing.T, store kv.Store, part string) *desk {
	t.Helper()
	cfg, err := kv.ParseConfig([]byte(part))
	if err != nil {
		t.Fatal(err)
	}
	if store == nil {
		store = kv.NewMemory(cfg.Limits(), nil)
	}
	made, err := kv.Tools(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(made...)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := set.Specs(set.Names())
	if err != nil {
		t.Fatal(err)
	}
	return &desk{set: set, specs: specs}
}

// who makes a call.
type who struct{ tenant, run, session, scope string }

// call returns the text of the result; that of a failure begins with "! ".
func (d *desk) call(t *testing.T, by who, tool, args string) string {
	t.Helper()
	raw, refusal := d.set.Check(messages.ToolCall{Name: tool, Arguments: args}, d.specs)
	if refusal != nil {
		return "! " + refusal.Content[0].Text
	}
	d.calls++
	r, err := d.set.Call(t.Context(), tool, tools.Call{
		Run: messages.Ref{Tenant: by.tenant, Run: by.run}, Session: by.session, Grants: messages.Grants{KV: by.scope},
		Key: fmt.Sprintf("%s.%d", by.run, d.calls), Arguments: raw,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.IsError {
		return "! " + r.Content[0].Text
	}
	return r.Content[0].Text
}

type step struct{ tool, args, want string }

func (d *desk) play(t *testing.T, by who, steps ...step) {
	t.Helper()
	for _, s := range steps {
		if diff := cmp.Diff(s.want, d.call(t, by, s.tool, s.args)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", s.tool, s.args, diff)
		}
	}
}

func TestConformance(t *testing.T) {
	store := kv.NewMemory(kvtest.Limits(), nil)
	kvtest.RunTools(t, func(*testing.T) kv.Store { return store })
}

// The meta of a failure says what kind it is.
func TestMetaOfFailures(t *testing.T) {
	d := newDesk(t, nil, `{"keys":1,"scopes":["run","session"]}`)
	by := who{tenant: "t", run: "r"}
	d.call(t, by, "kv_set", `{"key":"a","value":"x"}`)
	for _, c := range []struct{ scope, tool, args, want string }{
		{"", "kv_set", `{"key":"a","value":"y","revision":9}`, "conflict"},
		{"", "kv_set", `{"key":"b","value":"y"}`, "full"},
		{"", "kv_get", `{"key":""}`, "invalid"},
		{"", "kv_delete", `{"key":"a","revision":0}`, "invalid"},
		{"", "kv_list", `{"limit":999}`, "invalid"},
		{"session", "kv_get", `{"key":"a"}`, "refused"},
		{"tenant", "kv_get", `{"key":"a"}`, "refused"},
	} {
		r, err := d.set.Call(t.Context(), c.tool, tools.Call{Run: messages.Ref{Tenant: "t", Run: "r"}, Grants: messages.Grants{KV: c.scope}, Arguments: []byte(c.args)})
		if err != nil || !r.IsError || fmt.Sprintf("%s", r.Meta["reason"]) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s %s: %+v, %v", c.tool, c.args, r, err)
		}
	}
}

func TestCalls(t *testing.T) {
	d := newDesk(t, nil, `{"valueBytes":10,"keys":3,"bytes":30,"ttl":"1h"}`)
	d.play(t, who{tenant: "t", run: "r"},
		step{"kv_get", `{"key":"a"}`, `(Nothing is kept under "a".)`},
		step{"kv_set", `{"key":"a","value":"one\ntwo"}`, `Kept 7 bytes under "a" with revision 1`},
		step{"kv_get", `{"key":"a"}`, "(Revision 1)\none\ntwo"},
		step{"kv_set", `{"key":"a","value":"x","revision":0}`, `! "a" has revision 1: read it again before you change it`},
		step{"kv_set", `{"key":"b","value":"x","revision":1}`, `! nothing is kept under "b": read it again before you change it`},
		step{"kv_set", `{"key":"a","value":"x","revision":1,"ttlSeconds":3600}`, `Kept 1 bytes under "a" with revision 2`},
		step{"kv_set", `{"key":"a","value":"x","ttlSeconds":3601}`, "! ttlSeconds: must be 1 to 3600"},
		step{"kv_set", `{"key":"a","value":"x","ttlSeconds":-1}`, "! ttlSeconds: must be 1 to 3600"},
		step{"kv_set", `{"key":"a","value":"x","revision":-1}`, "! revision: must not be negative"},
		step{"kv_set", `{"key":"a","value":"12345678901"}`, "! value: has 11 bytes, and a value may have 10"},
		step{"kv_set", `{"key":"","value":""}`, "! key: must not be empty"},
		step{"kv_set", `{"key":"a\nb","value":""}`, "! key: must be printable characters, and spaces"},
		step{"kv_set", `{"key":"a\u202eb","value":""}`, "! key: must be printable characters, and spaces"},
		step{"kv_set", `{"key":"` + strings.Repeat("k", 257) + `","value":""}`, "! key: must not be longer than 256 bytes"},
		step{"kv_set", `{"key":"a","value":"x","ttl":1}`, `! Invalid arguments for kv_set: "ttl" is unknown (known: key, revision, ttlSeconds, value).`},
		step{"kv_set", `{"key":"a","value":"x","revision":1.5}`, `! Invalid arguments for kv_set: "revision" must be null or an integer, not a number.`},
		step{"kv_set", `{"key":"b c/é","value":"1234567890"}`, `Kept 10 bytes under "b c/é" with revision 3`},
		step{"kv_set", `{"key":"c","value":"1234567890"}`, `Kept 10 bytes under "c" with revision 4`},
		step{"kv_set", `{"key":"a","value":"1234"}`, "! the store is full: keys and values together may have 30 bytes; delete some first"},
		step{"kv_set", `{"key":"d","value":""}`, "! the store is full: there may be 3 keys; delete some first"},
		step{"kv_list", ``, "a (1 bytes, revision 2)\nb c/é (10 bytes, revision 3)\nc (10 bytes, revision 4)"},
		step{"kv_list", `{"prefix":"b","limit":1}`, "b c/é (10 bytes, revision 3)"},
		step{"kv_list", `{"limit":2}`, "a (1 bytes, revision 2)\nb c/é (10 bytes, revision 3)\n(There are more: continue with after \"b c/é\".)"},
		step{"kv_list", `{"after":"b c/é"}`, "c (10 bytes, revision 4)"},
		step{"kv_list", `{"prefix":"z"}`, "(There are no such keys.)"},
		step{"kv_list", `{"prefix":"\u0000"}`, "! prefix: must be printable characters, and spaces"},
		step{"kv_list", `{"limit":201}`, "! limit: must be 1 to 200"},
		step{"kv_delete", `{"key":"c","revision":3}`, `! "c" has revision 4: read it again before you change it`},
		step{"kv_delete", `{"key":"c","revision":0}`, "! revision: must be that of a value, 1 or more"},
		step{"kv_delete", `{"key":"c","revision":4}`, `Deleted "c"`},
		step{"kv_delete", `{"key":"c"}`, `(Nothing was kept under "c".)`},
	)
}

// 126 of the list of attacks: a run uses what another one keeps. Nothing that a model writes chooses the scope.
func TestAttack126OtherRunsKeys(t *testing.T) {
	d := newDesk(t, nil, `{}`)
	owners := []who{
		{"t", "a", "", ""},
		{"t", "b", "s", ""},
		{"t", "c", "s", "session"},
		{"t", "d", "z", "session"},
		{"t", "e", "", "tenant"},
		{"u", "a", "", ""},
		{"u", "c", "s", "session"},
		{"u", "e", "", "tenant"},
	}
	for i, by := range owners {
		d.play(t, by, step{"kv_set", fmt.Sprintf(`{"key":"secret","value":"of %d"}`, i), `Kept 4 bytes under "secret" with revision 1`})
	}
	for i, by := range owners {
		d.play(t, by, step{"kv_get", `{"key":"secret"}`, fmt.Sprintf("(Revision 1)\nof %d", i)}, step{"kv_list", `{}`, "secret (4 bytes, revision 1)"})
		for _, guess := range []string{"run.t.a:secret", "../a/secret", "{run.t.a}:secret", "longshore:kv:{run.t.a}:values", "t.a.secret", "a/secret", "*", "}:values{"} {
			d.play(t, by, step{"kv_get", fmt.Sprintf(`{"key":%q}`, guess), fmt.Sprintf("(Nothing is kept under %q.)", guess)},
				step{"kv_delete", fmt.Sprintf(`{"key":%q}`, guess), fmt.Sprintf("(Nothing was kept under %q.)", guess)})
		}
		for _, field := range []string{"scope", "tenant", "run", "session"} {
			if got := d.call(t, by, "kv_get", fmt.Sprintf(`{"key":"secret",%q:"a"}`, field)); !strings.HasPrefix(got, "! Invalid arguments for kv_get: ") {
				t.Errorf("%s may be chosen: %s", field, got)
			}
		}
	}
	// Who shares a scope shares its keys.
	d.play(t, who{"t", "other", "s", "session"}, step{"kv_get", `{"key":"secret"}`, "(Revision 1)\nof 2"})
	d.play(t, who{"t", "other", "s", "tenant"}, step{"kv_get", `{"key":"secret"}`, "(Revision 1)\nof 4"})
	d.play(t, who{"t", "other", "s", "run"}, step{"kv_get", `{"key":"secret"}`, `(Nothing is kept under "secret".)`})
}

func TestScopesThatAreRefused(t *testing.T) {
	d := newDesk(t, nil, `{"scopes":["run","session"]}`)
	for by, want := range map[who]string{
		{"t", "r", "", "session"}: "! There is nowhere to keep keys: the agent shares them among the runs of a session (grants.kv: session), and this run has no session.",
		{"t", "r", "s", "tenant"}: "! There is nowhere to keep keys: the agent shares them by tenant (grants.kv), which the operator of the worker does not grant (it grants run, session).",
		{"t", "r", "s", "fleet"}:  "! There is nowhere to keep keys: the agent's grants.kv is unknown to this worker.",
	} {
		for tool, args := range map[string]string{"kv_get": `{"key":"a"}`, "kv_set": `{"key":"a","value":""}`, "kv_delete": `{"key":"a"}`, "kv_list": `{}`} {
			d.play(t, by, step{tool, args, want})
		}
	}
}

func TestResources(t *testing.T) {
	d := newDesk(t, nil, `{}`)
	for _, c := range []struct {
		a, with, b, and string
		want            bool
	}{
		{"kv_set", `{"key":"a","value":""}`, "kv_set", `{"key":"b","value":""}`, true},
		{"kv_set", `{"key":"a","value":""}`, "kv_set", `{"key":"a/b","value":""}`, true},
		{"kv_set", `{"key":"a","value":""}`, "kv_delete", `{"key":"a"}`, false},
		{"kv_set", `{"key":"a","value":""}`, "kv_get", `{"key":"a"}`, false},
		{"kv_set", `{"key":"a","value":""}`, "kv_get", `{"key":"A"}`, true},
		{"kv_set", `{"key":"a","value":""}`, "kv_list", `{}`, false},
		{"kv_get", `{"key":"a"}`, "kv_list", `{}`, true},
	} {
		a, b := d.set.Claim(c.a, []byte(c.with)), d.set.Claim(c.b, []byte(c.and))
		if a.Beside(b) != c.want || b.Beside(a) != c.want {
			t.Errorf("%s%s beside %s%s: %v, want %v", c.a, c.with, c.b, c.and, a.Beside(b), c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	for part, want := range map[string]string{
		`{"keys":0}`:                     "",
		`{"keys":-1}`:                    "keys: must be 1 to 10000",
		`{"valueBytes":60001}`:           "valueBytes: must be 1 to 60000",
		`{"bytes":100}`:                  "bytes: must be valueBytes (16384) to 67108864",
		`{"ttl":"1ms"}`:                  "ttl: must be 1s to 8760h",
		`{"ttl":"forever"}`:              "ttl: ",
		`{"scopes":[]}`:                  "scopes: is empty: name those that agents may choose, or leave it out for all",
		`{"scopes":["run","fleet"]}`:     "scopes[1]: must be run, session or tenant",
		`{"url":"redis://"}`:             "url: ",
		`{"keys":10,"keys":20}`:          "keys: given twice",
		`{"scopes":["run"],"ttl":"24h"}`: "",
	} {
		_, err := kv.ParseConfig([]byte(part))
		fe, ok := errors.AsType[*messages.FieldError](err)
		if want == "" && err != nil || want != "" && (!ok || !strings.HasPrefix(fe.Error(), want)) {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
}

func FuzzKeysAndValues(f *testing.F) {
	for _, s := range [][2]string{{"a", "b"}, {"", ""}, {"a\x00", "\x00"}, {"é}", "{\"a\":1}"}, {strings.Repeat("k", 300), "v"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		d := newDesk(t, nil, `{}`)
		by := who{tenant: "t", run: "r"}
		k, _ := json.Marshal(key)
		v, _ := json.Marshal(value)
		if got := d.call(t, by, "kv_set", fmt.Sprintf(`{"key":%s,"value":%s}`, k, v)); strings.HasPrefix(got, "! ") {
			return
		}
		var kept string
		if err := json.Unmarshal(v, &kept); err != nil {
			t.Fatal(err)
		}
		d.play(t, by, step{"kv_get", fmt.Sprintf(`{"key":%s}`, k), "(Revision 1)\n" + kept})
		if got := d.call(t, by, "kv_list", fmt.Sprintf(`{"prefix":%s}`, k)); !strings.HasSuffix(got, " bytes, revision 1)") {
			t.Errorf("%q is not listed: %s", key, got)
		}
	})
}

package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
)

func policyFile(t *testing.T, spec string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte("apiVersion: longshore.run/v1\nkind: Policy\nspec:\n"+spec), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPolicyFile(t *testing.T) {
	file := policyFile(t, "  fleet: {tools: {deny: [shell]}}\n  tenants: {acme: {hosts: [api.acme.example]}}\n")
	s, err := worker("", "LONGSHORE_POLICY="+file)
	if err != nil {
		t.Fatal(err)
	}
	fleet, own := s.Rules("acme")
	if fleet == nil || fleet.Tools.Deny[0] != "shell" || own == nil || own.Hosts[0] != "api.acme.example" {
		t.Errorf("rules %+v, %+v", fleet, own)
	}
	if _, other := s.Rules("other"); other != nil {
		t.Errorf("rules of another tenant: %+v", other)
	}
	if s, err := worker(""); err != nil {
		t.Error(err)
	} else if fleet, own := s.Rules("acme"); fleet != nil || own != nil {
		t.Errorf("without a file: %+v, %+v", fleet, own)
	}
}

func TestWrongPolicyFiles(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"an unknown field":   {"  fleet: {tool: {}}", "spec.fleet.tool: unknown field: did you mean tools?"},
		"a broken pattern":   {"  fleet: {content: [{name: a, pattern: '('}]}", "spec.fleet.content[0].pattern: "},
		"a huge repetition":  {"  fleet: {content: [{name: a, pattern: '(?:[a-z ]{1,30}){30}x'}]}", "spec.fleet.content[0].pattern: is 1773 instructions long"},
		"a huge argument":    {"  fleet: {approve: [{name: a, tool: x, pattern: '.{1,1000}'}]}", "spec.fleet.approve[0].pattern: is 2001 instructions long"},
		"any text":           {"  fleet: {content: [{name: a, pattern: 'x*'}]}", "spec.fleet.content[0].pattern: matches the empty text"},
		"a strange category": {"  tenants: {acme: {content: [{name: a, category: poem}]}}", "spec.tenants.acme.content[0].category: must be one of card, email"},
		"a strange tenant":   {"  tenants: {'a b': {}}", "spec.tenants.a b"},
		"an empty tenant":    {"  tenants: {acme: null}", "spec.tenants.acme"},
		"half a taint":       {"  fleet: {taint: {private: [sql_*], untrusted: [http_request], egress: []}}", "spec.fleet.taint.egress: is missing"},
		"a host of nonsense": {"  fleet: {hosts: ['https://x/']}", "spec.fleet.hosts[0]: is not a host"},
		"any host":           {"  fleet: {hosts: ['*']}", "spec.fleet.hosts[0]: is not a host"},
		"a star in a host":   {"  fleet: {approve: [{name: a, tool: x, hosts: [a.*.example]}]}", "spec.fleet.approve[0].hosts[0]: is not a host"},
		"a port of nonsense": {"  fleet: {hosts: ['a.example:http']}", "spec.fleet.hosts[0]: is not a host"},
		"no name of a host":  {"  tenants: {acme: {hosts: ['xn--a.exämple']}}", "spec.tenants.acme.hosts: "},
		"a tool of nonsense": {"  fleet: {tools: {deny: ['a b']}}", "spec.fleet.tools.deny[0]: must be a tool's name"},
		"a rate of nothing":  {"  fleet: {rates: [{name: a, tool: http_get}]}", "spec.fleet.rates[0].perMinute: is missing"},
		"a rate of none":     {"  fleet: {rates: [{name: a, tool: http_get, perMinute: 0}]}", "spec.fleet.rates[0].perMinute: must be 1 to"},
		"a rate below none":  {"  fleet: {rates: [{name: a, tool: http_get, perMinute: 3, perHour: -1}]}", "spec.fleet.rates[0].perHour: must be 1 to"},
		"an absurd rate":     {"  fleet: {rates: [{name: a, tool: http_get, perMinute: 2000000000}]}", "spec.fleet.rates[0].perMinute: must be 1 to"},
		"half a call":        {"  fleet: {rates: [{name: a, tool: http_get, perMinute: 0.5}]}", "spec.fleet.rates[0].perMinute: "},
		"a rate for a poem":  {"  fleet: {rates: [{name: a, tool: 'a poem', perMinute: 1}]}", "spec.fleet.rates[0].tool: must be a tool's name"},
		"a rate per second":  {"  fleet: {rates: [{name: a, tool: http_get, perSecond: 1}]}", "spec.fleet.rates[0].perSecond: unknown field"},
		"a nameless rate":    {"  tenants: {acme: {rates: [{tool: http_get, perMinute: 1}]}}", "spec.tenants.acme.rates[0].name: "},
		"a subject for rate": {"  fleet: {rates: [{name: 'a.>', tool: http_get, perMinute: 1}]}", "spec.fleet.rates[0].name: "},
		"two rates, a name":  {"  fleet: {rates: [{name: a, tool: x, perMinute: 1}, {name: a, tool: y, perMinute: 1}]}", "spec.fleet.rates[1].name: another rate has it"},
		"keeping any":        {"  fleet: {retain: [{for: 1h}]}", "spec.fleet.retain[0].collection: must be a collection's name"},
		"keeping a poem":     {"  fleet: {retain: [{collection: 'a b*', for: 1h}]}", "spec.fleet.retain[0].collection: must be a collection's name"},
		"keeping a*b":        {"  fleet: {retain: [{collection: 'a*b', for: 1h}]}", "spec.fleet.retain[0].collection: must be a collection's name"},
		"keeping no while":   {"  tenants: {acme: {retain: [{collection: a}]}}", "spec.tenants.acme.retain[0].for: must be 1s to 876000h"},
		"keeping an instant": {"  fleet: {retain: [{collection: a, for: 999ms}]}", "spec.fleet.retain[0].for: must be 1s to 876000h"},
		"keeping for ever":   {"  fleet: {retain: [{collection: a, for: 876001h}]}", "spec.fleet.retain[0].for: must be 1s to 876000h"},
		"keeping 30 days":    {"  fleet: {retain: [{collection: a, for: 30d}]}", "spec.fleet.retain[0].for: must be a duration"},
		"an action":          {"  fleet: {content: [{name: a, category: email, action: burn}]}", "spec.fleet.content[0].action: must be redact or block"},
	} {
		t.Run(name, func(t *testing.T) {
			file := policyFile(t, c.spec)
			_, err := worker("", "LONGSHORE_POLICY="+file)
			if err == nil || !strings.HasPrefix(err.Error(), "LONGSHORE_POLICY: "+file+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := settings.ParsePolicy(nil); err == nil {
		t.Error("an empty file is taken")
	}
}

package cli_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

func TestKeys(t *testing.T) {
	f := newFleet(t)
	if out, errs := f.run(t, "keys", "api", "list"); out != "" || errs != "no API keys: make one with `longshore keys api create`\n" {
		t.Errorf("without any: %q, %q", out, errs)
	}
	key, errs := f.run(t, "keys", "api", "create", "--tenant", "acme", "--role", "viewer", "--role", "approver", "--name", "ci", "--expires", "90d", "--by", "ann")
	found := regexp.MustCompile(`^lsk_([0-9A-Za-z]{12})_([0-9A-Za-z]{32})\n$`).FindStringSubmatch(key)
	if found == nil {
		t.Fatalf("the key is %q", key)
	}
	id, secret := found[1], found[2]
	if errs != "key "+id+": it is shown this once\n" {
		t.Errorf("it says %q", errs)
	}
	other, _ := f.run(t, "keys", "api", "create", "--tenant", "*", "--role", "admin")
	if other == key || !strings.HasPrefix(other, "lsk_") {
		t.Errorf("another key is %q", other)
	}
	out, _ := f.run(t, "keys", "api", "list", "--tenant", "acme")
	if !regexp.MustCompile(`^ID +TENANT +ROLES +NAME +CREATED +BY +EXPIRES\n` + id + ` +acme +viewer,approver +ci +\S+Z +ann +\S+Z\n$`).MatchString(out) {
		t.Errorf("list:\n%s", out)
	}
	for _, args := range [][]string{{"list"}, {"list", "-o", "json"}} {
		if out, _ = f.run(t, append([]string{"keys", "api"}, args...)...); strings.Contains(out, secret) || strings.Contains(out, "hash") || !strings.Contains(out, "never") && len(args) == 1 {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out, _ = f.run(t, "keys", "api", "revoke", id); out != "key "+id+" is revoked\n" {
		t.Error(out)
	}
	if out, _ = f.run(t, "keys", "api", "list", "--tenant", "acme"); out != "" {
		t.Errorf("a revoked one is listed: %s", out)
	}
	f.fails(t, "no key aaaaaaaaaaaa: see `longshore keys api list`", "keys", "api", "revoke", "aaaaaaaaaaaa")
}

func TestKeysUsage(t *testing.T) {
	f := newFleet(t)
	const secret = "lsk_abcdefghijkl_0123456789ABCDEF"
	for name, args := range map[string][]string{
		"no tenant":          {"create", "--role", "viewer"},
		"no role":            {"create", "--tenant", "acme"},
		"a strange role":     {"create", "--tenant", "acme", "--role", "root"},
		"a role twice":       {"create", "--tenant", "acme", "--role", "viewer,viewer"},
		"a hostile tenant":   {"create", "--tenant", "a.>", "--role", "viewer"},
		"a submitter of all": {"create", "--tenant", "*", "--role", "submitter"},
		"expired at once":    {"create", "--tenant", "acme", "--role", "viewer", "--expires", "0d"},
		"in the past":        {"create", "--tenant", "acme", "--role", "viewer", "--expires", "-1h"},
		"at no time":         {"create", "--tenant", "acme", "--role", "viewer", "--expires", "soon"},
		"forever":            {"create", "--tenant", "acme", "--role", "viewer", "--expires", "99999999999999999999d"},
		"revoke nothing":     {"revoke"},
		"revoke by the key":  {"revoke", secret},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := executeWith(t, f.connect, "", append([]string{"keys", "api"}, args...)...)
			var usage *render.UsageError
			if !errors.As(err, &usage) || strings.Contains(err.Error(), secret) {
				t.Errorf("%v", err)
			}
		})
	}
}

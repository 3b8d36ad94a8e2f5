package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

func TestSessions(t *testing.T) {
	f := newFleet(t)
	if out, errs := f.run(t, "sessions", "list"); out != "" || errs != "no sessions of tenant default\n" {
		t.Errorf("without any: %q, %q", out, errs)
	}
	f.fails(t, "no session s of tenant default: see `longshore sessions list`", "sessions", "show", "s")
	f.fails(t, "no session s of tenant default: see `longshore sessions list`", "sessions", "delete", "s")
	put := func(name string, revision uint64, s messages.Session) {
		t.Helper()
		if err := f.controller.Sessions.PutSession(t.Context(), messages.DefaultTenant, name, revision, s); err != nil {
			t.Fatal(err)
		}
	}
	put("s", 0, messages.Session{Ended: []string{"r1", "r2"}})
	out, _ := f.run(t, "sessions", "show", "s")
	if diff := cmp.Diff("ended  r1\nended  r2\n", out); diff != "" {
		t.Error(diff)
	}
	out, _ = f.run(t, "sessions", "list", "-o", "json")
	if !strings.Contains(out, `"name":"s","queue":0,"turns":2`) || strings.Contains(out, "r1") {
		t.Errorf("list: %s", out)
	}
	if out, _ = f.run(t, "sessions", "list"); !strings.HasPrefix(out, "NAME  TURN  WAITING  ENDED  UPDATED\ns     -     0        2 ") {
		t.Errorf("list:\n%s", out)
	}
	if out, _ = f.run(t, "sessions", "list", "--tenant", "other"); out != "" {
		t.Errorf("another tenant sees %q", out)
	}
	if out, _ = f.run(t, "sessions", "delete", "s"); out != "session s is forgotten\n" {
		t.Error(out)
	}
	f.fails(t, "no session s of tenant default: see `longshore sessions list`", "sessions", "show", "s")
	if out, _ = f.run(t, "sessions", "list"); out != "" {
		t.Errorf("a forgotten one is listed: %q", out)
	}
	// A run that is gone does not keep a session busy.
	put("gone", 0, messages.Session{Runs: []string{"r3"}, Ended: []string{"r1"}})
	f.run(t, "sessions", "delete", "gone")
}

// What long-term memory holds of a session alone goes with it, also when only the memory is left; what is of others stays.
func TestSessionsTakeTheirMemories(t *testing.T) {
	f := newFleet(t)
	if err := f.controller.Sessions.PutSession(t.Context(), messages.DefaultTenant, "s", 0, messages.Session{Ended: []string{"r1"}}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"facts", "own", "Berth 7.", "--session", "s"},
		{"notes", "own", "Berth 8.", "--session", "s", "--agent", "a", "--subject", "x"},
		{"facts", "other", "Berth 9.", "--session", "other"},
		{"facts", "shared", "Berth 10."},
		{"facts", "elsewhere", "Berth 11.", "--session", "s", "--tenant", "acme"},
	} {
		f.run(t, append([]string{"memory", "put"}, args...)...)
	}
	left := func(tenant string) string {
		out, _ := f.run(t, "memory", "ls", "--tenant", tenant)
		return strings.Join(strings.Fields(out), " ")
	}
	f.run(t, "sessions", "delete", "s")
	if got := left("default"); !strings.HasPrefix(got, "NAME ITEMS BYTES facts 2 ") || strings.Contains(got, "notes") {
		t.Errorf("after it: %s", got)
	}
	if got := left("acme"); !strings.HasPrefix(got, "NAME ITEMS BYTES facts 1 ") {
		t.Errorf("another tenant: %s", got)
	}
	f.run(t, "sessions", "delete", "s", "--tenant", "acme") // it never had a run there
	if got := left("acme"); got != "" {
		t.Errorf("another tenant after it: %s", got)
	}
	f.fails(t, "no session s of tenant acme: see `longshore sessions list`", "sessions", "delete", "s", "--tenant", "acme")
}

func TestSessionsUsage(t *testing.T) {
	f := newFleet(t)
	for name, tc := range map[string][]string{
		"no name":   {"sessions", "show"},
		"two names": {"sessions", "delete", "a", "b"},
		"hostile":   {"sessions", "show", "a.>"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := executeWith(t, f.connect, "", tc...); err == nil {
				t.Error("no error")
			}
		})
	}
}

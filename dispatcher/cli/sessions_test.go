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

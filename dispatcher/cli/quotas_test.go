package cli_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/control"
)

func TestQuotaCommands(t *testing.T) {
	f := newFleet(t)
	out, _ := f.run(t, "quotas", "set", "tenant", "acme", "--max-queued", "3", "--cost-per-day", "0.5")
	if want := "tenant acme   before  after\nqueued        -       3\ncost per day  -       $0.50\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	out, _ = f.run(t, "quotas", "set", "tenant", "acme", "--cost-per-day", "0", "--weight", "2")
	if want := "tenant acme   before  after\nweight        -       2\nqueued        3       3\ncost per day  $0.50   -\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	out, _ = f.run(t, "quotas", "list")
	if !strings.Contains(out, "tenant  acme  2       -        3") {
		t.Errorf("got %q", out)
	}
	out, _ = f.run(t, "quotas", "list", "-o", "json")
	if !strings.Contains(out, `"revision":2}`) {
		t.Errorf("got %q", out)
	}
	out, _ = f.run(t, "quotas", "show", "tenant", "acme")
	if !strings.Contains(out, "queued          3      0\n") || !strings.Contains(out, "cost per day    -      $0.00\n") {
		t.Errorf("got %q", out)
	}
	out, _ = f.run(t, "quotas", "show", "tenant", "acme", "-o", "json")
	var state control.QuotaState
	if err := json.Unmarshal([]byte(out), &state); err != nil || state.Quota.MaxQueued != 3 || state.Quota.Weight != 2 || state.Usage == nil {
		t.Errorf("got %q, %v", out, err)
	}
	for _, args := range [][]string{
		{"quotas", "set", "tenant", "acme"},
		{"quotas", "set", "tenant"},
		{"quotas", "show", "unknown", "acme"},
		{"quotas", "show", "tenant", "a.b"},
		{"quotas", "set", "tenant", "acme", "--max-queued", "-1"},
		{"quotas", "set", "agent", "a", "--per-minute", "1"},
		{"quotas", "set", "tenant", "acme", "--cost-per-day", "NaN"},
		{"quotas", "delete", "tenant", "*"},
		{"drain"},
		{"drain", ""},
	} {
		_, _, err := executeWith(t, f.connect, "", args...)
		if _, is := errors.AsType[*render.UsageError](err); !is {
			t.Errorf("%v: %v", args, err)
		}
	}
	for range 3 {
		f.run(t, "submit", "hello", "--tenant", "acme")
	}
	f.fails(t, "quota of tenant acme: maxQueued: 3 tasks are queued, and 3 may be: nothing was submitted; try again in 5s",
		"submit", "hello", "--tenant", "acme")
	f.run(t, "quotas", "delete", "tenant", "acme")
	if out, _ = f.run(t, "quotas", "list"); out != "" {
		t.Errorf("got %q", out)
	}
	if out, _ = f.run(t, "workers"); out != "" {
		t.Errorf("there are workers: %q", out)
	}
	f.fails(t, "no worker unknown: see `longshore workers`", "drain", "unknown")
}

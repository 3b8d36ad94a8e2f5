package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

// A list as JSON is an object on each line for each of its items, whatever it lists, and nothing when it is empty.
func TestListsAreJSONLines(t *testing.T) {
	f := newFleet(t)
	for name, args := range map[string][]string{
		"runs": {"list"}, "batches": {"batch", "list"}, "keys": {"keys", "api", "list"}, "pauses": {"pause"},
		"prompts": {"prompts", "list"}, "quotas": {"quotas", "list"}, "schedules": {"schedules", "list"}, "sessions": {"sessions", "list"},
		"workers": {"workers"}, "letters": {"dead", "list"}, "approvals": {"approvals"}, "inbox": {"inbox"},
	} {
		if out, errs := f.run(t, append(args, "-o", "json")...); out != "" || errs != "" {
			t.Errorf("without %s: %q, %q", name, out, errs)
		}
	}
	file := filepath.Join(t.TempDir(), "s.yaml")
	for _, name := range []string{"one", "two"} {
		text := "apiVersion: longshore.run/v1\nkind: Schedule\nmetadata: {name: " + name + "}\nspec: {cron: '@yearly', task: {input: Look.}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f.run(t, "schedules", "apply", "-f", file)
		f.run(t, "pause", "tenant", name)
		f.run(t, "quotas", "set", "tenant", name, "--max-queued", "3")
		f.run(t, "keys", "api", "create", "--tenant", name, "--role", "viewer", "--name", "ci")
		if err := os.WriteFile(file, []byte("Be kind, "+name+"."), 0o600); err != nil {
			t.Fatal(err)
		}
		f.run(t, "prompts", "put", "p", "-f", file)
	}
	for _, name := range []string{"s", "t"} {
		if err := f.controller.Sessions.PutSession(t.Context(), messages.DefaultTenant, name, 0, messages.Session{Ended: []string{"r1"}}); err != nil {
			t.Fatal(err)
		}
	}
	for field, args := range map[string][]string{
		`"kind":`: {"pause"}, `"quota":`: {"quotas", "list"}, `"cron":`: {"schedules", "list"}, `"roles":`: {"keys", "api", "list"},
		`"revision":`: {"prompts", "history", "p"}, `"turns":`: {"sessions", "list"},
	} {
		out, _ := f.run(t, append(args, "-o", "json")...)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		for _, line := range lines {
			var item map[string]any
			if err := json.Unmarshal([]byte(line), &item); err != nil || !strings.Contains(line, field) || len(lines) < 2 {
				t.Errorf("%v: %d lines: %q, %v", args, len(lines), line, err)
			}
		}
	}
}

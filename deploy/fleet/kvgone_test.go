//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
)

// What a run or a session kept under keys is erased when its retention is over, and what others keep is not.
func TestValuesGoWithTheirRun(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "kv_set", Args: map[string]string{"key": "k", "value": "v"}}
		}
		return reply{Text: "done"}
	})
	file := filepath.Join(t.TempDir(), "tools.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: longshore.run/v1\nkind: Tools\nspec: {kv: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := w.apply("metadata: {name: own}\nspec: {tools: [kv_set]}\n")
	shared := w.apply("metadata: {name: shared}\nspec: {tools: [kv_set], grants: {kv: session}}\n")
	all := w.apply("metadata: {name: all}\nspec: {tools: [kv_set], grants: {kv: tenant}}\n")
	w.worker("a", "LONGSHORE_TOOLS="+file)
	redis := (&store{url: w.redis}).client(t)
	kept := func(scope string) bool {
		n, err := redis.Exists(t.Context(), "longshore:kv:{"+scope+"}:values").Result()
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
	logs := retention.New(w.bus, runlogs.New(w.bus, runlogs.Config{}))
	want := map[string]bool{}
	for _, c := range []struct {
		agent, session string
		purged, kept   bool
	}{{own, "", true, false}, {own, "", false, true}, {shared, "over", true, false}, {shared, "open", false, true}, {all, "", true, true}} {
		run := w.submit("keep", func(task *messages.Task) { task.Agent, task.Session = c.agent, c.session })
		completed(t, w.watch(run).end(), "done")
		scope := map[string]string{own: "run.default." + run.Run, shared: "session.default." + c.session, all: "tenant.default."}[c.agent]
		if !kept(scope) {
			t.Fatalf("%s keeps nothing", scope)
		}
		want[scope] = c.kept
		if c.purged {
			w.once(run)
			if err := logs.Purge(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.worker("b", "LONGSHORE_TOOLS="+file) // which looks when it starts
	eventually(t, "what is gone is erased", func() bool {
		for scope, here := range want {
			if !here && kept(scope) {
				return false
			}
		}
		return true
	})
	for scope, here := range want {
		if kept(scope) != here {
			t.Errorf("%s is kept: %v", scope, !here)
		}
	}
}

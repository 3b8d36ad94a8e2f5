//go:build unix

package fleet_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
)

// Runs whose tenant's key was destroyed end, whatever they waited for, and what they held is free. A task that comes then goes to the dead
// letters, and is worked when the tenant has a new key and it is sent again.
func TestRunsOfADestroyedKeyEnd(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t, embedded.Config{})
	w := &town{
		t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL, keyset: encrypted(t).Keyset,
		model: newModel(t, func(c *modelCall) reply {
			if c.Task == "ask" {
				return reply{Tool: "ask_human", Args: map[string]string{"question": "Which berth?"}}
			}
			return reply{Text: "well"}
		}),
	}
	env := []string{"NATS_URL=" + w.nats, "LONGSHORE_ENCRYPTION=on", "LONGSHORE_KEYSET=" + w.keyset}
	dispatch := func(name string) *process {
		p := spawn(t, name, append(env, "LONGSHORE_ACK_WAIT="+shortAckWait.String(), "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_INDEX=none"), binary, "dispatcher")
		p.line(`"message":"ready"`)
		return p
	}
	first := []*process{dispatch("d0"), w.worker("w0")}
	w.connect()
	if _, err := w.client.Agents().Apply(t.Context(), messages.Definition{Name: "asker", Tools: []string{"ask_human"}}, "", nil); err != nil {
		t.Fatal(err)
	}
	waits := func(run messages.Ref) func() bool {
		return func() bool {
			s, err := w.client.Status(t.Context(), run)
			return err == nil && s.Status == messages.StatusWaiting
		}
	}
	var runs []messages.Ref
	for _, tenant := range []string{"acme", "bell"} {
		for _, text := range []string{"ask", "behind"} { // the second one waits for its turn in the session
			run := w.submit(text, func(t *messages.Task) { t.Tenant, t.Agent, t.Session = tenant, "asker", "s" })
			run.Tenant = tenant
			eventually(t, fmt.Sprintf("%s waits", run), waits(run))
			runs = append(runs, run)
		}
	}
	for _, p := range first { // they may use the keys for a minute more
		p.signal(syscall.SIGTERM)
		p.wait()
	}
	for _, args := range [][]string{{"destroy", "acme", "--yes", "--by", "ann"}, {"destroy", "bell", "--yes", "--by", "ann"}, {"renew", "bell"}} {
		if got := call(t, env, append([]string{"keys"}, args...)...); got.code != 0 {
			t.Fatalf("keys %v: %+v", args, got)
		}
	}
	dispatch("d1")
	w.worker("w1")
	late := w.submit("late", func(t *messages.Task) { t.Tenant = "acme" })
	late.Tenant = "acme"
	var watching []*watching
	for _, run := range append(runs, late) {
		watching = append(watching, w.watch(run))
	}
	for _, g := range watching {
		run := g.run
		<-g.done
		if n := len(g.events); g.err != nil || n == 0 || g.events[n-1].Name() != messages.EventRunFinished {
			t.Errorf("%s: %v, %v", run, names(g.events), g.err)
		}
		r, err := w.client.Result(t.Context(), run)
		if err != nil || r.Status != messages.StatusFailed || !strings.Contains(r.Error.Message, "can no longer be read") {
			t.Errorf("%s: %+v, %v", run, r, err)
		}
	}
	eventually(t, "nothing waits in the queue", func() bool {
		got := call(t, env, "dead", "list", "--tenant", "acme")
		return got.code == 0 && strings.Contains(got.stdout, late.Run)
	})
	for _, tenant := range []string{"acme", "bell"} {
		w.isEmpty("TASKS", "lanes.*.*."+tenant+".>")
	}
	if got := call(t, env, "keys", "renew", "acme"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	again := w.submit("once more", func(t *messages.Task) { t.Tenant, t.Session = "acme", "s" })
	again.Tenant = "acme"
	if r, err := w.client.Wait(t.Context(), again); err != nil || r.Status != messages.StatusCompleted {
		t.Errorf("with a new key: %+v, %v", r, err)
	}
}

//go:build unix

package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
)

// Each user tries what is his and what is not. "+" subscribes, else it publishes.
func TestPermissionsOfRoles(t *testing.T) {
	g := startGuarded(t)
	if err := bus.Setup(t.Context(), g.connect("dispatcher"), bus.Streams{AckWait: guardedAckWait}); err != nil {
		t.Fatal(err)
	}
	// What only the auditor may do.
	copies := []string{
		"$O.AUDIT.C.x", "$O.AUDIT.M.x", "$JS.API.STREAM.UPDATE.OBJ_AUDIT",
		"$JS.API.STREAM.DELETE.OBJ_AUDIT", "$JS.API.STREAM.PURGE.OBJ_AUDIT", "$JS.API.STREAM.RESTORE.OBJ_AUDIT",
		"$JS.API.STREAM.MSG.DELETE.OBJ_AUDIT", "$JS.API.STREAM.MSG.GET.OBJ_AUDIT", "$JS.API.DIRECT.GET.OBJ_AUDIT.$O.AUDIT.M.x",
		"$JS.API.DIRECT.GET.OBJ_AUDIT", "$JS.API.CONSUMER.CREATE.OBJ_AUDIT", "$JS.API.CONSUMER.CREATE.OBJ_AUDIT.c.$O.AUDIT.M.>",
		"$JS.API.CONSUMER.DURABLE.CREATE.OBJ_AUDIT.c",
	}
	// What only the fleet may do, and no user of a tenant.
	fleet := slices.Concat(copies, []string{
		"runs.acme.r.log", "runs.harbour.r.log", "logs.acme.r", "blobs.acme.r.h.0-1", "events.acme.r.run_finished", "dead.acme.a.r",
		"tasks.wake.acme.r", "sched.timer.acme.r.1.1", "nudge.acme.r", "live.acme.r", "batches.acme.b.head", "workers.seen.w", "rates.fleet:site.calls.60-1", "rates.acme.starts.1",
		"$KV.AGENTS.a", "$KV.PROMPTS.p", "$KV.QUOTAS.tenant.acme", "$KV.SESSIONS.acme.s", "$KV.KEYS.k", "$KV.KEYRING.acme", "$JS.API.STREAM.MSG.GET.KV_KEYRING", "$JS.API.STREAM.MSG.DELETE.KV_KEYRING",
		"$JS.API.STREAM.MSG.GET.RUNS", "$JS.API.STREAM.MSG.GET.KV_QUOTAS", "$JS.API.STREAM.MSG.GET.KV_KEYS",
		"$JS.API.DIRECT.GET.RUNS", "$JS.API.DIRECT.GET.RUNS.runs.acme.r.log", "$JS.API.STREAM.PURGE.RUNS",
		"$JS.API.STREAM.DELETE.RUNS", "$JS.API.STREAM.CREATE.EVIL", "$JS.API.STREAM.CREATE.OBJ_AUDIT", "$JS.API.STREAM.UPDATE.RUNS",
		"$JS.API.CONSUMER.CREATE.RUNS.c.runs.acme.r.log", "$JS.API.CONSUMER.MSG.NEXT.TASKS.workers",
		"$JS.API.CONSUMER.MSG.NEXT.EVENTS.retention", "$JS.API.CONSUMER.DELETE.EVENTS.retention",
		"$JS.API.CONSUMER.CREATE.TASKS.c.lanes.>", "$JS.ACK.TASKS.workers.1.1.1.1.0",
		"+longshore.>", "+longshore.submit", "+tasks.>", "+runs.>", "+lanes.>", "+$JS.API.>", "+>",
		"+_INBOX.>", "+_INBOX_dispatcher.>", "+_INBOX_worker.>", "+_INBOX_operator.>", "+nudge.>",
	})
	ofTenant := slices.Concat(fleet, []string{
		"longshore.status", "longshore.cancel", "longshore.approve", "longshore.agents.apply", "longshore.prompts.put",
		"longshore.t.harbour.status", "longshore.t.harbour.submit", "longshore.t.harbour.approve", "longshore.t.acme.agents.apply",
		"longshore.batch_open", "$JS.API.DIRECT.GET.EVENTS", "$JS.API.DIRECT.GET.EVENTS.events.harbour.r.run_finished",
		"$JS.API.STREAM.MSG.GET.EVENTS", "$JS.API.STREAM.MSG.GET.KV_AGENTS", "$JS.API.STREAM.INFO.EVENTS", "$JS.API.INFO",
		"$JS.API.CONSUMER.CREATE.EVENTS", "$JS.API.CONSUMER.CREATE.EVENTS.c", "$JS.API.CONSUMER.CREATE.EVENTS.c.events.>",
		"$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.c", "$JS.API.CONSUMER.CREATE.EVENTS.c.events.acme.>", "$JS.FC.EVENTS.x",
		"$JS.API.CONSUMER.CREATE.LOGS.c.logs.>", "$JS.API.CONSUMER.CREATE.LOGS.c.logs.acme.r", "+logs.>", "+logs.acme.*",
		"+live.harbour.*", "+live.>", "+events.>", "+events.harbour.>", "+_R_.>", "+$JS.>", "+longshore.t.>", "+longshore.t.acme.>",
		"_R_.x", "_INBOX_dispatcher.x", "_INBOX_acme_viewer.x", "longshore.t.acme.keys.create", "longshore.t.acme.quotas.put",
		"tasks.normal.harbour.r", "tasks.high.harbour.r", "tasks.normal.acme", "tasks.normal.acme.a.b", "tasks.x.acme.r",
		"sched.sweep", "batches.acme.b.line.t",
	})
	submits := []string{"tasks.high.acme.r", "tasks.normal.acme.r", "tasks.low.acme.r"}
	follows := []string{"longshore.t.acme.events", "+events.acme.>", "+events.acme.r.*", "+live.acme.*"}
	reads := []string{"longshore.t.acme.status", "longshore.t.acme.result", "longshore.t.acme.log", "longshore.t.acme.check"}
	asks := []string{"longshore.t.acme.submit", "longshore.t.acme.cancel", "longshore.t.acme.fork", "longshore.t.acme.batch_cancel"}
	keeps := []string{"longshore.t.acme.schedules.put", "longshore.t.acme.dead.redrive", "longshore.t.acme.dead.purge_all"}
	decides := []string{"longshore.t.acme.approve", "longshore.t.acme.deny", "longshore.t.acme.answer", "longshore.t.acme.approvals"}

	for user, tc := range map[string]struct{ may, mayNot []string }{
		"acme-publisher": {
			slices.Concat(submits, []string{"+_INBOX_acme_publisher.>"}),
			slices.Concat(ofTenant, follows, reads, asks, decides, keeps, []string{"+_INBOX_acme_viewer.>"}),
		},
		"acme-viewer": {
			slices.Concat(follows, []string{"+_INBOX_acme_viewer.>"}),
			slices.Concat(ofTenant, submits, reads, asks, decides, keeps, []string{"+_INBOX_acme_submitter.>"}),
		},
		"acme-submitter": {
			slices.Concat(submits, follows, reads, asks),
			slices.Concat(ofTenant, decides, keeps, []string{"+_INBOX_harbour_submitter.>"}),
		},
		"acme-approver": {
			slices.Concat(follows, reads, decides),
			slices.Concat(ofTenant, submits, asks, keeps),
		},
		"acme-operator": {
			slices.Concat(follows, reads, keeps, []string{"longshore.t.acme.cancel"}),
			slices.Concat(ofTenant, submits, decides, []string{"longshore.t.acme.submit"}),
		},
		"operator": {
			slices.Concat(submits, []string{
				"longshore.status", "longshore.cancel", "longshore.approve", "tasks.low.harbour.r", "batches.acme.b.line.t",
				"$JS.API.CONSUMER.CREATE.EVENTS.c.events.>", "$JS.API.STREAM.MSG.GET.EVENTS", "+live.*.*",
			}),
			slices.Concat(slices.DeleteFunc(slices.Clone(fleet), func(s string) bool { return s == "+_INBOX_operator.>" }), []string{
				"longshore.agents.apply", "longshore.prompts.put", "+_INBOX_admin.>", "$JS.API.DIRECT.GET.EVENTS", "$JS.API.DIRECT.GET.BATCHES",
			}),
		},
		"admin": {
			[]string{"longshore.agents.apply", "longshore.prompts.put", "$JS.API.STREAM.MSG.GET.KV_AGENTS"},
			slices.Concat(fleet, submits, []string{"longshore.cancel", "longshore.approve", "longshore.t.acme.cancel"}),
		},
		"auditor": {
			[]string{
				"$JS.API.CONSUMER.CREATE.EVENTS.c.events.>", "$JS.API.CONSUMER.CREATE.RUNS.c.runs.>",
				"$JS.API.STREAM.MSG.GET.RUNS", "+_INBOX_auditor.>",
				"$O.AUDIT.C.x", "$O.AUDIT.M.x", "$JS.API.STREAM.MSG.GET.OBJ_AUDIT", "$JS.API.STREAM.PURGE.OBJ_AUDIT",
			},
			slices.Concat(submits, asks, decides, []string{
				"runs.acme.r.log", "events.acme.r.run_finished", "blobs.acme.r.h.0-1", "dead.acme.a.r", "tasks.wake.acme.r", "nudge.acme.r",
				"$KV.AGENTS.a", "$KV.SESSIONS.acme.s", "$JS.API.STREAM.PURGE.RUNS", "$JS.API.STREAM.MSG.DELETE.RUNS",
				"logs.acme.r", "$JS.API.STREAM.DELETE.EVENTS", "$JS.API.STREAM.UPDATE.EVENTS", "$JS.API.CONSUMER.DELETE.EVENTS.retention",
				"$JS.API.CONSUMER.MSG.NEXT.TASKS.workers", "$JS.ACK.TASKS.workers.1.1.1.1.0", "$JS.API.STREAM.MSG.GET.KV_KEYS", "$JS.API.STREAM.MSG.DELETE.KV_KEYRING",
				"longshore.status", "longshore.cancel", "+longshore.>", "+tasks.>", "+_INBOX_worker.>", "+>",
				"$JS.API.DIRECT.GET.RUNS", "$JS.API.DIRECT.GET.EVENTS", "$JS.API.DIRECT.GET.OBJ_AUDIT.$O.AUDIT.M.x",
				"$JS.API.STREAM.CREATE.OBJ_AUDIT", "$O.OTHER.M.x", "$JS.API.STREAM.CREATE.OBJ_OTHER", "$JS.API.STREAM.DELETE.OBJ_AUDIT", "$JS.API.STREAM.UPDATE.OBJ_AUDIT",
			}),
		},
		"tools": {
			[]string{"_INBOX_worker.x.tools", "+$SRV.INFO.longshore-tools", "+$SRV.PING"},
			slices.Concat(fleet, submits, reads, asks, decides, keeps, []string{
				"longshore.status", "longshore.submit", "longshore.approve", "longshore.agents.apply", "$SRV.INFO.longshore-tools", "$JS.API.INFO",
				"tools.tide_table", "_INBOX_worker.x", "_INBOX_worker.x.keep", "_INBOX_worker.x.y", "_INBOX_worker.x.tools.y", "_INBOX_dispatcher.x.tools",
				"+tools.*", "+tools.tide_table", "+tools.>", "+_INBOX_tools.>", "+_INBOX_worker.*.tools", "+events.>", "+live.>", "+logs.>", "+workers.seen.*",
			}),
		},
		"worker": {
			[]string{
				"$JS.API.CONSUMER.MSG.NEXT.TASKS.workers", "runs.acme.r.log", "logs.acme.r", "events.acme.r.run_started", "live.acme.r", "tasks.wake.acme.r",
				"tasks.high.acme.r", "tasks.normal.acme.r", "tasks.low.acme.r", "nudge.acme.r", "rates.fleet:site.calls.60-1", "rates.acme.starts.1",
				"+nudge.*.*", "+_INBOX_worker.>", "workers.seen.w", "+workers.seen.*", "$JS.API.STREAM.MSG.GET.ROSTER", "$KV.KEYRING.acme", "$JS.API.STREAM.MSG.GET.KV_KEYRING", "open.head", "$JS.API.STREAM.MSG.DELETE.OPEN",
			},
			slices.Concat(copies, reads, asks, decides, []string{
				"longshore.status", "longshore.approve", "longshore.agents.apply", "+longshore.>", "+longshore.submit", "+$SRV.>",
				"$KV.AGENTS.a", "$KV.PROMPTS.p", "$KV.QUOTAS.tenant.acme", "$KV.KEYS.k", "$JS.API.STREAM.MSG.GET.KV_KEYS", "$JS.API.STREAM.MSG.DELETE.KV_KEYRING", "$JS.API.STREAM.PURGE.KV_KEYRING",
				"$JS.API.DIRECT.GET.KV_KEYS.>", "$JS.API.DIRECT.GET.RUNS", "$JS.API.DIRECT.GET.SPEND", "_INBOX_dispatcher.x.y", "$JS.API.STREAM.PURGE.RUNS", "$JS.API.STREAM.DELETE.RUNS", "$JS.API.STREAM.CREATE.EVIL",
				"$JS.API.STREAM.UPDATE.RUNS", "$JS.API.STREAM.MSG.DELETE.RUNS", "$JS.API.STREAM.RESTORE.RUNS", "batches.acme.b.head",
				"batches.acme.b.line.t", "runs.acme.r.other", "rates.acme.submits.1", "$JS.API.CONSUMER.DELETE.TASKS.workers", "_INBOX_operator.x",
				"$JS.API.STREAM.PURGE.OPEN", "+_INBOX_dispatcher.>", "+tasks.>", "+runs.>", "+live.>", "+>", "events.acme._.acted", "events.default._.auth_denied",
			}),
		},
		"dispatcher": {
			[]string{"$JS.API.STREAM.PURGE.RUNS", "runs.acme.r.log", "$KV.AGENTS.a", "nudge.acme.r", "+longshore.>", "+$SRV.>", "+events.*.*.turn_end", "+events.*.*.run_finished"},
			slices.Concat(copies, []string{
				"+_INBOX_worker.>", "+_INBOX_operator.>", "+runs.>", "+events.>", "+>", "_INBOX_operator.x", "$SYS.REQ.SERVER.PING", "other.subject",
			}),
		},
	} {
		t.Run(user, func(t *testing.T) {
			nc := g.connect(user)
			for _, list := range []struct {
				subjects []string
				refused  bool
			}{{tc.may, false}, {tc.mayNot, true}} {
				for _, s := range list.subjects {
					subject, subscribe := strings.CutPrefix(s, "+")
					if got := g.try(nc, subscribe, subject); got != list.refused {
						t.Errorf("%s %s: refused %t, want %t", user, s, got, list.refused)
					}
				}
			}
		})
	}
}

// What permissions alone do not show: that a body does not get around the tenant.
func TestPermissionsAreHeld(t *testing.T) {
	f := startGuardedFleet(t, func(c *modelCall) reply { return turn(c, 1) })
	f.work("worker")
	ctx := t.Context()

	t.Run("a tenant in the body", func(t *testing.T) {
		client, err := dispatcher.NewTenant(ctx, f.g.connect("acme-submitter"), "acme")
		if err != nil {
			t.Fatal(err)
		}
		operator, err := dispatcher.NewTenant(ctx, f.g.connect("acme-operator"), "acme")
		if err != nil {
			t.Fatal(err)
		}
		id, err := f.client.Submit(ctx, messages.Task{Tenant: "harbour", Input: messages.TextInput("theirs")})
		if err != nil {
			t.Fatal(err)
		}
		var p *messages.Problem
		_, err = client.Status(ctx, messages.Ref{Tenant: "harbour", Run: id})
		if !errors.As(err, &p) || p.Code != messages.CodeForbidden {
			t.Errorf("status of another tenant: %v, want forbidden", err)
		}
		_, err = client.Submit(ctx, messages.Task{Tenant: "harbour", Input: messages.TextInput("not ours")})
		if !errors.As(err, &p) || p.Code != messages.CodeForbidden {
			t.Errorf("submit for another tenant: %v, want forbidden", err)
		}
		if _, err = client.Status(ctx, messages.Ref{Tenant: "acme", Run: id}); !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("status of a run of another tenant under our name: %v, want not found", err)
		}
		if _, err = operator.Schedules().Put(ctx, control.Schedule{
			Name: "s", Tenant: "harbour", Every: messages.Duration(time.Hour), Task: messages.Task{Input: messages.TextInput("x")},
		}, "ann", nil); !errors.As(err, &p) || p.Code != messages.CodeForbidden {
			t.Errorf("a schedule of another tenant: %v, want forbidden", err)
		}
		if _, err := client.Prompts().History(ctx, "p"); !errors.Is(err, dispatcher.ErrBound) {
			t.Errorf("a prompt: %v, want ErrBound", err)
		}
	})
	t.Run("events", func(t *testing.T) {
		nc := f.g.connect("acme-viewer")
		for body, want := range map[string]string{
			`{}`:                               `"events":[`, // those of what was refused here
			`{"id":"r"}`:                       `"events":[]`,
			`{"tenant":"harbour"}`:             `"code":"forbidden"`,
			`{"id":"*"}`:                       `"field":"id"`,
			`{"id":">"}`:                       `"field":"id"`,
			`{"id":"r.run_finished"}`:          `"field":"id"`,
			`{"limit":257}`:                    `"field":"limit"`,
			`{"limit":-1}`:                     `"field":"limit"`,
			`{"after":-1}`:                     `"field":"after"`,
			`{"since":"yesterday"}`:            `"field":"since"`,
			`{"since":"9999-01-01T00:00:00Z"}`: `"field":"since"`,
			`{"filter":"events.harbour.>"}`:    `"field":"filter"`,
			`{"after":18446744073709551615}`:   `"field":"after"`,
		} {
			m, err := nc.Request("longshore.t.acme.events", []byte(body), patience)
			if err != nil || !strings.Contains(string(m.Data), want) {
				t.Errorf("%s: %v, %v, want %s", body, m, err, want)
			}
		}
	})
	t.Run("a client of a tenant", func(t *testing.T) {
		f.g.violations()
		client, err := dispatcher.NewTenant(ctx, f.g.connect("acme-submitter"), "acme")
		if err != nil {
			t.Fatal(err)
		}
		if list, err := client.Runs().List(ctx, dispatcher.RunFilter{Tenant: "acme"}); err != nil || len(list.Runs) != 0 {
			t.Errorf("runs at first: %v, %v", list, err)
		}
		id, err := client.Submit(ctx, messages.Task{Tenant: "acme", Input: messages.TextInput("ours")})
		if err != nil {
			t.Fatal(err)
		}
		again, err := client.Submit(ctx, messages.Task{Tenant: "acme", ID: id, Input: messages.TextInput("ours")})
		if err != nil || again != id {
			t.Errorf("the same again: %q, %v", again, err)
		}
		if _, err := client.Submit(ctx, messages.Task{Tenant: "acme", ID: id, Input: messages.TextInput("other")}); !errors.Is(err, dispatcher.ErrConflict) {
			t.Errorf("another under its id: %v, want ErrConflict", err)
		}
		watched, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		r, err := client.Wait(watched, messages.Ref{Tenant: "acme", Run: id})
		if err != nil || r.Status != messages.StatusCompleted {
			t.Fatalf("result %v, %v", r, err)
		}
		if list, err := client.Runs().List(ctx, dispatcher.RunFilter{Tenant: "acme"}); err != nil || len(list.Runs) != 1 || list.Runs[0].ID != id {
			t.Errorf("runs: %v, %v", list, err)
		}
		operator, err := dispatcher.NewTenant(ctx, f.g.connect("acme-operator"), "acme")
		if err != nil {
			t.Fatal(err)
		}
		sc := control.Schedule{Name: "s", Every: messages.Duration(time.Hour), Task: messages.Task{Input: messages.TextInput("x")}}
		if _, err := operator.Schedules().Put(ctx, sc, "ann", nil); err != nil {
			t.Errorf("put a schedule: %v", err)
		}
		if list, err := operator.Schedules().List(ctx, "acme"); err != nil || len(list) != 1 {
			t.Errorf("schedules: %v, %v", list, err)
		}
		if st, err := operator.Schedules().Delete(ctx, control.ScheduleRef{Tenant: "acme", Name: "s"}); err != nil || st.Schedule.Tenant != "acme" {
			t.Errorf("delete a schedule: %v, %v", st, err)
		}
		if list, err := operator.DeadLetters().List(ctx, control.DeadListRequest{DeadFilter: control.DeadFilter{Tenant: "acme"}}); err != nil || len(list.Letters) != 0 {
			t.Errorf("dead letters: %v, %v", list, err)
		}
		if v := subjectsDenied(f.g.violations()); v != nil {
			t.Errorf("denied: %s", strings.Join(v, "\n"))
		}
	})
}

// A dispatcher with the permissions of an earlier version may not hear the end of a run as it is published. It learns of it when that is stored.
func TestEndIsHeardWithEarlierPermissions(t *testing.T) {
	config := guardedConfig(t)
	file := filepath.Join(filepath.Dir(config), "longshore.conf")
	now, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	earlier := strings.Replace(string(now), ` "events.*.*.turn_end", "events.*.*.run_finished",`, "", 1)
	if earlier == string(now) {
		t.Fatal("longshore.conf does not have the two subjects")
	}
	if err := os.WriteFile(file, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGuardedBy(t, config)
	nc := g.connect("dispatcher")
	if err := bus.Setup(t.Context(), nc, bus.Streams{AckWait: guardedAckWait}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	of, done := events.New(b).NewEndings(), make(chan error, 1)
	go func() { done <- of.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	run := messages.Ref{Tenant: "acme", Run: "r"}
	ending := of.Of(run, nil)
	defer ending.Close()
	if err := ending.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if err := g.connect("worker").Publish(b.Partitions(bus.StreamEvents).Subject(run, run.EventSubject(messages.EventRunFinished)), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if finished, err := ending.Next(ctx); !finished || err != nil {
		t.Errorf("finished %t, %v", finished, err)
	}
	if v := g.violations(); len(v) != 2 || !strings.Contains(v[0]+v[1], "run_finished") {
		t.Errorf("the server refused %q, want the two subscriptions", v)
	}
}

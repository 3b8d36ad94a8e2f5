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

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// forge appends a record as a worker could who was taken over: it has the permissions for it, and no key.
func (f *guardedFleet) forge(ctx context.Context, t *testing.T, run messages.Ref, r record.Record) {
	t.Helper()
	b, err := bus.Open(ctx, f.g.connect("worker"), bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	last, _, err := runlogs.New(b, runlogs.Config{}).Last(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	e := record.Entry{Head: record.Follow(last.Head, r), Records: []record.Record{r}}
	e.Head.ID, e.Head.Time = messages.NewID(time.Now()), time.Now().UTC()
	seq, err := runlogs.New(b, runlogs.Config{}).Append(ctx, run, last.Seq, e)
	if err == nil {
		err = taskqueue.New(b).Wake(ctx, run, seq)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A compromised worker forges an approval. The run keeps waiting, whichever worker has it, until a person approves.
func TestForgedApproval(t *testing.T) {
	f := startGuardedFleet(t, guardedScript)
	stop := f.work("first")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	id, err := f.client.Submit(ctx, messages.Task{Agent: "careful", Input: messages.TextInput("write when you may")})
	if err != nil {
		t.Fatal(err)
	}
	run := dispatcher.Run(id)
	if err := f.waits(ctx, run, queue.ParkApproval); err != nil {
		t.Fatal(err)
	}
	asked := func() control.WaitingApproval {
		t.Helper()
		list, err := f.client.Approvals().List(ctx, run.Tenant, 0)
		if err != nil || len(list.Approvals) != 1 {
			t.Fatalf("approvals: %+v, %v", list, err)
		}
		return list.Approvals[0]
	}
	first := asked()
	if err := f.idle(ctx); err != nil { // the park is settled
		t.Fatal(err)
	}
	b, err := bus.Open(ctx, f.g.connect("dispatcher"), bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	parked, _, err := runlogs.New(b, runlogs.Config{}).Last(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	f.forge(ctx, t, run, &record.Decided{ID: "x", Park: parked.Head.ParkSeq, Step: first.Step, Call: first.Call, Hash: first.Hash, By: "ann"})
	f.forge(ctx, t, run, &record.CancelRequested{ID: "y", By: "ann"})
	if err := f.idle(ctx); err != nil { // the wake-ups were looked at
		t.Fatal(err)
	}
	stop()
	st, err := f.client.Status(ctx, run)
	if err != nil || st.Status != messages.StatusWaiting || st.Waits != queue.ParkApproval || !st.Ignored || st.Cancel {
		t.Errorf("status %+v, %v", st, err)
	}
	if diff := cmp.Diff(first, asked()); diff != "" {
		t.Errorf("what is asked has changed: %s", diff)
	}
	if diff := cmp.Diff(map[string]int{"write when you may 0": 1}, f.model.counts()); diff != "" {
		t.Errorf("model calls: %s", diff)
	}
	if _, err := f.client.Approvals().Approve(ctx, run, dispatcher.Decision{Call: first.Call, Hash: first.Hash, By: "bob"}); err != nil {
		t.Fatal(err)
	}
	f.work("second")
	if err := f.ends(ctx, run, messages.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	var told []string
	n := uint64(0)
	for e, err := range f.client.Watch(ctx, run) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; e.Number() != n {
			t.Errorf("event %s has number %d, want %d", e.Name(), e.Number(), n)
		}
		if slices.Contains([]string{messages.EventDecisionIgnored, messages.EventApprovalDecided, messages.EventCancelRequested}, e.Name()) {
			told = append(told, e.Name())
		}
	}
	if diff := cmp.Diff([]string{messages.EventDecisionIgnored, messages.EventDecisionIgnored, messages.EventApprovalDecided}, told); diff != "" {
		t.Errorf("events: %s", diff)
	}
}

// A forged cancel does not touch a model call in flight.
func TestForgedCancel(t *testing.T) {
	f := startGuardedFleet(t, guardedScript)
	f.work("worker")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	id, err := f.client.Submit(ctx, messages.Task{Input: messages.TextInput("hold on")})
	if err != nil {
		t.Fatal(err)
	}
	run := dispatcher.Run(id)
	call := <-f.model.held
	f.forge(ctx, t, run, &record.CancelRequested{ID: "y", By: "ann"})
	b, err := bus.Open(ctx, f.g.connect("dispatcher"), bus.Config{})
	if err == nil {
		err = taskqueue.New(b).Nudge(ctx, run)
	}
	if err != nil {
		t.Fatal(err)
	}
	call.answer <- reply{Text: "Done."}
	if err := f.ends(ctx, run, messages.StatusCompleted); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]int{"hold on 0": 1}, f.model.counts()); diff != "" {
		t.Errorf("model calls: %s", diff)
	}
}

func TestSigningSettings(t *testing.T) {
	g := startGuarded(t)
	key, err := bus.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := bus.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct{ seed, keys, want string }{
		"no seed":        {"", key.Public(), "LONGSHORE_SIGNING_KEY_FILE is missing"},
		"no file":        {filepath.Join(t.TempDir(), "none"), "", "LONGSHORE_SIGNING_KEY_FILE: open"},
		"no key in it":   {file("secret"), "", "LONGSHORE_SIGNING_KEY_FILE: not a signing key"},
		"another's keys": {file(key.Seed()), other.Public(), "LONGSHORE_CONTROL_KEYS: lacks " + key.Public()},
		"a secret":       {file(key.Seed()), key.Seed(), "LONGSHORE_CONTROL_KEYS: this is a secret key"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fleet.Dispatcher(t.Context(), settings.Dispatcher{
				NATS: settings.NATS{URL: g.address("dispatcher"), InboxPrefix: inboxOf("dispatcher")}, SigningKey: tc.seed, ControlKeys: tc.keys,
			}, "test", testLog(t, "dispatcher"), nil)
			var set *settings.Error
			if !errors.As(err, &set) || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), key.Seed()) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

//go:build unix

package fleet_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// oldData is a data folder that `longshore dev` of commit 743354b left behind, what that program said of it, and the
// script of its model. The folder and what was said of it are made by data-743354b.sh beside them, which says how.
const oldData = "testdata/data-743354b"

// The program continues with a folder that an older one wrote: what has ended reads as it did, and what waits is ended.
//
// Time passes for the folder too. Logs and buckets are kept, for the retention is set long enough. The streams EVENTS
// (14 days), LOGS (7 days) and BATCHES (30 days) lose their messages, so the events are those that the log stands for,
// and the batch is compared while it is there. An approval is waited for 366 days, and a task is held back for 360: the
// test says below what comes after.
func TestFolderOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	was := readOld(t)
	dir := t.TempDir()
	unpack(t, oldData+".tar.gz", dir)
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: dir, Dev: settings.Dev{Serving: settings.Serving{Retention: 100 * 365 * 24 * time.Hour}, Models: settings.Models{Script: oldData + ".script.yaml"}, Runs: settings.Runs{Slots: 4, MaxAttempts: 5, ModelTimeout: time.Minute}}, Log: testLog(t, "dev"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	for _, id := range []string{"inventory", "talk-1"} {
		run := dispatcher.Run(id)
		page, err := c.Runs().LogPage(t.Context(), run, 0, 1000)
		as(t, was, "log "+id, page, err)
		as(t, was, "events "+id, eventsOfLog(t, page, run), nil)
		r, err := c.Result(t.Context(), run)
		as(t, was, "result "+id, r, err)
	}
	for _, o := range old[[]*messages.BatchOutcome](t, was, "outcomes") {
		completed(t, must(c.Result(t.Context(), dispatcher.Run(o.Task)))(t), o.Result.Text.(string))
	}
	made := old[time.Time](t, was, "made")
	b, err := c.Batches().Get(t.Context(), messages.BatchRef{Tenant: messages.DefaultTenant, ID: "greetings"})
	if !errors.Is(err, dispatcher.ErrNoBatch) || time.Since(made) < 30*24*time.Hour {
		as(t, was, "batch", b, err)
	}
	history, err := c.Agents().History(t.Context(), "mate")
	as(t, was, "agent", control.History{Changes: history}, err)
	for i, want := range []string{"Look after the moorings and the lights.", "Look after the moorings."} {
		if a, err := c.Agents().At(t.Context(), "mate", history[i].Revision); err != nil || a.Agent.Instructions != want {
			t.Errorf("revision %d of the agent: %+v, %v", history[i].Revision, a.Agent, err)
		}
	}
	p, err := c.Prompts().Get(t.Context(), "notice", 0)
	as(t, was, "prompt", p, err)

	t.Run("the run that waits", func(t *testing.T) {
		run, want := dispatcher.Run("bulletin"), "Done: Wrote 11 bytes to bulletin.txt"
		before := old[control.LogPage](t, was, "log bulletin")
		if expires := made.Add(365 * 24 * time.Hour); time.Now().Before(expires) {
			as(t, was, "log bulletin", must(c.Runs().LogPage(t.Context(), run, 0, 1000))(t), nil)
			if _, err := c.Approvals().Approve(t.Context(), run, dispatcher.Decision{Call: "call_1_1", By: "ann"}); err != nil {
				t.Fatal(err)
			}
		} else {
			want = "Done: No approval came in time, and the call was not made."
		}
		completed(t, must(c.Wait(t.Context(), run))(t), want)
		after := must(c.Runs().LogPage(t.Context(), run, 0, 1000))(t)
		if n := len(before.Entries); len(after.Entries) <= n {
			t.Errorf("the log has %d entries, and had %d", len(after.Entries), n)
		} else {
			same(t, "the log before it was continued", before.Entries, after.Entries[:n])
		}
	})
	t.Run("the session", func(t *testing.T) {
		id, err := c.Submit(t.Context(), messages.Task{Session: "talk", Input: messages.TextInput("Where do I lie?")})
		if err != nil {
			t.Fatal(err)
		}
		completed(t, must(c.Wait(t.Context(), dispatcher.Run(id)))(t), "Hello, harbour.")
		var recalled []string
		for e, err := range c.Runs().Log(t.Context(), dispatcher.Run(id)) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range e.Records {
				if r, ok := r.(*record.Recalled); ok {
					recalled = append(recalled, "from "+r.From)
					for _, m := range r.Messages {
						recalled = append(recalled, string(m.Role)+": "+m.Text())
					}
				}
			}
		}
		if diff := cmp.Diff([]string{"from talk-1", "user: My berth is seven.", "assistant: Noted."}, recalled); diff != "" {
			t.Errorf("recalled: %s", diff)
		}
	})
	t.Run("the task that is due later", func(t *testing.T) {
		if due := old[control.RunStatus](t, was, "status later").NotBefore; time.Now().After(*due) {
			completed(t, must(c.Wait(t.Context(), dispatcher.Run("later")))(t), "Hello, harbour.")
			return
		}
		as(t, was, "status later", must(c.Status(t.Context(), dispatcher.Run("later")))(t), nil)
	})
	t.Run("the schedule", func(t *testing.T) {
		ref := control.ScheduleRef{Tenant: messages.DefaultTenant, Name: "tides"}
		as(t, was, "schedule", must(c.Schedules().Get(t.Context(), ref))(t), nil)
		s := must(c.Schedules().Resume(t.Context(), ref, "ann"))(t)
		if s.Schedule.Paused || len(s.Next) == 0 || s.Next[0].UTC().Format("01-02 15:04") != "01-01 07:00" {
			t.Errorf("resumed: %+v", s)
		}
	})
}

// readOld reads what the older program said.
func readOld(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	text, err := os.ReadFile(oldData + ".json")
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &was); err != nil {
		t.Fatal(err)
	}
	return was
}

// old is what the older program said under a name; all of it must have a place today.
func old[T any](t *testing.T, was map[string]json.RawMessage, name string) (v T) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(was[name]))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// as checks that a value is as the older program told it.
func as[T any](t *testing.T, was map[string]json.RawMessage, name string, v T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	same(t, name, old[T](t, was, name), v)
}

// same compares two values as they are on the wire, spacing aside.
func same(t *testing.T, name string, want, got any) {
	t.Helper()
	var w, g any
	for _, side := range []struct{ from, to any }{{want, &w}, {got, &g}} {
		text, err := json.Marshal(side.from)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := json.Unmarshal(text, side.to); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s is not as it was: %s", name, diff)
	}
}

// must ends the test when there is an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eventsOfLog are those that a log stands for.
func eventsOfLog(t *testing.T, page *control.LogPage, run messages.Ref) []messages.Event {
	t.Helper()
	if page == nil {
		return nil
	}
	var out []messages.Event
	for _, copied := range page.Entries {
		e, err := copied.Entry()
		if err != nil {
			t.Fatal(err)
		}
		out = slices.Concat(out, record.Events(run, e))
	}
	return out
}

// unpack makes the folders and files of an archive of the tests.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(at, 0o700)
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(at, text, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

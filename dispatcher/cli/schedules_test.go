package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestSchedules(t *testing.T) {
	f := newFleet(t)
	file := filepath.Join(t.TempDir(), "s.yaml")
	const text = "apiVersion: longshore.run/v1\nkind: Schedule\nmetadata: {name: nightly, description: Tidies up.}\n" +
		"spec: {cron: 0 3 * * *, timeZone: Europe/Berlin, task: {input: Tidy up.}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := f.run(t, "schedules", "apply", "-f", file)
	if lines := strings.Split(out, "\n"); !strings.HasPrefix(out, "schedule nightly applied, revision ") || len(lines) != 5 || !strings.Contains(lines[1], " 03:00:00 +0") {
		t.Errorf("apply:\n%s", out)
	}
	if out, _ := f.run(t, "schedules", "apply", "-f", file); !strings.HasPrefix(out, "schedule nightly unchanged, revision ") {
		t.Errorf("apply again:\n%s", out)
	}
	f.fails(t, "schedule nightly has been changed in the meantime: see `longshore schedules show nightly`", "schedules", "apply", "-f", file, "--if-revision", "0")
	if out, _ := f.run(t, "schedules", "list"); !strings.HasPrefix(out, "NAME") || !strings.Contains(out, "nightly  0 3 * * * Europe/Berlin  default  ") {
		t.Errorf("list:\n%s", out)
	}
	if out, _ := f.run(t, "schedules", "pause", "nightly"); out != "schedule nightly paused\n" {
		t.Errorf("pause: %s", out)
	}
	out, _ = f.run(t, "schedules", "run", "nightly")
	id := strings.TrimSpace(out)
	if !strict.ValidToken(id) {
		t.Errorf("run: %q", out)
	}
	f.fails(t, "schedule nightly: the schedule was not run: run "+id+" is still running", "schedules", "run", "nightly")
	if out, _ := f.run(t, "schedules", "show", "nightly"); !strings.Contains(out, "paused       yes\n") || !strings.Contains(out, "last run     "+id+"\n") {
		t.Errorf("show:\n%s", out)
	}
	if out, _ := f.run(t, "schedules", "resume", "nightly"); out != "schedule nightly resumed\n" {
		t.Errorf("resume: %s", out)
	}
	if out, _ := f.run(t, "schedules", "delete", "nightly"); out != "schedule nightly deleted\n" {
		t.Errorf("delete: %s", out)
	}
	for _, verb := range []string{"show", "pause", "resume", "run", "delete"} {
		f.fails(t, "no schedule nightly of tenant default: see `longshore schedules list`", "schedules", verb, "nightly")
	}
}

// What did not run is shown with its reason: the newest first, and several in a row on one line.
func TestSkippedOccurrences(t *testing.T) {
	f := newFleet(t)
	file := filepath.Join(t.TempDir(), "s.yaml")
	const text = "apiVersion: longshore.run/v1\nkind: Schedule\nmetadata: {name: often}\nspec: {cron: '* * * * * *', catchUp: one, task: {input: Look.}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), embeddedtest.Conn(t, f.servers), bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ref := control.ScheduleRef{Tenant: messages.DefaultTenant, Name: "often"}
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	ledger := schedules.Ledger{
		State: &control.ScheduleState{At: at, Outcome: control.OutcomeSubmitted}, Taken: at.AddDate(20, 0, 0), // so that none comes
		Skipped: []control.Skipped{
			{At: at, Count: 3, Last: new(at.Add(2 * time.Second)), Reason: "no dispatcher took it in time"},
			{At: at.Add(9 * time.Second), Count: 1, Reason: "run \x1b[2J is still running"},
		},
	}
	if _, err := schedules.New(b).PutLedger(t.Context(), ref, ledger, 0); err != nil {
		t.Fatal(err)
	}
	f.run(t, "schedules", "apply", "-f", file)
	out, _ := f.run(t, "schedules", "show", "often")
	_, got, _ := strings.Cut(out, "skipped")
	const want = "      Mon 2026-11-23 08:00:09 +00:00: run \\x1b[2J is still running\n" +
		"skipped      3 from Mon 2026-11-23 08:00:00 +00:00 to Mon 2026-11-23 08:00:02 +00:00: no dispatcher took it in time\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	if out, _ := f.run(t, "schedules", "show", "often", "-o", "json"); !strings.Contains(out, `"skipped":[{"at":"2026-11-23T08:00:00Z","last":"2026-11-23T08:00:02Z","count":3,"reason":"no dispatcher took it in time"},{`) {
		t.Errorf("show -o json: %s", out)
	}
}

func TestSubmitLater(t *testing.T) {
	f := newFleet(t)
	f.run(t, "submit", "--id", "later", "--in", "1h", "hello")
	if out, _ := f.run(t, "status", "later"); !strings.Contains(out, "scheduled until ") {
		t.Errorf("status:\n%s", out)
	}
	f.run(t, "submit", "--id", "then", "--at", time.Now().Add(time.Hour).Format(time.RFC3339), "hello")
	f.run(t, "cancel", "then")
	for _, args := range [][]string{
		{"--in", "1h", "--at", "2030-01-01T00:00:00Z"}, {"--in", "soon"}, {"--in", "-1h"}, {"--in", "90000h"}, {"--at", "tomorrow"}, {"--at", "2999-01-01T00:00:00Z"},
	} {
		if _, _, err := executeWith(t, f.connect, "", append([]string{"submit", "hello"}, args...)...); err == nil {
			t.Errorf("submit %v was accepted", args)
		}
	}
}

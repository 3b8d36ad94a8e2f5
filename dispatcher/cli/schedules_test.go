package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
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
	f.fails(t, "schedule nightly has been changed meanwhile: see `longshore schedules show nightly`", "schedules", "apply", "-f", file, "--if-revision", "0")
	if out, _ := f.run(t, "schedules", "list"); !strings.HasPrefix(out, "NAME") || !strings.Contains(out, "nightly  0 3 * * * Europe/Berlin  default  ") {
		t.Errorf("list:\n%s", out)
	}
	if out, _ := f.run(t, "schedules", "pause", "nightly"); out != "schedule nightly paused\n" {
		t.Errorf("pause: %s", out)
	}
	out, _ = f.run(t, "schedules", "run", "nightly")
	id := strings.TrimSpace(out)
	if !messages.ValidToken(id) {
		t.Errorf("run: %q", out)
	}
	f.fails(t, "schedule nightly: the schedule was not run: run "+id+" goes on", "schedules", "run", "nightly")
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

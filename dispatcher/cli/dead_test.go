package cli_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

func TestDead(t *testing.T) {
	f := newFleet(t)
	if _, errs := f.run(t, "dead", "list"); errs != "no dead letters\n" {
		t.Errorf("without any: %q", errs)
	}
	letter := func(run, body string) {
		t.Helper()
		ref := messages.Ref{Tenant: messages.DefaultTenant, Run: run}
		err := f.controller.Queue.DeadLetter(t.Context(), ref, "writer", messages.Dead{
			Error: messages.RunError{Code: messages.CodePoison, Message: "bad\x1b[2J luck"}, Subject: ref.TaskSubject(messages.PriorityNormal),
			Task: []byte(body), Attempts: 5, Time: time.Now().UTC(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	letter("a", `{"input":"go","agent":"unknown"}`)
	letter("b", `{"input":"go"}`)
	letter("c", `{"input":"go"}`)
	out, _ := f.run(t, "dead", "list", "--agent", "writer", "--code", "poison", "--since", "1h")
	if !strings.HasPrefix(out, "LETTER  KIND  OF  AGENT   CODE    TRIES  AGE") || strings.Contains(out, "\x1b") || strings.Count(out, "\n") != 4 {
		t.Errorf("list:\n%s", out)
	}
	if out, _ = f.run(t, "dead", "show", "1"); !strings.Contains(out, `"task":{"input":"go","agent":"unknown"}`) {
		t.Errorf("show: %s", out)
	}
	f.fails(t, "no such dead letter of tenant other: see `longshore dead list`", "dead", "show", "1", "--tenant", "other")
	if out, _ = f.run(t, "dead", "redrive", "1", "--set", "agent=default", "--set", `labels={"by":"ann"}`, "--new-id", "again"); out != "letter 1 is run again\n" {
		t.Errorf("redrive: %q", out)
	}
	if out, _ = f.run(t, "status", "again"); !strings.Contains(out, "queued") {
		t.Errorf("status: %s", out)
	}
	if out, _ = f.run(t, "dead", "redrive", "2", "-o", "json"); !strings.Contains(out, `"seq":2,"kind":"run","tenant":"default","id":"redrive-`) {
		t.Errorf("redrive: %s", out)
	}
	letter("d", `{`)
	if out, _ = f.run(t, "dead", "purge", "3"); out != "letter 3 is removed\n" {
		t.Errorf("purge: %q", out)
	}
	f.fails(t, "1 letter could not be sent again", "dead", "redrive", "--all")
	if out, _ = f.run(t, "dead", "purge", "--all", "--yes"); out != "letter "+strconv.Itoa(4)+" is removed\n" {
		t.Errorf("purge: %q", out)
	}
	for name, args := range map[string][]string{
		"nothing chosen":    {"dead", "redrive"},
		"both":              {"dead", "purge", "1", "--all"},
		"not sure":          {"dead", "purge", "--all"},
		"no number":         {"dead", "show", "x"},
		"two are edited":    {"dead", "redrive", "1", "2", "--set", "a=b"},
		"all are edited":    {"dead", "redrive", "--all", "--new-id", "x"},
		"of tenant none":    {"dead", "list", "--tenant", "_"},
		"an unknown kind":   {"dead", "list", "--kind", "x"},
		"no file":           {"dead", "redrive", "1", "--edit", "/nowhere"},
		"webhook, no URL":   {"submit", "x", "--webhook", ""},
		"webhook of a file": {"submit", "x", "--webhook", "file:///etc/passwd"},
	} {
		if _, _, err := executeWith(t, f.connect, "", args...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	f.fails(t, "refused: webhook: this fleet sends no webhooks: its operator sets LONGSHORE_WEBHOOK_SECRET", "submit", "x", "--webhook", "https://hooks.example.com/")
}

package cli_test

import (
	"strings"
	"testing"
)

func TestPauses(t *testing.T) {
	f := newFleet(t)
	if out, _ := f.run(t, "pause"); out != "" {
		t.Errorf("nothing is paused: %q", out)
	}
	f.fails(t, "tenant acme is not paused: see `longshore pause`", "resume", "tenant", "acme")
	if out, _ := f.run(t, "pause", "tenant", "acme", "--by", "ann", "--reason", "too \x1b[31mdear"); out != "tenant acme is paused, everywhere within 2 seconds: steps in progress end first. Resume with `longshore resume tenant acme`\n" {
		t.Error(out)
	}
	if out, _ := f.run(t, "pause"); !strings.HasPrefix(out, "KIND    NAME  BY   SINCE") || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	if out, _ := f.run(t, "pause", "-o", "json"); !strings.Contains(out, `"kind":"tenant","name":"acme","by":"ann"`) {
		t.Error(out)
	}
	f.run(t, "submit", "--id", "r1", "--tenant", "acme", "hello")
	if out, _ := f.run(t, "why", "r1", "--tenant", "acme"); !strings.HasPrefix(out, "It is in the queue: tenant acme was paused by ann at ") {
		t.Error(out)
	}
	if out, _ := f.run(t, "resume", "tenant", "acme"); out != "tenant acme is resumed, everywhere within 2 seconds\n" {
		t.Error(out)
	}
	if out, _ := f.run(t, "why", "r1", "--tenant", "acme"); out != "It is in the queue, and no worker answers that could take it.\n" {
		t.Error(out)
	}
	if out, _ := f.run(t, "why", "r1", "--tenant", "acme", "-o", "json"); !strings.Contains(out, `"status":"queued"`) {
		t.Error(out)
	}
	f.run(t, "submit", "--id", "later", "--in", "1h", "hello")
	if out, _ := f.run(t, "why", "later"); !strings.HasPrefix(out, "It is scheduled, and comes to the queue at ") {
		t.Error(out)
	}
	f.run(t, "cancel", "later", "--reason", "enough")
	if out, _ := f.run(t, "why", "later"); out != "It has ended: cancelled: enough.\n" {
		t.Error(out)
	}
	f.fails(t, "no run r2 of tenant default: `longshore list` shows those of the last day; --tenant names another tenant", "why", "r2")
}

func TestPausesUsage(t *testing.T) {
	f := newFleet(t)
	for name, tc := range map[string][]string{
		"no name":      {"pause", "tenant"},
		"another kind": {"pause", "planet", "acme"},
		"hostile":      {"resume", "tenant", "a.>"},
		"nothing":      {"resume"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := executeWith(t, f.connect, "", tc...); err == nil {
				t.Error("no error")
			}
		})
	}
}

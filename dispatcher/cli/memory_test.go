package cli_test

import (
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	f := newFleet(t)
	if out, errs := f.run(t, "memory", "ls"); out != "" || errs != "no collections of tenant default\n" {
		t.Errorf("without any: %q, %q", out, errs)
	}
	if out, errs := f.run(t, "memory", "ls", "facts"); out != "" || errs != "no items in collection facts of tenant default\n" {
		t.Errorf("without any: %q, %q", out, errs)
	}
	const none = "collection facts of tenant default has no item berth: see `longshore memory ls facts`"
	f.fails(t, none, "memory", "show", "facts", "berth")
	f.fails(t, "collection facts of tenant default has none of these items: see `longshore memory ls facts`", "memory", "rm", "facts", "berth")
	put := []string{"memory", "put", "facts", "berth", "Berth 7 is closed.\nUntil \x1b[31mmay.", "--subject", "berth-7", "--tag", "berths", "--agent", "harbour"}
	if out, _ := f.run(t, put...); out != "item berth was written to collection facts\n" {
		t.Error(out)
	}
	if out, _ := f.run(t, put...); out != "item berth is in collection facts as it is\n" {
		t.Error(out)
	}
	f.run(t, "memory", "put", "facts", "crane", "Crane 2 lifts 40 tons.", "--expires", "1h")
	if out, _ := f.run(t, "memory", "ls"); !strings.HasPrefix(out, "NAME   ITEMS  BYTES\nfacts  2      ") {
		t.Errorf("collections:\n%s", out)
	}
	if out, _ := f.run(t, "memory", "ls", "facts", "--tag", "berths"); !strings.Contains(out, "agent=harbour subject=berth-7  -       Berth 7 is closed. …\n") || strings.Contains(out, "Crane") {
		t.Errorf("list:\n%s", out)
	}
	if out, errs := f.run(t, "memory", "ls", "facts", "--limit", "1"); strings.Count(out, "\n") != 2 || errs != "there are more than these: raise --limit\n" {
		t.Errorf("list: %q, %q", out, errs)
	}
	if out, _ := f.run(t, "memory", "show", "facts", "berth"); !strings.Contains(out, "\ntags     berths\n\nBerth 7 is closed.\nUntil \\x1b[31mmay.\n") {
		t.Errorf("show:\n%s", out)
	}
	if out, _ := f.run(t, "memory", "search", "facts", "what", "can", "crane", "2", "lift", "--top-k", "1"); !strings.Contains(out, "Crane 2 lifts 40 tons.") || strings.Contains(out, "Berth") {
		t.Errorf("search:\n%s", out)
	}
	if out, errs := f.run(t, "memory", "search", "facts", "zebra"); out != "" || errs != "nothing found in collection facts of tenant default\n" {
		t.Errorf("search: %q, %q", out, errs)
	}
	if out, errs := f.run(t, "memory", "ls", "--tenant", "other"); out != "" || errs != "no collections of tenant other\n" {
		t.Errorf("another tenant: %q, %q", out, errs)
	}
	if out, _ := f.run(t, "memory", "rm", "facts", "berth", "gone"); out != "1 of 2 items removed from collection facts\n" {
		t.Error(out)
	}
	f.fails(t, none, "memory", "show", "facts", "berth")
	for _, wrong := range [][]string{
		{"memory", "ls", "a", "b"},
		{"memory", "ls", "a", "--limit", "0"},
		{"memory", "show", "a"},
		{"memory", "show", "a.>", "b"},
		{"memory", "search", "a"},
		{"memory", "search", "a", "b", "--top-k", "101"},
		{"memory", "put", "a", "b", " "},
		{"memory", "put", "a", "b", "c", "--expires", "-1s"},
		{"memory", "rm", "a"},
	} {
		if _, _, err := executeWith(t, f.connect, "", wrong...); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}

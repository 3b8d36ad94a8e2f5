package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBatchCommands(t *testing.T) {
	f := newFleet(t)
	template := write(t, "task.json", `{"input":"Describe {{ city }} in {{n}} words.","labels":{"city":"{{city}}"}}`)
	good := write(t, "good.jsonl", `{"custom_id":"1","vars":{"city":"Oslo","n":5}}`+"\n"+`{"custom_id":"2","vars":{"city":"{{n}}","n":6}}`+"\n")
	bad := write(t, "bad.jsonl", `{"custom_id":"1","vars":{"city":"Oslo","n":5}}`+"\n\n"+`{"custom_id":"2","vars":{"n":6}}`+"\n")

	if out, _ := f.run(t, "batch", "submit", good, "--template", template, "--dry-run"); out != "2 lines right, 0 wrong, about 12 tokens of input; nothing was submitted\n" {
		t.Errorf("%q", out)
	}
	_, told := f.fails(t, "1 line of 2 are wrong: nothing was submitted; --skip-invalid leaves them out",
		"batch", "submit", bad, "--template", template, "--id", "b")
	if told != "line 3: vars.city: is missing\n" {
		t.Errorf("%q", told)
	}
	f.fails(t, "no batch b of tenant default: `longshore batch list` shows those that there are", "batch", "status", "b")

	out, told := f.run(t, "batch", "submit", good, "--template", template, "--id", "b", "--name", "cities", "--max-cost", "2", "--concurrency", "1")
	if out != "b\n" || !strings.Contains(told, "2 lines submitted") {
		t.Errorf("%q, told %q", out, told)
	}
	if again, _ := f.run(t, "batch", "submit", good, "--template", template, "--id", "b"); again != "b\n" {
		t.Errorf("%q", again)
	}
	if out, _ := f.run(t, "batch", "status", "b"); !strings.Contains(out, "at once") {
		t.Errorf("%q", out)
	}
	f.fails(t, "batch b has not ended: wait for it with `longshore batch status b --wait`", "batch", "retry", "b", "--failed")
	if out, _ := f.run(t, "batch", "list"); !strings.Contains(out, "cities") {
		t.Errorf("%q", out)
	}
	if out, _ := f.run(t, "batch", "cancel", "b", "--reason", "enough"); !strings.Contains(out, "cancelled enough") {
		t.Errorf("%q", out)
	}
	f.fails(t, "batch b is cancelled: 2 of 2 lines did not complete", "batch", "status", "b", "--wait")
	out = f.raw(t, "batch", "results", "b", "--order", "completion")
	if strings.Count(out, `"status":"cancelled"`) != 2 {
		t.Errorf("%q", out)
	}
	retried, _ := f.run(t, "batch", "retry", "b", "--id", "b2")
	if retried != "b2\n" {
		t.Errorf("%q", retried)
	}
}

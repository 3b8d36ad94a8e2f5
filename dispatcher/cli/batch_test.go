package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/control"
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

	if out, _ := f.run(t, "batch", "submit", good, "--template", template, "--dry-run"); out != "2 lines valid, 0 invalid, about 12 tokens of input; nothing was submitted\n"+
		"cost unknown: this dispatcher keeps no index of runs (LONGSHORE_INDEX)\n" {
		t.Errorf("%q", out)
	}
	_, told := f.fails(t, "nothing was submitted: 1 of 2 lines invalid; correct the file, or skip them with --skip-invalid",
		"batch", "submit", bad, "--template", template, "--id", "b")
	if told != "line 3: vars.city: is missing\n" {
		t.Errorf("%q", told)
	}
	f.fails(t, "no batch b of tenant default: see `longshore batch list`", "batch", "status", "b")
	none := write(t, "none.jsonl", "{}\n{\n")
	f.fails(t, "nothing was submitted: 2 of 2 lines invalid; correct the file and submit it again", "batch", "submit", none)
	f.fails(t, "2 of 2 lines invalid; correct the file and submit it again", "batch", "submit", none, "--skip-invalid", "--dry-run")
	f.fails(t, "nothing of batch none was run: 2 of 2 lines invalid; correct the file and submit it again", "batch", "submit", none, "--skip-invalid", "--id", "none")
	if out, _ := f.run(t, "batch", "status", "none"); !strings.Contains(out, "failed (2 of 2 lines are invalid, so nothing was run: correct the lines and submit the batch again)") {
		t.Errorf("%q", out)
	}

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

// A dry run says what the batch would cost, of how many lines, and why that of others is unknown.
func TestBatchDryRunEstimates(t *testing.T) {
	f := newStreams(t) // the test answers for a dispatcher
	nc := embeddedtest.Conn(t, f.servers)
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{"priced", "other"} {
		if _, _, err := catalog.New(b).PutAgent(t.Context(), messages.Definition{Name: agent}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = nc.Subscribe(control.SubjectRuns, func(m *nats.Msg) {
		page := `{"runs":[]}`
		if strings.Contains(string(m.Data), `"agent":"priced"`) {
			page = `{"runs":[{"tenant":"default","id":"r1","status":"completed","steps":1,"tokenUsage":{},"cost":0.5},{"tenant":"default","id":"r2","status":"completed","steps":1,"tokenUsage":{},"cost":0.7}]}`
		}
		if err := m.Respond([]byte(page)); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil { // before others ask
		t.Fatal(err)
	}
	priced := `{"custom_id":"1","input":"x","agent":"priced"}` + "\n" + `{"custom_id":"2","input":"x","agent":"priced"}` + "\n"
	for name, tc := range map[string]struct{ lines, want string }{
		"all":  {priced, "2 lines valid, 0 invalid, about 0 tokens of input; nothing was submitted\ncost about $1.20, as 2 past runs cost\n"},
		"some": {priced + `{"custom_id":"3","input":"xxxx","agent":"other"}`, "3 lines valid, 0 invalid, about 1 token of input; nothing was submitted\ncost about $1.20 for 2 of 3 lines, as 2 past runs cost; of the others unknown: no past runs of agent other with a price\n"},
	} {
		if out, _ := f.run(t, "batch", "submit", write(t, "lines.jsonl", tc.lines), "--dry-run"); out != tc.want {
			t.Errorf("%s: %q", name, out)
		}
	}
	out, _ := f.run(t, "batch", "submit", write(t, "lines.jsonl", priced), "--dry-run", "-o", "json")
	if !strings.Contains(out, `"cost":{"usd":1.2,"lines":2,"runs":2}`) {
		t.Errorf("%q", out)
	}
}

package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/record"
)

// workAbout writes the log of a run about a person, whose task and result hold a word; open leaves it without an end.
func (f *fleet) workAbout(t *testing.T, id, subject, word string, open bool) {
	t.Helper()
	run := messages.Ref{Tenant: "acme", Run: id}
	task := messages.Task{ID: id, Tenant: "acme", Session: "talk-" + subject, Input: messages.TextInput("Task of " + word), Labels: map[string]string{erasure.LabelSubject: subject}}
	task.SetDefaults()
	now := time.Now()
	if _, _, err := f.controller.JoinSession(t.Context(), run, task.Session); err != nil {
		t.Fatal(err)
	}
	records := []record.Record{
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: now}, &record.Claimed{Claim: "c", Worker: "w", Ticket: 1},
		&record.Recalled{}, &record.StepStarted{Step: 1},
		&record.ModelReplied{Step: 1, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("Reply of " + word)}, Stop: messages.StopEnd},
	}
	if !open {
		result := messages.AgentResult{ID: id, Status: messages.StatusCompleted, Success: true, Result: "Result of " + word, StartedAt: now, FinishedAt: now, Steps: 1}
		records = append(records, &record.StepEnded{Step: 1, Status: messages.StepCompleted}, &record.Finished{Result: result})
	}
	if _, err := f.controller.Begin(t.Context(), run, records...); err != nil {
		t.Fatal(err)
	}
	if open {
		return
	}
	if err := f.controller.Settle(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

// stored is every message of every stream, as text.
func (f *fleet) stored(t *testing.T) string {
	t.Helper()
	js, err := jetstream.New(embeddedtest.Conn(t, f.servers))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for name := range js.StreamNames(t.Context()).Name() {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		state := s.CachedInfo().State
		for seq := state.FirstSeq; seq > 0 && seq <= state.LastSeq; seq++ {
			m, err := s.GetMsg(t.Context(), seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(m.Subject + " " + string(m.Data) + "\n")
		}
	}
	return all.String()
}

// unpacked are the files of an archive by name.
func unpacked(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(data)
	}
}

// What is kept of a person is exported and erased, and nothing of another; a run that has not ended stays, and is named.
func TestDataOfAPerson(t *testing.T) {
	f := newFleet(t)
	f.workAbout(t, "a1", "ann", "planted-ann", false)
	f.workAbout(t, "a2", "ann", "planted-open", true)
	f.workAbout(t, "b1", "bob", "planted-bob", false)
	c, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for _, it := range []memory.Item{
		{ID: "about-ann", Subject: "ann", Text: "planted-ann pays late"},
		{ID: "about-bob", Subject: "bob", Text: "planted-bob pays early"},
		{ID: "by-ann", Text: "planted-ann was told", Source: memory.Source{Run: "a1", Step: 1}},
		{ID: "by-none", Text: "berth 7"},
	} {
		if _, err := c.Memory().Put(t.Context(), memory.PutRequest{Tenant: "acme", Name: "facts", Items: []memory.Item{it}}); err != nil {
			t.Fatal(err)
		}
	}
	for run, word := range map[string]string{"a1": "planted-ann", "b1": "planted-bob"} {
		f.run(t, "feedback", run, "up", "--note", "Said of "+word, "--tenant", "acme")
	}
	of := []string{"--tenant", "acme", "--subject", "ann"}
	file := filepath.Join(t.TempDir(), "ann.tar.gz")
	f.run(t, append([]string{"memory", "export", "-o", file}, of...)...)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive: %v, %v", info, err)
	}
	files := unpacked(t, file)
	for name, want := range map[string]string{
		"runs/a1/log.jsonl": "Task of planted-ann", "runs/a1/events.jsonl": "Result of planted-ann", "runs/a1/feedback.jsonl": "Said of planted-ann",
		"runs/a2/log.jsonl": "planted-open", "memory/facts.jsonl": "planted-ann pays late", "export.json": `"format": "longshore.export.v1"`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %q: %q", name, want, files[name])
		}
	}
	if strings.Count(files["memory/facts.jsonl"], "\n") != 2 {
		t.Errorf("items: %s", files["memory/facts.jsonl"])
	}
	for name, text := range files {
		if strings.Contains(text, "planted-bob") || strings.Contains(name, "b1") {
			t.Errorf("%s tells of another person: %s", name, text)
		}
	}
	f.fails(t, "write the archive: open "+file+": file exists", append([]string{"memory", "export", "-o", file}, of...)...)

	del := append([]string{"memory", "delete"}, of...)
	out, _ := f.run(t, append(del, "--dry-run")...)
	const left = "not here: values in Redis: this dispatcher has no REDIS_URL; they expire by themselves, unless they are of the tools kv\n"
	if want := "subject ann of tenant acme: 1 run, 2 items of long-term memory, 0 sessions would be erased\n" + left + "1 run has not ended and would stay\n"; out != want {
		t.Errorf("dry run: %q", out)
	}
	for _, args := range [][]string{{"memory", "delete"}, {"memory", "delete", "--session", "a", "--subject", "b"}, {"memory", "delete", "--session", "a.b"}, del} {
		if _, _, err := executeWith(t, f.connect, "", args...); !isUsage(err) {
			t.Errorf("%v: %v", args, err)
		}
	}
	before := f.stored(t)
	if strings.Count(before, "planted-ann") < 4 {
		t.Fatalf("the streams do not hold what was planted: this test looks in the wrong place")
	}
	out, _ = f.fails(t, "1 run has not ended and will stay: cancel them, then make the command again: a2", append(del, "--yes", "--by", "eve")...)
	if want := "subject ann of tenant acme: 1 run, 2 items of long-term memory, 0 sessions erased\n" + left; out != want {
		t.Errorf("erased: %q", out)
	}
	after := f.stored(t)
	if strings.Contains(after, "planted-ann") {
		t.Errorf("it is still stored: %s", lineWith(after, "planted-ann"))
	}
	for _, word := range []string{"Task of planted-bob", "Result of planted-bob", "Said of planted-bob", "planted-open", `"action":"data.erase"`, `"runs":["a1"]`} {
		if !strings.Contains(after, word) {
			t.Errorf("%s is gone", word)
		}
	}
	if _, err := c.Status(t.Context(), messages.Ref{Tenant: "acme", Run: "a1"}); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("the run: %v", err)
	}
	list, err := c.Memory().List(t.Context(), memory.ListRequest{Tenant: "acme", Name: "facts"})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, it := range list.Items {
		ids = append(ids, it.ID)
	}
	if diff := cmp.Diff([]string{"by-none", "about-bob"}, ids); diff != "" {
		t.Error(diff)
	}

	f.workAbout(t, "b2", "bob", "planted-bob", false)
	if out, _ := f.run(t, "memory", "delete", "--tenant", "acme", "--session", "talk-bob", "--yes", "-o", "json"); !strings.Contains(out, `"runs":2,"sessions":1,"items":0,`) {
		t.Errorf("a session: %s", out)
	}
	if after = f.stored(t); strings.Contains(after, "Task of planted-bob") {
		t.Errorf("it is still stored: %s", lineWith(after, "planted-bob"))
	}
}

// More than one request erases is erased all the same, and the command says how far it is.
func TestDataOfManyRuns(t *testing.T) {
	f := newFleet(t)
	const runs = 100
	for i := range runs {
		f.workAbout(t, fmt.Sprintf("r%03d", i), "max", "planted-max", false)
	}
	f.workAbout(t, "other", "ann", "planted-ann", false)
	out, errs := f.run(t, "memory", "delete", "--tenant", "acme", "--subject", "max", "--yes")
	if !strings.HasPrefix(out, "subject max of tenant acme: 100 runs, 0 items of long-term memory, 1 session erased\n") || !strings.Contains(errs, " of 100 runs erased\n") {
		t.Errorf("erased: %q, told %q", out, errs)
	}
	if after := f.stored(t); strings.Contains(after, "planted-max") || !strings.Contains(after, "planted-ann") {
		t.Errorf("it is still stored, or another: %s", lineWith(after, "planted-max"))
	}
}

// Of a whole tenant everything goes, once all its runs have ended, and nothing of another tenant.
func TestDataOfATenant(t *testing.T) {
	f := newFleet(t)
	f.workAbout(t, "a1", "ann", "planted-acme", false)
	f.work(t, messages.Ref{Tenant: "state", Run: "other"}, messages.AgentResult{Status: messages.StatusCompleted, Result: "planted-other"})
	for tenant, word := range map[string]string{"acme": "planted-acme", "state": "planted-other"} {
		f.run(t, "memory", "put", "facts", "i", word, "--tenant", tenant)
		f.run(t, "feedback", map[string]string{"acme": "a1", "state": "other"}[tenant], "up", "--note", word, "--tenant", tenant)
		spec := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(spec, []byte("apiVersion: longshore.run/v1\nkind: Schedule\nmetadata: {name: nightly}\nspec: {every: 24h, task: {input: "+word+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.run(t, "schedules", "apply", "-f", spec, "--tenant", tenant)
	}
	f.run(t, "submit", "planted-acme", "--id", "queued", "--tenant", "acme")
	f.fails(t, "1 run has not ended and will stay: cancel them, then make the command again: queued", "memory", "delete", "--tenant", "acme", "--yes")
	if !strings.Contains(f.stored(t), "planted-acme") {
		t.Error("the queued task is gone")
	}
	f.run(t, "cancel", "queued", "--tenant", "acme")
	before := strings.Count(f.stored(t), "planted-other")
	out, _ := f.run(t, "memory", "delete", "--tenant", "acme", "--yes")
	if !strings.HasPrefix(out, "tenant acme: 1 run, 0 items of long-term memory, 0 sessions erased\n") {
		t.Errorf("erased: %q", out)
	}
	after := f.stored(t)
	if strings.Contains(after, "planted-acme") {
		t.Errorf("it is still stored: %s", lineWith(after, "planted-acme"))
	}
	if n := strings.Count(after, "planted-other"); n != before || n < 4 {
		t.Errorf("of the other tenant %d of %d are left", n, before)
	}
	if out, _ := f.run(t, "memory", "delete", "--tenant", "state", "--yes"); !strings.Contains(out, "1 run, 1 item of") {
		t.Errorf("erased: %q", out)
	}
	if after = f.stored(t); strings.Contains(after, "planted") {
		t.Errorf("it is still stored: %s", lineWith(after, "planted"))
	}
}

// lineWith is the first line with a word.
func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}

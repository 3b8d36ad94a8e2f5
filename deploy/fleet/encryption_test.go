//go:build unix

package fleet_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/plaintexttest"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// encrypted is an encryption with a keyset of its own, in a file.
func encrypted(t *testing.T) settings.Encryption {
	t.Helper()
	m, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "fleet.keyset")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return settings.Encryption{Keyset: name, Encryption: settings.EncryptionOn}
}

// A process that was not told how to encrypt does not start, and says what to do.
func TestProcessesNeedAKeyset(t *testing.T) {
	t.Parallel()
	file := encrypted(t).Keyset
	open := filepath.Join(t.TempDir(), "open.keyset")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"worker", "dispatcher"} {
		for want, env := range map[string][]string{
			"LONGSHORE_KEYSET is missing":     {"LONGSHORE_ENCRYPTION=on"},
			"LONGSHORE_ENCRYPTION=off":        {"LONGSHORE_ENCRYPTION=required"},
			"LONGSHORE_ENCRYPTION: must be":   {"LONGSHORE_ENCRYPTION=no"},
			"unset one of them":               {"LONGSHORE_ENCRYPTION=off", "LONGSHORE_KEYSET=" + file},
			"LONGSHORE_KEYSET: open /nowhere": {"LONGSHORE_ENCRYPTION=on", "LONGSHORE_KEYSET=/nowhere"},
			"LONGSHORE_KEYSET: not a keyset":  {"LONGSHORE_ENCRYPTION=on", `LONGSHORE_KEYSET={"secret":"c2VjcmV0"}`},
			"chmod 600 " + open:               {"LONGSHORE_ENCRYPTION=on", "LONGSHORE_KEYSET=" + open},
		} {
			got := call(t, append([]string{"NATS_URL=nats://127.0.0.1:1", "REDIS_URL=none", "LONGSHORE_SCRIPT=x.yaml"}, env...), role)
			if got.code != 2 || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "c2VjcmV0") {
				t.Errorf("%s with %v: %+v, want %q", role, env[0], got, want)
			}
		}
	}
}

// What a run was told and did cannot be read in the data folder of `longshore dev`, which opens again with its keyset and with no other.
func TestDataFolderIsEncrypted(t *testing.T) {
	t.Parallel()
	planted := plaintexttest.Plant("task", "reply", "file", "result", "memory")
	model := newModel(t, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Text: "I say " + planted["reply"], Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": planted["file"]}}
		}
		return reply{Text: "Done: " + planted["result"]}
	})
	cfg := func(dir string, enc settings.Encryption) fleet.DevConfig {
		return fleet.DevConfig{
			Dir: dir, Folders: t.TempDir(), Log: testLog(t, "dev"), Dev: settings.Dev{
				Encryption: enc, Serving: settings.Serving{Retention: time.Hour, RunIndex: settings.RunIndex{Index: settings.IndexNone}}, LongTerm: settings.LongTerm{Memory: "auto"},
				Models: settings.Models{OpenAIKey: apiKey, OpenAIURL: model.URL + "/v1", OpenAIModel: "fake"},
				Runs:   settings.Runs{Slots: 4, MaxAttempts: 5, ModelTimeout: patience},
			},
		}
	}
	work := func(c fleet.DevConfig, ids ...string) { // one task, and reads the results of all
		t.Helper()
		dev, err := fleet.StartDev(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := dev.Stop(); err != nil {
				t.Error(err)
			}
		}()
		client, err := dev.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Memory().Put(t.Context(), memory.PutRequest{Name: "notes", Items: []memory.Item{{ID: "n", Text: planted["memory"]}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Submit(t.Context(), messages.Task{ID: ids[len(ids)-1], Input: messages.TextInput("Work on " + planted["task"])}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Wait(t.Context(), dispatcher.Run(ids[len(ids)-1])); err != nil {
			t.Fatal(err)
		}
		if c.Index != settings.IndexNone {
			eventually(t, "the run index has the run", func() bool {
				list, err := client.Runs().List(t.Context(), dispatcher.RunFilter{Statuses: []messages.Status{messages.StatusCompleted}})
				return err == nil && len(list.Runs) == len(ids)
			})
		}
		for _, id := range ids {
			r, err := client.Result(t.Context(), dispatcher.Run(id))
			if err != nil || fmt.Sprint(r.Result) != "Done: "+planted["result"] {
				t.Errorf("%s: %+v, %v", id, r, err)
			}
			for _, err := range client.Runs().Log(t.Context(), dispatcher.Run(id)) {
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
	plain := t.TempDir()
	work(cfg(plain, settings.Encryption{Encryption: settings.EncryptionOff}), "one")
	if missing := planted.Missing(t, plain); len(missing) > 0 {
		t.Errorf("without encryption no file holds %v: the test looks in the wrong place", missing)
	}
	sealed := t.TempDir()
	work(cfg(sealed, settings.Encryption{}), "one")
	work(cfg(sealed, settings.Encryption{}), "one", "two")
	work(cfg(plain, settings.Encryption{}), "one", "three") // it is converted
	// With the run index, which is in the clear, the folder shows what the index is said to show, in its file alone.
	indexed := t.TempDir()
	shows := cfg(indexed, settings.Encryption{})
	shows.Index = settings.IndexAuto
	work(shows, "one")
	shown := map[string]bool{}
	for _, found := range planted.In(t, indexed) {
		if shown[found.Place] = true; !strings.HasPrefix(filepath.Base(found.File), "index.db") || found.Place != "task" && found.Place != "result" {
			t.Errorf("with the run index %s", found)
		}
	}
	if !shown["task"] || !shown["result"] {
		t.Errorf("the run index shows %v: the test looks in the wrong place", shown)
	}
	for _, dir := range []string{sealed, plain} {
		for _, found := range planted.In(t, dir) {
			if dir == sealed || found.Place != "memory" { // what was remembered before stays as it was stored
				t.Error(found)
			}
		}
		if info, err := os.Stat(fleet.KeysetBeside(dir)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the keyset: %v, %v", info, err)
		}
	}
	start := func(enc settings.Encryption) error {
		c := cfg(sealed, enc)
		c.Log = slog.New(slog.DiscardHandler)
		dev, err := fleet.StartDev(t.Context(), c)
		if err == nil {
			t.Error("it starts")
			return dev.Stop()
		}
		return err
	}
	if err := start(encrypted(t)); err == nil || !strings.Contains(err.Error(), "does not open with this keyset") {
		t.Errorf("another keyset: %v", err)
	}
	if err := start(settings.Encryption{Encryption: settings.EncryptionOff}); err == nil || !strings.Contains(err.Error(), "is encrypted: unset LONGSHORE_ENCRYPTION") {
		t.Errorf("off: %v", err)
	}
	if err := os.Remove(fleet.KeysetBeside(sealed)); err != nil {
		t.Fatal(err)
	}
	if err := start(settings.Encryption{}); err == nil || !strings.Contains(err.Error(), "is missing: put it back") {
		t.Errorf("without its keyset: %v", err)
	}
}

// The data folder of `longshore dev` opens after each step of a rotation of its keys, and a key that it needs is not retired.
func TestDataFolderAfterARotation(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	file := fleet.KeysetBeside(dir)
	play, err := scripted.Parse([]byte("scenes: [{turns: [{text: Done}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	start := func() (stop func()) {
		t.Helper()
		dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
			Dir: dir, Folders: t.TempDir(), Log: slog.New(slog.DiscardHandler), Version: "0.0.0",
			Dev:   settings.Dev{Serving: settings.Serving{RunIndex: settings.RunIndex{Index: settings.IndexNone}}, Runs: settings.Runs{Slots: 1, MaxAttempts: 5}},
			Parts: fleet.Parts{Model: scripted.New(play)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := dev.Stop(); err != nil {
				t.Error(err)
			}
		}
	}
	keys := func(want string, args ...string) {
		t.Helper()
		if got := call(t, []string{"LONGSHORE_KEYSET=" + file}, append([]string{"keys", "rotate"}, args...)...); !strings.Contains(got.stdout+got.stderr, want) {
			t.Fatalf("%v: %+v, want %q", args, got, want)
		}
	}
	start()()
	keys("", "add", file)
	keys("", "promote", file)
	keys("restart `longshore dev` first", "retire", file)
	start()()
	m, err := (&settings.Encryption{Keyset: file}).Master()
	if err != nil {
		t.Fatal(err)
	}
	if err := fleet.CheckRetire(file, m); err != nil {
		t.Error(err)
	}
	for _, key := range m.Keys() {
		if !key.Writes {
			if m, err = m.Retire(key.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	start()()
}

// Keys are replaced step by step while tasks run: each step is rolled out to one worker after the other, so that workers with the old and
// the new keyset work the same runs. No run fails, and none loses an attempt.
func TestKeysRotateUnderLoad(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t, embedded.Config{})
	w := &town{
		t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL, keyset: encrypted(t).Keyset,
		model: newModel(t, func(c *modelCall) reply { return turn(c, 3) }),
	}
	env := []string{"NATS_URL=" + w.nats, "LONGSHORE_ENCRYPTION=on", "LONGSHORE_KEYSET=" + w.keyset}
	dispatch := func(name string) *process {
		p := spawn(t, name, append(env, "LONGSHORE_ACK_WAIT="+shortAckWait.String(), "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_INDEX=none"), binary, "dispatcher")
		p.line(`"message":"ready"`)
		return p
	}
	dispatcher := dispatch("d0")
	w.connect()
	keys := func(args ...string) {
		t.Helper()
		if got := call(t, env, append([]string{"keys"}, args...)...); got.code != 0 {
			t.Fatalf("keys %v: %+v", args, got)
		}
	}
	var runs []messages.Ref
	load := func(tenant string) {
		for range 6 {
			run := w.submit("work", func(t *messages.Task) { t.Tenant = tenant })
			runs = append(runs, messages.Ref{Tenant: tenant, Run: run.Run})
		}
	}
	load("acme")
	workers := []*process{w.worker("a0"), w.worker("b0")}
	for i, step := range [][]string{{"rotate", "add", w.keyset}, {"rotate", "promote", w.keyset}, {"rotate", "tenants"}, {"rotate", "retire", w.keyset}} {
		load("acme")
		keys(step...)
		load(fmt.Sprint("t", i)) // whose key is made by whichever worker is first
		for j, name := range []string{"a", "b"} {
			next := w.worker(fmt.Sprint(name, i+1))
			workers[j].signal(syscall.SIGTERM)
			workers[j] = next
			load("acme")
		}
		next := dispatch(fmt.Sprint("d", i+1))
		dispatcher.signal(syscall.SIGTERM)
		dispatcher.wait()
		dispatcher = next
	}
	for _, run := range runs {
		g := w.watch(run)
		if r := g.end(); r.Status != messages.StatusCompleted {
			t.Errorf("%s: %+v", run, r)
		}
		for _, e := range w.log(run) {
			for _, r := range e.Records {
				if r, ok := r.(*record.Released); ok && r.Spent {
					t.Errorf("%s lost an attempt: %s", run, r.Reason)
				}
			}
		}
	}
	got := call(t, env, "keys", "status")
	if got.code != 0 || strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stdout, "writes") {
		t.Errorf("keys status: %+v", got)
	}
}

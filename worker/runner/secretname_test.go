package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// overheard is a store that keeps all that it is given.
type overheard struct {
	*snapshot.Memory

	mu   sync.Mutex
	seen bytes.Buffer
}

func (o *overheard) Put(ctx context.Context, tenant, hash string, size int64, r io.Reader) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Memory.Put(ctx, tenant, hash, size, io.TeeReader(r, &o.seen))
}

const secretName = "hunter2-hunter2"

// guarded has folders and a configuration that know a secret.
func guarded(t *testing.T, store snapshot.Store, f *forge) runner.Config {
	t.Helper()
	redact := policy.NewRedactor(secretName)
	folders, err := snapshot.NewFolders(snapshot.Config{Dir: t.TempDir(), Store: store, Redact: redact.String, Fetch: f.fetch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folders.Close(); err != nil {
			t.Error(err)
		}
	})
	return runner.Config{Folders: folders, Secrets: redact}
}

func wantNoSecret(t *testing.T, log runlog.Log, store *overheard) {
	t.Helper()
	data, err := json.Marshal(slices.Concat(records(t, log)...))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), secretName) {
		t.Errorf("the log holds the secret: %s", data)
	}
	if strings.Contains(store.seen.String(), secretName) {
		t.Errorf("a list of files holds the secret: %s", store.seen.String())
	}
}

// A file whose name holds a secret is not kept: lists of files are shown to all who may read the run. The model is told, without the name.
func TestSecretInTheNameOfAFile(t *testing.T) {
	for _, name := range []string{secretName, "keys/" + secretName + ".txt", secretName + "/deep/x"} {
		log, store := &runlog.Memory{}, &overheard{Memory: &snapshot.Memory{}}
		if out, err := (&clerk{name: "a", also: name}).runner(t, log, guarded(t, store, &forge{})).Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
			t.Fatalf("%v, %v", out, err)
		}
		told := false
		for _, r := range slices.Concat(records(t, log)...) {
			if f, ok := r.(*record.ToolReturned); ok {
				said := messages.Message{Content: f.Result.Content}
				told = told || f.Result.IsError && strings.Contains(said.Text(), "The files of the run cannot be kept: "+strings.ReplaceAll(name, secretName, "[redacted]")+": has a secret in its name")
			}
		}
		if !told {
			t.Errorf("%s: the model was not told", name)
		}
		wantNoSecret(t, log, store)
	}
}

// A task that names a file by a secret is refused, and neither the log nor a dead letter has the name; so is a list of files, and a
// commit that has such a file.
func TestSecretInTheNameOfAFileOfATask(t *testing.T) {
	commit := strings.Repeat("1", 40)
	for want, files := range map[string][]messages.TaskFile{
		"files[1].path":    {{Path: "a", Text: new("")}, {Path: "b/" + secretName, Text: new("")}},
		"files[0].git.url": {{Git: &messages.Repository{URL: "https://git.example.com/" + secretName + "/p", Commit: commit}}},
		"files[0].git":     {{Git: &messages.Repository{URL: "https://git.example.com/p", Commit: commit, Into: secretName}}},
	} {
		log, store := &runlog.Memory{}, &overheard{Memory: &snapshot.Memory{}}
		ticket := bringing(t, 1, func(task *messages.Task) { task.Files = files })
		if out, err := (&clerk{name: "a"}).runner(t, log, guarded(t, store, &forge{})).Run(t.Context(), ticket); out != runner.Done || err != nil {
			t.Fatalf("%v, %v", out, err)
		}
		wantEnd(t, log, messages.CodePolicy, want+": holds a secret that the worker knows: name the file otherwise")
		wantNoSecret(t, log, store)
	}
	log, store := &runlog.Memory{}, &overheard{Memory: &snapshot.Memory{}}
	server := &forge{files: map[string]string{"a": "", "keys/" + secretName: ""}}
	if out, err := (&clerk{name: "a"}).runner(t, log, guarded(t, store, server)).Run(t.Context(), withRepository(t, 1)); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	wantEnd(t, log, messages.CodeInvalidInput, "files[0].git.commit: src/keys/[redacted]: has a secret in its name: name it otherwise")
	wantNoSecret(t, log, store)

	log, store = &runlog.Memory{}, &overheard{Memory: &snapshot.Memory{}}
	f := uploaded(t, store.Memory, secretName, "")
	data, hash, err := (&manifest.Manifest{Files: []manifest.File{{Path: f.Path, Hash: f.Hash}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	uploaded(t, store.Memory, "", string(data))
	ticket := bringing(t, 1, func(task *messages.Task) { task.Manifest = hash })
	if out, err := (&clerk{name: "a"}).runner(t, log, guarded(t, store, &forge{})).Run(t.Context(), ticket); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	wantEnd(t, log, messages.CodeInvalidInput, "manifest: [redacted]: has a secret in its name: name it otherwise")
	wantNoSecret(t, log, store)
}

package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// bringing is the first ticket of a run whose task brings files.
func bringing(t *testing.T, delivered int, change func(*messages.Task)) runner.Ticket {
	t.Helper()
	task := messages.Task{Input: messages.TextInput("go")}
	change(&task)
	ticket := rticket(delivered)
	ticket.Body = task.Encode()
	return ticket
}

// uploaded puts contents into a store, and returns the file that names one.
func uploaded(t *testing.T, store snapshot.Store, path, content string) messages.TaskFile {
	t.Helper()
	f := messages.TaskFile{Path: path, Hash: manifest.HashOf([]byte(content)), Size: int64(len(content))}
	if err := store.Put(t.Context(), rrun.Tenant, f.Hash, f.Size, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return f
}

// records are those of the log.
func records(t *testing.T, log runlog.Log) (all [][]record.Record) {
	t.Helper()
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Records)
	}
	return all
}

// A run begins with the files of its task: its first entry says so, the first tool finds them, and so does the owner that takes the run
// over on another machine before that. The log names the contents, and does not hold them.
func TestRunBeginsWithTheFilesOfItsTask(t *testing.T) {
	log, store := &runlog.Memory{}, &snapshot.Memory{}
	named := uploaded(t, store, "deep/down/named", "named")
	ticket := func(delivered int) runner.Ticket {
		return bringing(t, delivered, func(task *messages.Task) {
			task.Files = []messages.TaskFile{
				{Path: "book", Text: new("brought\n")}, {Path: "bin/data", Data: []byte{0xff, 0}, Exec: true}, named,
			}
		})
	}
	stale := &clerk{name: "stale", held: 1, writing: make(chan struct{}), resume: make(chan struct{})}
	first := stale.runner(t, log, runner.Config{Folders: machine(t, store)})
	done := make(chan runner.Outcome)
	go func() {
		out, _ := first.Run(t.Context(), ticket(1))
		done <- out
	}()
	<-stale.writing
	if out, err := (&clerk{name: "next"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), ticket(2)); out != runner.Done || err != nil {
		t.Fatalf("the next owner: %v, %v", out, err)
	}
	close(stale.resume)
	if out := <-done; out != runner.Lost {
		t.Errorf("the superseded owner: %v", out)
	}
	if got := book(t, log, store); got != "brought\nnext 1\nnext 2\n" {
		t.Errorf("the file is %q", got)
	}
	begin := records(t, log)[0]
	saved, ok := begin[1].(*record.FilesSaved)
	if !ok || saved.Step != 0 || saved.Files != 3 || saved.Added != 3 || saved.Bytes != 8+2+5 {
		t.Fatalf("the first entry says %+v", begin[1])
	}
	task := begin[0].(*record.Started).Task
	for _, f := range task.Files {
		if f.Text != nil || f.Data != nil || f.Hash == "" {
			t.Errorf("the log holds the content of %s", f.Path)
		}
	}
	sent, err := messages.DecodeTaskFor(rrun, messages.PriorityNormal, ticket(1).Body)
	if err != nil || sent.Fingerprint() != task.Fingerprint() {
		t.Errorf("the task in the log is another than the one that was sent: %v", err)
	}
	var data bytes.Buffer
	if err := store.Get(t.Context(), rrun.Tenant, saved.Manifest, manifest.MaxEncoded, &data); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if tool, _ := m.Find("bin/data"); !tool.Exec {
		t.Error("a file may no longer be executed")
	}
}

// A task may name an uploaded list of files instead.
func TestRunBeginsWithAManifest(t *testing.T) {
	log, store := &runlog.Memory{}, &snapshot.Memory{}
	f := uploaded(t, store, "book", "uploaded\n")
	m := manifest.Manifest{Files: []manifest.File{{Path: f.Path, Size: f.Size, Hash: f.Hash}}, Folders: []string{"empty"}}
	data, hash, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	uploaded(t, store, "", string(data))
	ticket := bringing(t, 1, func(task *messages.Task) { task.Manifest = hash })
	if out, err := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), ticket); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	if got := book(t, log, store); got != "uploaded\na 1\na 2\n" {
		t.Errorf("the file is %q", got)
	}
}

// What a task names and no one has stored, or what does not fit, ends the run with a reason that names the file.
func TestTaskNamesWhatIsNotStored(t *testing.T) {
	store := &snapshot.Memory{}
	there := uploaded(t, store, "there", "x")
	encoded := func(files ...manifest.File) string {
		data, hash, err := (&manifest.Manifest{Files: files}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		uploaded(t, store, "", string(data))
		return hash
	}
	missing := manifest.HashOf([]byte("missing"))
	for want, change := range map[string]func(*messages.Task){
		"files[1].hash: b/gone: no content with this hash is stored: upload it, and submit the task within an hour": func(task *messages.Task) {
			task.Files = []messages.TaskFile{there, {Path: "b/gone", Hash: missing, Size: 7}, {Path: "a/gone", Hash: missing, Size: 7}}
		},
		"files[0].size: there: the content with this hash has 1 bytes, not 2": func(task *messages.Task) {
			larger := there
			larger.Size = 2
			task.Files = []messages.TaskFile{larger}
		},
		"files: b: with it there are more than the 20 bytes that the worker takes: see LONGSHORE_WORKSPACE_BYTES": func(task *messages.Task) {
			task.Files = []messages.TaskFile{{Path: "a", Text: new("1234567890")}, {Path: "b", Text: new("12345678901")}}
		},
		"files: has 4 files and folders, and the worker takes 3: see LONGSHORE_WORKSPACE_FILES": func(task *messages.Task) {
			task.Files = []messages.TaskFile{{Path: "a", Text: new("")}, {Path: "b", Text: new("")}, {Path: "c", Text: new("")}, {Path: "d", Text: new("")}}
		},
		"manifest: no list of files with this hash is stored: upload it, and submit the task within an hour": func(task *messages.Task) {
			task.Manifest = missing
		},
		"manifest: is not a list of files: decode manifest: body: not valid JSON at byte 0": func(task *messages.Task) {
			task.Manifest = there.Hash
		},
		`manifest: "a/.longshore-tmp-b": names that begin with .longshore-tmp- are reserved`: func(task *messages.Task) {
			task.Manifest = encoded(manifest.File{Path: "a/.longshore-tmp-b", Hash: there.Hash, Size: 1})
		},
		"manifest: c: no content with this hash is stored: upload it, and submit the task within an hour": func(task *messages.Task) {
			task.Manifest = encoded(manifest.File{Path: "a", Hash: there.Hash, Size: 1}, manifest.File{Path: "c", Hash: missing, Size: 7})
		},
	} {
		log := &runlog.Memory{}
		folders, err := snapshot.NewFolders(snapshot.Config{Dir: t.TempDir(), Store: store, Limits: snapshot.Limits{Files: 3, Total: 20}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: folders}).Run(t.Context(), bringing(t, 1, change))
		if err := errors.Join(err, folders.Close()); out != runner.Done || err != nil {
			t.Errorf("%v, %v", out, err)
		}
		all := slices.Concat(records(t, log)...)
		end, ok := all[len(all)-1].(*record.Finished)
		if !ok || end.Result.Error == nil || end.Result.Error.Code != messages.CodeInvalidInput || end.Result.Error.Message != want || !end.Dead {
			t.Errorf("the run ended with %+v, want %s", end.Result.Error, want)
		}
	}
}

// A store that does not answer is no fault of the task: the ticket is returned, and the log does not exist yet.
func TestFilesOfATaskCannotBeStored(t *testing.T) {
	away := errors.New("the store does not answer")
	log, store := &runlog.Memory{}, &broken{put: away}
	ticket := func(delivered int) runner.Ticket {
		return bringing(t, delivered, func(task *messages.Task) { task.Files = []messages.TaskFile{{Path: "book", Text: new("brought\n")}} })
	}
	out, err := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), ticket(1))
	if out != runner.Return || !errors.Is(err, away) {
		t.Errorf("%v, %v", out, err)
	}
	if n := len(records(t, log)); n != 0 {
		t.Errorf("the log has %d entries", n)
	}
	store.put = nil
	if out, err := (&clerk{name: "b"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), ticket(2)); out != runner.Done || err != nil {
		t.Errorf("%v, %v", out, err)
	}
	if got := book(t, log, store); got != "brought\nb 1\nb 2\n" {
		t.Errorf("the file is %q", got)
	}
}

// Runs that work in a given folder as it is are given no files.
func TestFilesOfATaskNeedAFolderOfTheRun(t *testing.T) {
	log := &runlog.Memory{}
	ticket := bringing(t, 1, func(task *messages.Task) { task.Files = []messages.TaskFile{{Path: "a", Text: new("x")}} })
	out, err := (&clerk{name: "a"}).runner(t, log, runner.Config{}).Run(t.Context(), ticket)
	if out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	all := slices.Concat(records(t, log)...)
	end, ok := all[len(all)-1].(*record.Finished)
	if !ok || end.Result.Error == nil || !strings.HasPrefix(end.Result.Error.Message, "files: runs work in a given folder here") {
		t.Errorf("the run ended with %+v", all[len(all)-1])
	}
}

// The text of a task's files is its input: secrets of the worker and what rules take out are in no content and no log, also as data.
func TestPolicyOfTheFilesOfATask(t *testing.T) {
	const secret = "hunter2-hunter2"
	for _, action := range []string{messages.PolicyRedact, messages.PolicyBlock} {
		log, store := &runlog.Memory{}, &snapshot.Memory{}
		cfg := runner.Config{Folders: machine(t, store), Secrets: policy.NewRedactor(secret), Policies: func(string) []policy.Layer {
			return []policy.Layer{{Source: "fleet", Policy: &messages.Policy{
				Content: []messages.ContentRule{{Name: "m", At: []messages.PolicyPoint{messages.PolicyInput}, Category: "email", Action: action}},
			}}}
		}}
		ticket := bringing(t, 1, func(task *messages.Task) {
			task.Files = []messages.TaskFile{{Path: "book", Data: []byte("ann@example.com has " + secret + "\n")}, {Path: "raw", Data: []byte{0xff}}}
		})
		if out, err := (&clerk{name: "a"}).runner(t, log, cfg).Run(t.Context(), ticket); out != runner.Done || err != nil {
			t.Fatalf("%v, %v", out, err)
		}
		all := slices.Concat(records(t, log)...)
		if action == messages.PolicyBlock {
			if end, ok := all[len(all)-1].(*record.Finished); !ok || end.Result.Error == nil || end.Result.Error.Code != messages.CodePolicy {
				t.Errorf("blocked files were worked: %+v", all[len(all)-1])
			}
		} else if got := book(t, log, store); got != "[redacted] has [redacted]\na 1\na 2\n" {
			t.Errorf("the file is %q", got)
		}
		data, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(data); strings.Contains(s, secret) || strings.Contains(s, "ann@example") {
			t.Errorf("%s: the log holds it: %s", action, s)
		}
	}
}

// An owner that could not begin the run, for another one has, has begun nothing.
func TestFilesOfATaskAreFenced(t *testing.T) {
	log, store := &runlog.Memory{}, &snapshot.Memory{}
	late := &hesitant{Store: store, at: make(chan struct{}), resume: make(chan struct{})}
	ticket := func(delivered int) runner.Ticket {
		return bringing(t, delivered, func(task *messages.Task) { task.Files = []messages.TaskFile{{Path: "book", Text: new("brought\n")}} })
	}
	done := make(chan runner.Outcome)
	go func() {
		out, _ := (&clerk{name: "late"}).runner(t, log, runner.Config{Folders: machine(t, late)}).Run(t.Context(), ticket(1))
		done <- out
	}()
	<-late.at
	if out, err := (&clerk{name: "next"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), ticket(2)); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	close(late.resume)
	<-done
	if got := book(t, log, store); got != "brought\nnext 1\nnext 2\n" {
		t.Errorf("the file is %q", got)
	}
}

// hesitant is a store that waits before it refers to files.
type hesitant struct {
	snapshot.Store
	at, resume chan struct{}
}

func (h *hesitant) Refer(ctx context.Context, run messages.Ref, hash string) error {
	close(h.at)
	<-h.resume
	return h.Store.Refer(ctx, run, hash)
}

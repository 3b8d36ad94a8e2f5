package runner_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/firstfiles"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/worker/runner"
)

// forge hands out the same files for any commit, or an error.
type forge struct {
	files map[string]string
	err   error
	calls int
}

func (f *forge) fetch(_ context.Context, _ messages.Ref, _ *messages.Repository, _ firstfiles.Limits, keep func(*firstfiles.Tree) error) error {
	f.calls++
	if f.err != nil {
		return f.err
	}
	tree := &firstfiles.Tree{LeftOut: 2}
	for path, content := range f.files {
		tree.Files = append(tree.Files, firstfiles.TreeFile{Path: path, Content: io.NewSectionReader(strings.NewReader(content), 0, int64(len(content)))})
	}
	return keep(tree)
}

// forging has folders that fetch from a forge.
func forging(t *testing.T, store snapshot.Store, f *forge) *snapshot.Folders {
	t.Helper()
	folders, err := snapshot.NewFolders(snapshot.Config{Dir: t.TempDir(), Store: store, Fetch: f.fetch, Limits: snapshot.Limits{Files: 10, Total: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folders.Close(); err != nil {
			t.Error(err)
		}
	})
	return folders
}

func withRepository(t *testing.T, delivered int, beside ...messages.TaskFile) runner.Ticket {
	t.Helper()
	return bringing(t, delivered, func(task *messages.Task) {
		task.Files = append(beside, messages.TaskFile{Git: &messages.Repository{
			URL: "https://git.example.com/p.git", Commit: strings.Repeat("1", 40), Into: "src",
		}})
	})
}

// A run begins with the files of a commit and those of its task. An owner that takes it over has them, and does not fetch again.
func TestRunBeginsWithARepository(t *testing.T) {
	log, store := &runlog.Memory{}, &snapshot.Memory{}
	server := &forge{files: map[string]string{"b": "2", "a": "1", "deep/c": ""}}
	stale := &clerk{name: "stale", held: 1, writing: make(chan struct{}), resume: make(chan struct{})}
	first := stale.runner(t, log, runner.Config{Folders: forging(t, store, server)})
	done := make(chan runner.Outcome)
	go func() {
		out, _ := first.Run(t.Context(), withRepository(t, 1, messages.TaskFile{Path: "book", Text: new("brought\n")}))
		done <- out
	}()
	<-stale.writing
	next := (&clerk{name: "next"}).runner(t, log, runner.Config{Folders: forging(t, store, server)})
	if out, err := next.Run(t.Context(), withRepository(t, 2, messages.TaskFile{Path: "book", Text: new("brought\n")})); out != runner.Done || err != nil {
		t.Fatalf("the next owner: %v, %v", out, err)
	}
	close(stale.resume)
	if out := <-done; out != runner.Lost {
		t.Errorf("the superseded owner: %v", out)
	}
	if got := book(t, log, store); got != "brought\nnext 1\nnext 2\n" || server.calls != 1 {
		t.Errorf("the file is %q after %d fetches", got, server.calls)
	}
	saved, ok := records(t, log)[0][1].(*record.FilesSaved)
	if !ok || saved.Step != 0 || saved.Files != 4 || saved.Bytes != 8+2 || saved.LeftOut != 2 {
		t.Errorf("the first entry says %+v", saved)
	}
}

// What is wrong with a repository, or with its files beside those of the task, ends the run.
func TestRepositoryThatARunCannotHave(t *testing.T) {
	many := map[string]string{}
	for i := range 11 {
		many[strings.Repeat("x", i+1)] = ""
	}
	for want, tc := range map[string]struct {
		forge  forge
		beside []messages.TaskFile
	}{
		"files[0].git.commit: is not there": {forge: forge{err: &messages.FieldError{Field: "commit", Reason: "is not there"}}},
		"files[0].git.commit: has 11 files and folders, and the worker takes 10: see LONGSHORE_WORKSPACE_FILES":                       {forge: forge{files: many}},
		"files[0].git.commit: src/a: with it there are more than the 1000 bytes that the worker takes: see LONGSHORE_WORKSPACE_BYTES": {forge: forge{files: map[string]string{"a": strings.Repeat("x", 1001)}}},
		"files[1].git: src/a: with it there are more than the 1000 bytes that the worker takes: see LONGSHORE_WORKSPACE_BYTES":        {forge: forge{files: map[string]string{"a": strings.Repeat("x", 600)}}, beside: []messages.TaskFile{{Path: "src/b", Text: new(strings.Repeat("x", 600))}}},
		"files[1].git.into: src/a: the run has this file by files[0] too":                                                             {forge: forge{files: map[string]string{"a": ""}}, beside: []messages.TaskFile{{Path: "src/a", Text: new("")}}},
		"files[1]: src/a: is below a file of files[0]":                                                                                {forge: forge{files: map[string]string{"a": ""}}, beside: []messages.TaskFile{{Path: "src", Text: new("")}}},
		"files[0]: src/a/b: is below a file of files[1]":                                                                              {forge: forge{files: map[string]string{"a": ""}}, beside: []messages.TaskFile{{Path: "src/a/b", Text: new("")}}},
		"files[0].git.into: \"src/" + strings.Repeat("d/", 31) + "f\": has more than 32 parts":                                        {forge: forge{files: map[string]string{strings.Repeat("d/", 31) + "f": ""}}},
	} {
		log := &runlog.Memory{}
		r := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: forging(t, &snapshot.Memory{}, &tc.forge)})
		if out, err := r.Run(t.Context(), withRepository(t, 1, tc.beside...)); out != runner.Done || err != nil {
			t.Errorf("%s: %v, %v", want, out, err)
			continue
		}
		wantEnd(t, log, messages.CodeInvalidInput, want)
	}
	log := &runlog.Memory{}
	r := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: machine(t, &snapshot.Memory{})})
	if out, err := r.Run(t.Context(), withRepository(t, 1)); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	wantEnd(t, log, messages.CodeInvalidInput, "files: repositories are not fetched here")
}

func wantEnd(t *testing.T, log runlog.Log, code messages.Code, message string) {
	t.Helper()
	all := records(t, log)
	end, ok := all[0][len(all[0])-1].(*record.Finished)
	if !ok || end.Result.Error == nil || end.Result.Error.Code != code || end.Result.Error.Message != message {
		t.Errorf("the run ended with %+v, want %s: %s", end, code, message)
	}
}

// A server that does not answer has the task handed back, and at the last attempt ends the run.
func TestRepositoryThatIsUnreachable(t *testing.T) {
	log, store := &runlog.Memory{}, &snapshot.Memory{}
	server := &forge{err: &firstfiles.FetchError{Field: "url", Reason: "the server answers 503"}}
	r := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: forging(t, store, server), MaxAttempts: 3})
	for delivered := 1; delivered < 3; delivered++ {
		out, err := r.Run(t.Context(), withRepository(t, delivered))
		if _, passing := errors.AsType[*firstfiles.FetchError](err); out != runner.Return || !passing || len(records(t, log)) != 0 {
			t.Fatalf("attempt %d: %v, %v", delivered, out, err)
		}
	}
	if out, err := r.Run(t.Context(), withRepository(t, 3)); out != runner.Done || err != nil {
		t.Fatalf("the last attempt: %v, %v", out, err)
	}
	wantEnd(t, log, messages.CodeRepositoryUnreachable, "files[0].git.url: the server answers 503; tried 3 times: submit the task again when the server answers")

	log, server = &runlog.Memory{}, &forge{files: map[string]string{"a": ""}}
	broken := &snapshot.Memory{}
	full := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: forging(t, refusing{broken}, server), MaxAttempts: 1})
	if out, err := full.Run(t.Context(), withRepository(t, 1)); out != runner.Return || !errors.Is(err, errRefused) {
		t.Errorf("a store that takes nothing is no fault of the repository: %v, %v", out, err)
	}
}

var errRefused = errors.New("refused")

// refusing takes nothing.
type refusing struct{ *snapshot.Memory }

func (refusing) Put(context.Context, string, string, int64, io.Reader) error { return errRefused }

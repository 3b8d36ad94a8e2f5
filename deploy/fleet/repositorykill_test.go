//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/worker/repository/repositorytest"
)

// A run begins with a commit. Its worker is killed before the first step has done anything, and another one on another machine has the
// files without a word to the git server; so does a fork.
func TestRepositoryIsFetchedOnce(t *testing.T) {
	t.Parallel()
	server := repositorytest.New(t)
	commit := server.Files(map[string]string{"README.md": "A ship came in.", "src/main.go": "package main\n", "docs/a/b.md": ""})
	var calls atomic.Int32
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "read_file", Args: map[string]string{"filePath": "project/README.md"}, Hold: calls.Add(1) == 1}
		}
		return reply{Text: "Done: " + c.Last}
	})
	here, there := t.TempDir(), t.TempDir()
	first := w.worker("first", "LONGSHORE_WORKSPACES="+here, "LONGSHORE_GIT_HOSTS="+server.Host)
	g := w.watch(w.submit("work", func(task *messages.Task) {
		task.Files = []messages.TaskFile{
			{Git: &messages.Repository{URL: server.URL, Commit: commit, Into: "project"}}, {Path: "notes.txt", Text: new("beside")},
		}
	}))
	w.model.next(t)
	if server.Fetches() != 1 {
		t.Errorf("the commit was fetched %d times", server.Fetches())
	}
	asked := server.Requests()
	second := w.worker("second", "LONGSHORE_WORKSPACES="+there, "LONGSHORE_GIT_HOSTS="+server.Host)
	r, _ := killOwner(t, first, g, "first", "second")
	completed(t, r, "Done: A ship came in.")
	for name, want := range map[string]string{"project/README.md": "A ship came in.", "project/src/main.go": "package main\n", "project/docs/a/b.md": "", "notes.txt": "beside"} {
		if got, err := os.ReadFile(filepath.Join(there, g.run.Tenant, g.run.Run, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", name, got, want, err)
		}
	}
	list, err := w.client.Files().List(t.Context(), g.run, dispatcher.FilesAt{Step: new(0)})
	if err != nil || list.Step != 0 || list.Count != 4 {
		t.Errorf("before the first step the run has %+v, %v", list, err)
	}
	forked, err := w.client.Runs().Fork(t.Context(), g.run, control.ForkRequest{At: 1})
	if err != nil {
		t.Fatal(err)
	}
	completed(t, w.watch(messages.Ref{Tenant: forked.Tenant, Run: forked.ID}).end(), "Done: A ship came in.")
	if server.Requests() != asked || server.Fetches() != 1 {
		t.Errorf("%d packs in %d requests, want 1 in %d", server.Fetches(), server.Requests(), asked)
	}
	second.kill()
}

// Without the operator's list no repository is fetched, and the result says which variable it is.
func TestRepositoriesAreOff(t *testing.T) {
	t.Parallel()
	server := repositorytest.New(t)
	commit := server.Files(map[string]string{"a": ""})
	w := open(t, shortAckWait, func(*modelCall) reply { return reply{Text: "Done"} })
	p := w.worker("only", "LONGSHORE_WORKSPACES="+t.TempDir())
	r := w.watch(w.submit("work", func(task *messages.Task) {
		task.Files = []messages.TaskFile{{Git: &messages.Repository{URL: server.URL, Commit: commit}}}
	})).end()
	const want = "files[0].git.url: repositories are off: the operator lists the hosts that may be called in LONGSHORE_GIT_HOSTS"
	if r.Error == nil || r.Error.Code != messages.CodeInvalidInput || r.Error.Message != want || server.Requests() != 0 {
		t.Errorf("the run ended with %+v after %d requests", r.Error, server.Requests())
	}
	p.kill()
}

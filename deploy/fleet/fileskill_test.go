//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// A worker is killed in the middle of a run, and another one on another machine, with a folder of its own, goes on with all the files.
func TestFilesFollowTheRun(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	w := open(t, shortAckWait, func(c *modelCall) reply {
		file := func(tool string, args map[string]string) reply { return reply{Tool: tool, Args: args} }
		switch c.Turn {
		case 0:
			return file("write_file", map[string]string{"filePath": "notes/a.txt", "content": "A ship came in."})
		case 1:
			return file("write_file", map[string]string{"filePath": "b.txt", "content": "two"})
		case 2:
			r := file("write_file", map[string]string{"filePath": "notes/a.txt", "content": "A ship left."})
			r.Hold = calls.Add(1) == 1
			return r
		case 3:
			return file("read_file", map[string]string{"filePath": "notes/a.txt"})
		default:
			return reply{Text: "Done: " + c.Last}
		}
	})
	here, there := t.TempDir(), t.TempDir()
	first := w.worker("first", "LONGSHORE_WORKSPACES="+here)
	g := w.watch(w.submit("work"))
	w.model.next(t)
	second := w.worker("second", "LONGSHORE_WORKSPACES="+there)
	r, _ := killOwner(t, first, g, "first", "second")
	completed(t, r, "Done: A ship left.")
	for name, want := range map[string]string{"notes/a.txt": "A ship left.", "b.txt": "two"} {
		got, err := os.ReadFile(filepath.Join(there, g.run.Tenant, g.run.Run, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	fork, err := w.client.Runs().Fork(t.Context(), g.run, control.ForkRequest{At: 3})
	if err != nil {
		t.Fatal(err)
	}
	completed(t, w.watch(messages.Ref{Tenant: fork.Tenant, Run: fork.ID}).end(), "Done: A ship left.")
	if got, err := os.ReadFile(filepath.Join(there, fork.Tenant, fork.ID, "b.txt")); err != nil || string(got) != "two" {
		t.Errorf("of the steps that the fork kept it has %q, %v", got, err)
	}
	if strays, err := filepath.Glob(filepath.Join(here, ".claims", "*", "*")); err != nil || len(strays) != 1 {
		t.Errorf("the killed worker left %v, %v", strays, err)
	}
	again := w.worker("again", "LONGSHORE_WORKSPACES="+here) // and finds what it left
	if strays, err := filepath.Glob(filepath.Join(here, ".claims", "*", "*")); err != nil || len(strays) != 0 {
		t.Errorf("a worker that starts leaves %v, %v", strays, err)
	}
	again.kill()
	second.kill()
	w.savedFiles(g, []record.FilesSaved{
		{Step: 1, Files: 1, Bytes: 15, Added: 1}, {Step: 2, Files: 2, Bytes: 18, Added: 1}, {Step: 3, Files: 2, Bytes: 15, Changed: 1},
	})
}

// savedFiles compares what the run's log says of its files, each in the entry of the call's result, and reads all of them.
func (w *town) savedFiles(g *watching, want []record.FilesSaved) {
	w.t.Helper()
	var got []record.FilesSaved
	store := files.New(w.bus)
	for _, e := range w.log(g.run) {
		for _, r := range e.Records {
			saved, ok := r.(*record.FilesSaved)
			if !ok {
				continue
			}
			if !e.Head.Has(record.KindToolReturned) {
				w.t.Errorf("entry %d says what the files are, and not what changed them", e.Seq)
			}
			m, err := store.Manifest(w.t.Context(), g.run.Tenant, saved.Manifest)
			if err != nil || len(m.Files) != saved.Files || m.Bytes() != saved.Bytes {
				w.t.Errorf("the manifest of entry %d: %+v, %v", e.Seq, m, err)
			}
			copied := *saved
			copied.Manifest = ""
			got = append(got, copied)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Error(diff)
	}
}

//go:build unix

package fleet_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
)

// A run is given files by each of the forms. Its worker is killed before the first step has done anything, and another one on another
// machine begins with all of them; so does a fork from the first step.
func TestFilesOfATaskFollowTheRun(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	w := open(t, shortAckWait, func(c *modelCall) reply {
		switch c.Turn {
		case 0:
			return reply{Tool: "read_file", Args: map[string]string{"filePath": "notes/text.txt"}, Hold: calls.Add(1) == 1}
		default:
			return reply{Text: "Done: " + c.Last}
		}
	})
	here, there := t.TempDir(), t.TempDir()
	large := bytes.Repeat([]byte("0123456789abcdef"), 40<<10) // in parts
	store := files.New(w.bus)
	if err := store.Put(t.Context(), messages.DefaultTenant, manifest.HashOf(large), int64(len(large)), bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	first := w.worker("first", "LONGSHORE_WORKSPACES="+here)
	g := w.watch(w.submit("work", func(task *messages.Task) {
		task.Files = []messages.TaskFile{
			{Path: "notes/text.txt", Text: new("A ship came in.")},
			{Path: "bin/run", Data: []byte{0x7f, 0xff, 0}, Exec: true},
			{Path: "large.bin", Hash: manifest.HashOf(large), Size: int64(len(large))},
		}
	}))
	w.model.next(t)
	second := w.worker("second", "LONGSHORE_WORKSPACES="+there)
	r, _ := killOwner(t, first, g, "first", "second")
	completed(t, r, "Done: A ship came in.")
	has := func(run messages.Ref) {
		t.Helper()
		dir := filepath.Join(there, run.Tenant, run.Run)
		for name, want := range map[string][]byte{"notes/text.txt": []byte("A ship came in."), "bin/run": {0x7f, 0xff, 0}, "large.bin": large} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s of %s has %d bytes, want %d: %v", name, run, len(got), len(want), err)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, "bin/run")); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("bin/run may not be executed: %v", err)
		}
		list, err := w.client.Files().List(t.Context(), run, dispatcher.FilesAt{Step: new(0)})
		if err != nil || list.Step != 0 || list.Count != 3 {
			t.Errorf("before the first step %s has %+v, %v", run, list, err)
		}
	}
	has(g.run)
	forked, err := w.client.Runs().Fork(t.Context(), g.run, control.ForkRequest{At: 1})
	if err != nil {
		t.Fatal(err)
	}
	fork := messages.Ref{Tenant: forked.Tenant, Run: forked.ID}
	completed(t, w.watch(fork).end(), "Done: A ship came in.")
	has(fork)
	second.kill()
}

// A task that was published without a dispatcher brings its files as well, and one that names what is not stored ends.
func TestFilesOfAPublishedTask(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "read_file", Args: map[string]string{"filePath": "a.txt"}}
		}
		return reply{Text: "Done: " + c.Last}
	})
	p := w.worker("only", "LONGSHORE_WORKSPACES="+t.TempDir())
	publish := func(id, files string) *messages.AgentResult {
		t.Helper()
		run := messages.Ref{Tenant: messages.DefaultTenant, Run: id}
		body := []byte(`{"input":"work","files":[` + files + `]}`)
		if err := w.nc.Publish(run.TaskSubject(messages.PriorityNormal), body); err != nil {
			t.Fatal(err)
		}
		return w.watch(run).end()
	}
	completed(t, publish("inline", `{"path":"a.txt","text":"as it is"}`), "Done: as it is")
	missing := manifest.HashOf([]byte("missing"))
	r := publish("missing", `{"path":"a.txt","hash":"`+missing+`","size":7}`)
	const want = "files[0].hash: a.txt: no content with this hash is stored: upload it, and submit the task within an hour"
	if r.Error == nil || r.Error.Code != messages.CodeInvalidInput || r.Error.Message != want {
		t.Errorf("the run ended with %+v", r.Error)
	}
	p.kill()
}

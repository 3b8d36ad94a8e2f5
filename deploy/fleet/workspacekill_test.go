//go:build unix

package fleet_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/record"
)

// Runs on two machines, each with a folder of its own, add a line each to a file of one named workspace. One worker is killed while its
// run has the workspace. Each line is there once, in the order in which the runs had their turns.
func TestNamedWorkspaceOverMachines(t *testing.T) {
	t.Parallel()
	const runs = 20
	var held atomic.Int32
	w := open(t, shortAckWait, func(c *modelCall) reply {
		switch c.Turn {
		case 0:
			return reply{Tool: "read_file", Args: map[string]string{"filePath": "book"}}
		case 1:
			before := c.Last
			if !strings.HasPrefix(before, "run ") { // there is no such file yet
				before = ""
			}
			return reply{Tool: "write_file", Args: map[string]string{"filePath": "book", "content": before + c.Task + "\n"}}
		default: // what it wrote is in its log, and the workspace is still its own
			return reply{Text: "done", Hold: c.Task == "run 07" && held.Add(1) == 1}
		}
	})
	workers := map[string]*process{}
	for _, name := range []string{"first", "second"} {
		workers[name] = w.worker(name, "LONGSHORE_WORKSPACES="+t.TempDir())
	}
	all := make([]*watching, runs)
	for i := range all {
		all[i] = w.watch(w.submit(fmt.Sprintf("run %02d", i), func(t *messages.Task) { t.Workspace = "books" }))
	}
	w.model.next(t)
	owner := w.owners(all[7].run)
	workers[owner[len(owner)-1]].kill()
	type turn struct {
		at         uint64
		line, from string
	}
	turns := make([]turn, runs)
	for i, g := range all {
		completed(t, g.end(), "done")
		for _, e := range w.log(g.run) {
			for _, r := range e.Records {
				if f, ok := r.(*record.FilesSaved); ok && f.Taken != nil {
					if turns[i].at != 0 {
						t.Errorf("%s took the workspace twice", g.run)
					}
					turns[i] = turn{f.Taken.Turn, fmt.Sprintf("run %02d\n", i), f.Taken.Run}
				}
			}
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	var want strings.Builder
	for i, turn := range turns {
		want.WriteString(turn.line)
		if i > 0 && turn.at == turns[i-1].at {
			t.Errorf("two runs had turn %d", turn.at)
		}
	}
	head, _, err := files.New(w.bus).Workspace(t.Context(), messages.DefaultTenant, "books")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.content(messages.DefaultTenant, head.Manifest, "book"); got != want.String() {
		t.Errorf("the file has\n%swant\n%s", got, want.String())
	}
	if head.Turn != turns[runs-1].at || head.Time.After(time.Now()) {
		t.Errorf("the head is %+v, the last turn %d", head, turns[runs-1].at)
	}
}

// content reads a file of a manifest.
func (w *town) content(tenant, hash, name string) string {
	w.t.Helper()
	store := files.New(w.bus)
	m, err := store.Manifest(w.t.Context(), tenant, hash)
	if err != nil {
		w.t.Fatal(err)
	}
	f, ok := m.Find(name)
	if !ok {
		w.t.Fatalf("there is no %s in %+v", name, m)
	}
	var data bytes.Buffer
	if err := store.Get(w.t.Context(), tenant, f.Hash, f.Size, &data); err != nil {
		w.t.Fatal(err)
	}
	return data.String()
}

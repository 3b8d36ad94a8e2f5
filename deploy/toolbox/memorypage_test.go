package toolbox_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
)

// The examples of docs/tools/memory.md do what the page says, without an embedder.
func TestPageOfMemory(t *testing.T) {
	files, calls := examples(t, "memory.md", "yaml"), examples(t, "memory.md", "text")
	if len(files) != 2 || len(calls) != 1 {
		t.Fatalf("the page has %d files and %d plays", len(files), len(calls))
	}
	store, err := sqlstore.Open(sqlstore.Config{
		Where: filepath.Join(t.TempDir(), "memory.db"), Now: func() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	played(t, openedWith(t, toolbox.Needs{Memory: store}, files[0]), definition(t, files[1]), calls[0], "")
}

// The examples of docs/tools/scratchpad.md do what the page says.
func TestPageOfScratchpad(t *testing.T) {
	agents, calls := examples(t, "scratchpad.md", "yaml"), examples(t, "scratchpad.md", "text")
	if len(agents) != 1 || len(calls) != 1 {
		t.Fatalf("the page has %d agents and %d plays", len(agents), len(calls))
	}
	played(t, opened(t, "apiVersion: longshore.run/v1\nkind: Tools\nspec: {}\n"), definition(t, agents[0]), calls[0], "")
}

package toolbox_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages/strict"
)

// What docs/tools/remote.md shows is the example in deploy/examples/remote, and a worker takes it. A tool of another program cannot have
// the name of another tool.
func TestPageOfRemote(t *testing.T) {
	files, definitions := examples(t, "remote.md", "yaml"), examples(t, "remote.md", "json")
	if len(files) != 2 || len(definitions) != 1 {
		t.Fatalf("the page has %d files and %d definitions", len(files), len(definitions))
	}
	shipped, err := filepath.Abs("../examples/remote")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(shipped, "tide_table.json"))
	if err != nil || string(strict.Canonical(json.RawMessage(definitions[0]))) != string(strict.Canonical(text)) {
		t.Errorf("the page shows another definition than the example: %v", err)
	}
	nc := embeddedtest.Conn(t, embeddedtest.Start(t, embedded.Config{}))
	open := func(spec string) (*toolbox.Box, error) {
		name := filepath.Join(t.TempDir(), "tools.yaml")
		if err := os.WriteFile(name, []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
		s := new(settings.Worker)
		if err := settings.Load(s, []string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS=" + name}); err != nil {
			t.Fatal(err)
		}
		return toolbox.Open(t.Context(), &s.Tools, toolbox.Needs{Log: slog.New(slog.DiscardHandler), RedisURL: "none", NATS: nc})
	}
	box, err := open(strings.NewReplacer("tide_table.json", shipped+"/tide_table.json", "book_pilot.json", shipped+"/book_pilot.json").Replace(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close() }()
	var names []string
	for _, tool := range box.Tools {
		names = append(names, tool.Spec().Name)
	}
	for _, name := range definition(t, files[1]).Tools {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing in %v", name, names)
		}
	}
	taken := filepath.Join(t.TempDir(), "taken.json")
	if err := os.WriteFile(taken, []byte(strings.Replace(definitions[0], "tide_table", "read_file", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(strings.Replace(files[0], "tide_table.json, book_pilot.json", taken, 1)); err == nil || !strings.Contains(err.Error(), `: spec.remote: another tool has the name "read_file" already`) {
		t.Errorf("error %v", err)
	}
	if _, err := open(strings.Replace(files[0], "tide_table.json", "/none.json", 1)); err == nil || !strings.Contains(err.Error(), "spec.remote.tools[0]: ") {
		t.Errorf("error %v", err)
	}
}

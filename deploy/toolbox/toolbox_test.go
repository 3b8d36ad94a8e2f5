package toolbox_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/tools"
)

// load reads a tools file with a spec as a worker does.
func load(t *testing.T, spec string) *settings.Tools {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tools.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: longshore.run/v1\nkind: Tools\nspec:\n"+spec), 0o600); err != nil {
		t.Fatal(err)
	}
	s := new(settings.Worker)
	if err := settings.Load(s, []string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS=" + file}); err != nil {
		t.Fatal(err)
	}
	return &s.Tools
}

// Without a file a worker offers the tools that are safe by default, and no others.
func TestWithoutAFile(t *testing.T) {
	box, err := toolbox.Open(t.Context(), &settings.Tools{}, toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	set, err := tools.NewSet(box.Tools...)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := set.Specs(set.Names())
	if err != nil || len(specs) == 0 {
		t.Fatalf("%d specs, %v", len(specs), err)
	}
	for _, s := range specs {
		if !s.SafeByDefault {
			t.Errorf("%s is offered without a grant", s.Name)
		}
	}
}

func TestUnknownFamily(t *testing.T) {
	_, err := toolbox.Open(t.Context(), load(t, "  teleport: {}\n"), toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.HasPrefix(err.Error(), "LONGSHORE_TOOLS: ") || !strings.Contains(err.Error(), "spec.teleport: is not a family of tools; known: ") {
		t.Errorf("error %v", err)
	}
}

package toolbox_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	if err := settings.Load(s, []string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_SCRIPT=x.yaml", "LONGSHORE_TOOLS=" + file}); err != nil {
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
	set, err := box.Set()
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

// The operator's retries hold for calls, and a policy of no tool ends the start.
func TestRetries(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	for retries, want := range map[string]int64{"{retries: 0}": 1, "{retries: 5, first: 1ms, most: 2ms}": 6} {
		set := opened(t, "apiVersion: longshore.run/v1\nkind: Tools\nspec:\n  http: {hosts: ['"+host+"'], plainHttp: ['"+host+"']}\n  retries: {http_get: "+retries+"}\n")
		asked.Store(0)
		r, err := set.Call(t.Context(), "http_get", tools.Call{Arguments: []byte(`{"url":"` + s.URL + `"}`)})
		if err != nil || !r.IsError || asked.Load() != want {
			t.Errorf("%s: asked %d times: %+v %v", retries, asked.Load(), r, err)
		}
	}
	_, err := toolbox.Open(t.Context(), load(t, "  retries: {read_fiel: {retries: 1}}\n"), toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "spec.retries.read_fiel: is not the name of a tool that this file grants: did you mean read_file?") {
		t.Errorf("error %v", err)
	}
}

func TestUnknownFamily(t *testing.T) {
	_, err := toolbox.Open(t.Context(), load(t, "  teleport: {}\n"), toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.HasPrefix(err.Error(), "LONGSHORE_TOOLS: ") || !strings.Contains(err.Error(), "spec.teleport: is not a family of tools; known: ") {
		t.Errorf("error %v", err)
	}
}

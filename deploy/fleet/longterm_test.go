//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
)

// Workers open the long-term memory that their settings name: one whose database does not answer is ready all the same, and says so.
func TestLongTermMemoryOfAWorker(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	if err := bus.Setup(t.Context(), embeddedtest.Conn(t, servers), bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	var logs lockedText
	file := filepath.Join(t.TempDir(), "memory.db")
	m := &measured{t: t, pages: map[string]string{}}
	for name, where := range map[string]string{
		"file": settings.MemorySQLite + file, "redis": settings.MemoryRedis, "off": settings.MemoryOff,
		"away": fmt.Sprintf("postgres://user:planted-secret@127.0.0.1:%d/memory?sslmode=disable", freePort(t)),
	} {
		m.start(name, func(ctx context.Context, up func(string)) error {
			return fleet.Worker(ctx, settings.Worker{
				NATS: settings.NATS{URL: servers.NATSURL}, RedisURL: servers.RedisURL, HTTPAddr: "127.0.0.1:0", Name: name,
				Runs:       settings.Runs{Slots: 1, DrainTimeout: time.Second, ModelTimeout: time.Minute, MemoryTTL: time.Hour},
				Workspaces: t.TempDir(), Models: settings.Models{OpenAIKey: apiKey, OpenAIModel: "m"},
				LongTerm: settings.LongTerm{Memory: where, EmbeddingsModel: settings.EmbeddingsScripted},
			}, "test", slog.New(slog.NewTextHandler(&logs, nil)), fleet.Parts{}, up)
		})
	}
	degraded := func(name string) []string {
		resp, err := http.Get("http://" + m.pages[name] + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var answer struct {
			Ready    bool     `json:"ready"`
			Degraded []string `json:"degraded"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || !answer.Ready {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
		return answer.Degraded
	}
	eventually(t, "the one without its database says so", func() bool {
		said := degraded("away")
		return len(said) == 1 && strings.Contains(said[0], "LONGSHORE_MEMORY")
	})
	for _, name := range []string{"file", "redis"} {
		eventually(t, name+" was swept", func() bool {
			return strings.Contains(m.page(name), `longshore_longterm_calls_total{operation="sweep"} 1`)
		})
		if said := degraded(name); len(said) != 0 {
			t.Errorf("%s: %v", name, said)
		}
	}
	if !strings.Contains(m.page("away"), `longshore_longterm_failures_total{reason="unavailable"} 1`) || strings.Contains(m.page("off"), "longshore_longterm_") {
		t.Error("the metrics do not tell one that fails, or tell of one that there is not")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if text := logs.String(); !strings.Contains(text, "long-term memory does not answer") || strings.Contains(text, "planted-secret") {
		t.Errorf("log:\n%s", text)
	}
}

// longshore dev keeps it in its folder, unless it is told otherwise.
func TestLongTermMemoryOfDev(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]bool{"": true, settings.MemoryOff: false} {
		dir := t.TempDir()
		cfg := fleet.DevConfig{Dir: dir, Abrupt: true, Log: slog.New(slog.DiscardHandler), Dev: settings.Dev{LongTerm: settings.LongTerm{Memory: where}}}
		cfg.Slots, cfg.MaxAttempts, cfg.ModelTimeout = 1, 5, time.Minute
		dev, err := fleet.StartDev(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := dev.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "memory.db")); (err == nil) != want {
			t.Errorf("with %q: %v, want a file: %v", where, err, want)
		}
	}
}

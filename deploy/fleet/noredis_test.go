//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
)

// A worker whose Redis does not answer says so when it starts, and is ready: it can do without.
func TestWorkerWithoutItsRedis(t *testing.T) {
	t.Parallel()
	servers := embeddedtest.Start(t)
	if err := bus.Setup(t.Context(), embeddedtest.Conn(t, servers), bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	var logs lockedText
	m := &measured{t: t, pages: map[string]string{}}
	m.start("worker", func(ctx context.Context, up func(string)) error {
		return fleet.Worker(ctx, settings.Worker{
			NATS: settings.NATS{URL: servers.NATSURL}, RedisURL: fmt.Sprintf("redis://:secret@127.0.0.1:%d/0", freePort(t)),
			HTTPAddr: "127.0.0.1:0", Name: "w", Runs: settings.Runs{Slots: 1, DrainTimeout: time.Second, ModelTimeout: time.Minute, MemoryTTL: time.Hour},
			Workspaces: t.TempDir(), Models: settings.Models{OpenAIKey: apiKey, OpenAIModel: "m"},
		}, "test", slog.New(slog.NewTextHandler(&logs, nil)), fleet.Parts{}, up)
	})
	resp, err := http.Get("http://" + m.pages["worker"] + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Ready    bool     `json:"ready"`
		Degraded []string `json:"degraded"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK || !answer.Ready ||
		len(answer.Degraded) != 1 || !strings.Contains(answer.Degraded[0], "REDIS_URL") {
		t.Errorf("%s: %+v, %v", resp.Status, answer, err)
	}
	if text := logs.String(); !strings.Contains(text, "Redis at REDIS_URL does not answer") || strings.Contains(text, "secret") {
		t.Errorf("log:\n%s", text)
	}
}

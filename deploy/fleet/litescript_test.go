//go:build unix

package fleet_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
)

// Without a provider the built-in script answers /run-lite in the JSON protocol.
func TestLiteOfTheBuiltInScript(t *testing.T) {
	t.Parallel()
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Abrupt: true, Log: testLog(t, "dev"), Dev: settings.Dev{Runs: settings.Runs{Slots: 2, MaxAttempts: 5, ModelTimeout: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	resp, err := http.Post("http://"+dev.API+"/run-lite", "application/json", strings.NewReader(`{"input":"Say \"hi\".","includeSteps":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Output string `json:"output"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&reply); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", resp.Status, err, body)
	}
	if !strings.HasPrefix(reply.Output, "Longshore works: ") || !strings.Contains(reply.Output, "OPENAI_API_KEY") {
		t.Errorf("output %q", reply.Output)
	}
}

package main

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

func TestClient(t *testing.T) {
	script, err := os.ReadFile("../script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	play, err := scripted.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 2, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: model.Provider(scripted.New(play))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	var out bytes.Buffer
	if err := run(t.Context(), dev.NATS, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	if err := run(t.Context(), "nats://127.0.0.1:1", &out); err == nil {
		t.Error("no error from a closed port")
	}
}

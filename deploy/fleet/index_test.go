//go:build unix

package fleet_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// A fleet keeps an index over its restarts: what was stored before a list is in it.
func TestIndexOfAFleet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(cfg fleet.DevConfig) (*fleet.Dev, *dispatcher.Client) {
		t.Helper()
		cfg.Dir, cfg.Abrupt, cfg.Log, cfg.Slots = dir, true, testLog(t, "dev"), 2
		cfg.MaxAttempts, cfg.ModelTimeout = 5, time.Minute
		dev, err := fleet.StartDev(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		client, err := dev.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return dev, client
	}
	stop := func(dev *fleet.Dev) {
		t.Helper()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	}
	dev, client := start(fleet.DevConfig{})
	id, err := client.Submit(t.Context(), messages.Task{Input: messages.TextInput("Write a Haiku about indexes"), Labels: map[string]string{"team": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Wait(t.Context(), dispatcher.Run(id)); err != nil {
		t.Fatal(err)
	}
	found := func(client *dispatcher.Client, f dispatcher.RunFilter) {
		t.Helper()
		list, err := client.Runs().List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Runs) != 1 || list.Runs[0].ID != id || list.Runs[0].Status != messages.StatusCompleted || list.Found != 1 || list.Behind != 0 {
			t.Errorf("%+v: %+v", f, list)
		}
	}
	found(client, dispatcher.RunFilter{Search: "haiku ABOUT"})
	found(client, dispatcher.RunFilter{Labels: map[string]string{"team": "a"}, Since: time.Now().Add(-time.Hour)})
	steps, err := client.Runs().Steps(t.Context(), dispatcher.Run(id))
	if err != nil || len(steps.Steps) == 0 || steps.Steps[0].ModelCalls != 1 {
		t.Errorf("%+v, %v", steps, err)
	}
	stop(dev)

	dev, client = start(fleet.DevConfig{NoWorker: true})
	queued, err := client.Submit(t.Context(), messages.Task{Input: messages.TextInput("waits")})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Runs().List(t.Context(), dispatcher.RunFilter{})
	if err != nil || len(list.Runs) != 2 || list.Runs[0].ID != queued || list.Runs[0].Status != messages.StatusQueued || list.Runs[1].ID != id {
		t.Errorf("%+v, %v", list, err)
	}
	for after, want := range map[string]int{queued: 1, id: 0} {
		if list, err := client.Runs().List(t.Context(), dispatcher.RunFilter{After: after}); err != nil || len(list.Runs) != want {
			t.Errorf("after %s: %+v, %v", after, list, err)
		}
	}
	if list, err := client.Runs().List(t.Context(), dispatcher.RunFilter{Limit: 1}); err != nil || len(list.Runs) != 1 || list.Next != queued || list.Found != 2 {
		t.Errorf("the first: %+v, %v", list, err)
	}
	if err := client.Index().Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the index is made again", func() bool {
		s, err := client.Index().Status(t.Context())
		return err == nil && s.Behind == 0 && s.Runs == 1 && s.Kind == "sqlite"
	})
	stats, err := client.Runs().Stats(t.Context(), dispatcher.RunFilter{}, control.StatsByAgent)
	if err != nil || stats.Total.Runs != 1 || len(stats.Groups) != 1 || stats.Groups[0].Key != messages.DefaultAgent {
		t.Errorf("%+v, %v", stats, err)
	}
	stop(dev)

	dev, client = start(fleet.DevConfig{NoWorker: true, Dev: settings.Dev{Serving: settings.Serving{RunIndex: settings.RunIndex{Index: settings.IndexNone}}}})
	list, err = client.Runs().List(t.Context(), dispatcher.RunFilter{Search: "haiku"})
	if err != nil || len(list.Runs) != 1 || list.Runs[0].ID != id {
		t.Errorf("without an index: %+v, %v", list, err)
	}
	if _, err := client.Runs().Stats(t.Context(), dispatcher.RunFilter{}, ""); err == nil {
		t.Error("statistics without an index")
	}
	stop(dev)
}

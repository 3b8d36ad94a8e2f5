package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/memory"
)

// Rules of the fleet, of a tenant and of an agent bound how long memory holds what runs keep and what clients write, over NATS as over HTTP: the
// shortest counts, and what is older than that is not read.
func TestMemoryIsHeldAsLongAsRulesSay(t *testing.T) {
	t.Parallel()
	dev, nats := devFleetOf(t, recallScript, "", "", `fleet: {retain: [{collection: "fact*", for: 2h}]}, tenants: {default: {retain: [{collection: facts, for: 1h}]}}`)
	web, err := dispatcher.NewHTTP(dev.Scheme+"://"+dev.API, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(web.Close)
	held := func(client *dispatcher.Client, collection, id string) time.Duration {
		t.Helper()
		it, err := client.Memory().Get(t.Context(), "", collection, id)
		if err != nil {
			t.Fatal(collection, id, err)
		}
		if it.Expires.IsZero() {
			return 0
		}
		return it.Expires.Sub(it.Created).Round(time.Minute)
	}
	now := time.Now()
	for name, client := range map[string]*dispatcher.Client{"nats": nats, "http": web} {
		for _, tc := range []struct {
			collection string
			expires    time.Time
			want       time.Duration
		}{
			{"facts", time.Time{}, time.Hour},
			{"facts", now.Add(100 * time.Hour), time.Hour},
			{"facts", now.Add(10 * time.Minute), 10 * time.Minute},
			{"factory", time.Time{}, 2 * time.Hour},
			{"notes", time.Time{}, 0},
		} {
			it := memory.Item{ID: name, Text: "Berth 7 is closed.", Expires: tc.expires}
			if _, err := client.Memory().Put(t.Context(), memory.PutRequest{Name: tc.collection, Items: []memory.Item{it}}); err != nil {
				t.Fatal(name, err)
			}
			if got := held(client, tc.collection, name); got != tc.want {
				t.Errorf("%s: %s, asked for %v: held for %v, want %v", name, tc.collection, tc.expires, got, tc.want)
			}
		}
		old := memory.Item{ID: "old-" + name, Text: "Berth 6 is closed.", Created: now.Add(-90 * time.Minute)}
		if _, err := client.Memory().Put(t.Context(), memory.PutRequest{Name: "facts", Items: []memory.Item{old}}); err != nil {
			t.Fatal(name, err)
		}
		if it, err := client.Memory().Get(t.Context(), "", "facts", old.ID); !errors.Is(err, dispatcher.ErrNoItem) {
			t.Errorf("%s: what is too old is read: %+v, %v", name, it, err)
		}
	}
	for agent, want := range map[string]time.Duration{"strict": 30 * time.Minute, "lax": time.Hour} {
		def := messages.Definition{
			Name: agent, Tools: []string{"remember"},
			Policy: &messages.Policy{Retain: []messages.RetainRule{{Collection: "*", For: messages.Duration(30 * time.Minute)}}},
		}
		if agent == "lax" {
			def.Policy.Retain[0].For = messages.Duration(1000 * time.Hour)
		}
		if _, err := nats.Agents().Apply(t.Context(), def, "", nil); err != nil {
			t.Fatal(err)
		}
		r := worked(t, nats, agent, "Remember where the ferry leaves.")
		if len(r.MemoryDeltas) != 1 {
			t.Fatalf("nothing was kept: %+v", r)
		}
		if got := held(nats, "facts", r.MemoryDeltas[0].ID); got != want {
			t.Errorf("of agent %s: held for %v, want %v", agent, got, want)
		}
	}
}

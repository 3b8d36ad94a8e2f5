//go:build unix

package fleet_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// A run that has waited for longer than events are kept is listed, and in the inbox, whatever it waits for.
func TestRunsThatWaitAreListedBeyondTheirEvents(t *testing.T) {
	t.Parallel()
	m, servers := measure(t, func(c *modelCall) reply {
		if c.Task == "ask" {
			return reply{Tool: "ask_human", Args: map[string]string{"question": "Which berth?"}}
		}
		return reply{Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": "hi"}}
	})
	w := m.town
	for _, def := range []messages.Definition{
		{Name: "careful", Tools: []string{"write_file"}, Approve: &messages.Approve{Always: []string{"write_file"}}},
		{Name: "asker", Tools: []string{"ask_human"}},
	} {
		if _, err := w.client.Agents().Apply(t.Context(), def, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		w.submit("write", func(t *messages.Task) { t.Agent = "careful" }).Run,
		w.submit("ask", func(t *messages.Task) { t.Agent = "asker" }).Run,
	}
	listed := func() bool {
		list, err := w.client.Runs().List(t.Context(), dispatcher.RunFilter{Statuses: []messages.Status{messages.StatusWaiting}})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range list.Runs {
			ids = append(ids, r.ID)
		}
		slices.Sort(ids)
		return slices.Equal(ids, slices.Sorted(slices.Values(want)))
	}
	eventually(t, "both runs wait", listed)
	js, err := jetstream.New(w.nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range bustest.EventStreams(t, w.nc) {
		events, err := js.Stream(t.Context(), name)
		if err == nil {
			err = events.Purge(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !listed() {
		t.Error("the runs are no longer listed")
	}
	for _, command := range []string{"inbox", "list"} {
		cmd := exec.CommandContext(t.Context(), binary, command)
		cmd.Env = append(os.Environ(), "NATS_URL="+servers.NATSURL)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		for _, id := range want {
			if !strings.Contains(string(out), id) {
				t.Errorf("%s does not name %s:\n%s", command, id, out)
			}
		}
	}
}

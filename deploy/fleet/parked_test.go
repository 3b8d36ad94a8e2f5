//go:build unix

package fleet_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

// A run that is cancelled while it waits is no longer counted among those that wait.
func TestCancelledRunIsNoLongerParked(t *testing.T) {
	t.Parallel()
	m, _ := measure(t, func(*modelCall) reply {
		return reply{Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": "hi"}}
	})
	careful := messages.Definition{
		Name: "careful", Tools: []string{"write_file"}, Approve: &messages.Approve{Always: []string{"write_file"}},
	}
	if _, err := m.town.client.Agents().Apply(t.Context(), careful, "", nil); err != nil {
		t.Fatal(err)
	}
	run := m.town.submit("work", func(t *messages.Task) { t.Agent = "careful" })
	g := m.town.watch(run)
	parked := func(n string) func() bool {
		return func() bool {
			return strings.Contains(m.page("dispatcher"), "\nlongshore_runs_parked{reason=\"approval\"} "+n+"\n")
		}
	}
	eventually(t, "the run is counted", parked("1"))
	if _, err := m.town.client.Cancel(t.Context(), run, "not needed"); err != nil {
		t.Fatal(err)
	}
	if r := g.end(); r.Status != messages.StatusCancelled {
		t.Errorf("%+v", r)
	}
	eventually(t, "the run is counted no longer", parked("0"))
}

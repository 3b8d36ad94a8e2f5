package fleet_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/worker/replay"
)

const reachScript = `scenes:
  - {repeat: true, turns: [{calls: [{name: remember, arguments: {collection: notes, text: "The ferry is late."}}]}, {text: "Told: ${lastToolResult}"}]}
`

// An agent that lists collections of memory reaches no others: not by its tools, not when its run begins, not in a fork of a run that did, and a replay
// decides the same.
func TestAgentsReachTheMemoryThatTheyList(t *testing.T) {
	t.Parallel()
	_, client := devFleetOf(t, reachScript, "", "collections: [facts, notes]", "")
	for _, name := range []string{"facts", "notes"} {
		it := memory.Item{ID: name, Text: "Where does the ferry leave? From a pier in " + name + "."}
		if _, err := client.Memory().Put(t.Context(), memory.PutRequest{Name: name, Items: []memory.Item{it}}); err != nil {
			t.Fatal(err)
		}
	}
	def := func(name string, collections ...string) messages.Definition {
		return messages.Definition{Name: name, Tools: []string{"remember"}, Memory: &messages.MemoryPolicy{Collections: collections, Recall: &messages.RecallPolicy{Collections: []string{"facts"}}}}
	}
	wide, narrow, wrong := def("wide"), def("narrow", "fact*"), def("wrong", "notes")
	wide.Memory.Recall.Collections = []string{"facts", "notes"}
	for _, d := range []messages.Definition{wide, narrow} {
		if _, err := client.Agents().Apply(t.Context(), d, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.Agents().Apply(t.Context(), wrong, "", nil)
	if err == nil || !strings.Contains(err.Error(), "memory.recall.collections[0]: facts is not in memory.collections") {
		t.Errorf("an agent that recalls what it does not reach: %v", err)
	}

	const question, refusal = "Where does the ferry leave?", "Told: collection: must be one of facts."
	first := worked(t, client, "wide", question)
	if len(first.MemoryDeltas) != 1 || len(first.Provenance.Memories) != 2 {
		t.Fatalf("%+v, %+v", first, first.Provenance)
	}
	same := func(run string) {
		t.Helper()
		report, err := replay.Check(t.Context(), client.Runs().Log(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: run}))
		if err != nil || report.Difference != nil || report.Decisions == 0 {
			t.Errorf("replay of %s: %+v, %v", run, report, err)
		}
	}
	r := worked(t, client, "narrow", question)
	if r.Result != refusal || len(r.MemoryDeltas) != 0 || len(r.Provenance.Memories) != 1 || r.Provenance.Memories[0].Collection != "facts" {
		t.Errorf("%v, %+v, %+v", r.Result, r.MemoryDeltas, r.Provenance)
	}
	same(r.ID)
	fork, err := client.Runs().Fork(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: first.ID}, control.ForkRequest{At: 1, Agent: "narrow"})
	if err != nil {
		t.Fatal(err)
	}
	r, err = client.Wait(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: fork.ID})
	if err != nil || r.Result != refusal || len(r.MemoryDeltas) != 0 {
		t.Errorf("the fork: %+v, %v", r, err)
	}
	same(fork.ID)
}

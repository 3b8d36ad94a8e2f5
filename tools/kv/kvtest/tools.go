package kvtest

import (
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/toolstest"
)

// Limits are those of the stores that RunTools wants.
func Limits() kv.Limits { return limits() }

// RunTools checks that the tools keep the promises of tools on a store, the calls of the next worker among them. Each call of open returns the
// same store as another worker has it.
func RunTools(t *testing.T, open func(*testing.T) kv.Store) {
	t.Helper()
	store := open(t)
	// The run of the suite; each value that is set has the next revision.
	in := kv.Scope{Kind: messages.KVRun, Tenant: "conformance", Name: "r1"}
	first := set(t, store, in, write("first", ""))
	changes := func() int {
		entries, _, err := store.List(t.Context(), in, kv.Query{Limit: 100})
		if err != nil {
			t.Error(err)
		}
		last := first
		for _, e := range entries {
			last = max(last, e.Revision)
		}
		return int(last - first)
	}
	cases := map[string][]toolstest.Case{
		"kv_get": {{Arguments: `{"key":"a"}`, Effects: changes}, {Arguments: `{"key":""}`, Fails: true}},
		"kv_set": {
			{Arguments: `{"key":"a","value":"x"}`, Effects: changes},
			{Arguments: `{"key":"c","value":"x","revision":7}`, Fails: true, Effects: changes},
		},
		"kv_delete": {{Arguments: `{"key":"a"}`}, {Arguments: `{"key":"b","revision":1}`, Fails: true}},
		"kv_list":   {{Arguments: ``, Effects: changes}, {Arguments: `{"prefix":"a","limit":1}`}, {Arguments: `{"limit":201}`, Fails: true}},
	}
	for i, tool := range made(t, store) {
		name := tool.Spec().Name
		t.Run(name, func(t *testing.T) {
			for n := range cases[name] {
				cases[name][n].Restarted = func() (tools.Tool, error) { return made(t, open(t))[i], nil }
			}
			toolstest.Run(t, tool, cases[name]...)
			if tool.Spec().SafeByDefault {
				t.Error("it is safe by default, and reaches a store outside the run")
			}
		})
	}
}

func made(t *testing.T, store kv.Store) []tools.Tool {
	t.Helper()
	all, err := kv.Tools(store, kv.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

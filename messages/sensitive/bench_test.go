package sensitive

import (
	"strings"
	"testing"
)

// A state as workers keep it: identifiers, times and text, and nothing to be found.
var state = `{"run":{"tenant":"acme","id":"01JDRX4N8T5W2Z0Q6M7K3B9C1D"},"claim":"5f0c7d7bb0ab4d5c9f2f","at":"2026-11-28T01:49:08.123456789Z","steps":[` +
	strings.TrimSuffix(strings.Repeat(`{"step":1,"call":"call_0f3a9b1c","args":"{\"path\":\"notes/a.txt\"}","text":"The ship leaves the harbour at noon and carries grain."},`, 20), ",") + `]}`

func BenchmarkRedact(b *testing.B) {
	b.SetBytes(int64(len(state)))
	for b.Loop() {
		if Redact(state) != state {
			b.Fatal("found something in a state without anything to be found")
		}
	}
}

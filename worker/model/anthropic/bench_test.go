package anthropic_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
)

func bench(b *testing.B, body string, r model.Request) {
	b.Helper()
	p, err := anthropic.New(anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: key, Transport: modeltest.Fresh(body)}, Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if o := call(b.Context(), p, r); o.Err != nil {
			b.Fatal(o.Err)
		}
	}
}

// BenchmarkCall is the cost of a call with a short reply.
func BenchmarkCall(b *testing.B) { bench(b, said("Hi"), modeltest.Request()) }

// BenchmarkChunk is the cost of a piece of text: ns/chunk.
func BenchmarkChunk(b *testing.B) {
	const chunks = 2000
	bench(b, events(start, open(0, "text", `"text":""`))+strings.Repeat(events(text(0, "a few words more")), chunks)+
		events(shut(0), because("end_turn"), stop), hello())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
}

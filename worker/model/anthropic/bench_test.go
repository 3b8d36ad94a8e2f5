package anthropic_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
)

// replay answers every request with the same body, without a network.
type replay string

func (s replay) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(s))), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func bench(b *testing.B, body string, r model.Request) {
	b.Helper()
	p, err := anthropic.New(anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: key, Transport: replay(body)}, Model: "m"})
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

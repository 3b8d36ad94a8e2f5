package openai_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// BenchmarkChunk is what one streamed chunk costs, from the wire to the consumer.
func BenchmarkChunk(b *testing.B) {
	for name, chunk := range map[string]string{
		"text":      text("token "),
		"reasoning": delta(`"content":"","reasoning":" the","reasoning_details":[{"type":"reasoning.text","text":" the","format":"unknown","index":0}]`),
		"arguments": calls(`{"index":0,"function":{"name":"f","arguments":"1"}}`),
	} {
		b.Run(name, func(b *testing.B) {
			const chunks = 1000
			body := strings.Repeat("data: "+chunk+"\n\n", chunks) + data(finish("stop"), usage)
			p, err := openai.New(openai.Config{Endpoint: httpstream.Endpoint{NoAuth: true, BaseURL: "http://host", Transport: modeltest.Fresh(body)}, Model: "m"})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for done := 0; done < b.N; done += chunks {
				if o := call(b.Context(), p, hello()); o.Err != nil {
					b.Fatal(o.Err)
				}
			}
		})
	}
}

// BenchmarkCall is what a call costs besides its chunks: a long conversation with tools, and a reply of one word.
func BenchmarkCall(b *testing.B) {
	p, err := openai.New(openai.Config{
		Endpoint: httpstream.Endpoint{NoAuth: true, BaseURL: "http://host", Transport: modeltest.Fresh(data(text("a"), finish("stop"), usage))}, Model: "m",
	})
	if err != nil {
		b.Fatal(err)
	}
	r := hello()
	for range 20 {
		r.Messages = append(r.Messages, turn("x")[1:3]...)
	}
	r.Tools = []messages.ToolSpec{{Name: "f", InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}
	b.ReportAllocs()
	for b.Loop() {
		if o := call(b.Context(), p, r); o.Err != nil {
			b.Fatal(o.Err)
		}
	}
}

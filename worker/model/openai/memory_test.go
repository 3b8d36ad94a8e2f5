package openai_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// endless repeats a piece and never ends.
type endless struct {
	first, piece string
	at           int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.first)
	if e.first = e.first[n:]; n > 0 {
		return n, nil
	}
	for n < len(b) {
		m := copy(b[n:], e.piece[e.at:])
		e.at = (e.at + m) % len(e.piece)
		n += m
	}
	return n, nil
}

// lines is an event of some 200 KB, of many short items.
func lines(open, item, end string) string {
	return "data: " + open + strings.Repeat(item+",", 200_000/(len(item)+1)) + item + end + "\n\n"
}

// TestMemoryIsBounded lets a server send without end, in the forms that take most memory for their bytes. What is
// allocated, kept or not, stays within a few times the limits: 256 KiB for a line and 512 KiB for a reply.
func TestMemoryIsBounded(t *testing.T) {
	const mebi = 1 << 20
	for name, tt := range map[string]struct {
		status int
		body   endless
		limit  uint64 // MiB
	}{
		"one line":              {200, endless{"data: ", "x", 0}, 12},
		"one comment":           {200, endless{": ", "x", 0}, 12},
		"a web page":            {200, endless{"<html>", "x", 0}, 12},
		"lists in lists":        {200, endless{"", "[", 0}, 12},
		"comments":              {200, endless{"", ": wait\n\n", 0}, 12},
		"data on several lines": {200, endless{"", "data: [\n", 0}, 12},
		"a line of choices":     {200, endless{"", lines(`{"choices":[`, "{}", `]}`), 0}, 12},
		"a line of calls":       {200, endless{"", lines(`{"choices":[{"delta":{"tool_calls":[`, `{"index":0}`, `]}}]}`), 0}, 12},
		"a line of reasoning":   {200, endless{"", lines(`{"choices":[{"delta":{"reasoning_details":[`, "{}", `]}}]}`), 0}, 12},
		"a line of content":     {200, endless{"", lines(`{"choices":[{"delta":{"content":[`, "{}", `]}}]}`), 0}, 12},
		"a line of thinking":    {200, endless{"", lines(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[`, "{}", `]}]}}]}`), 0}, 12},
		"a line of errors":      {200, endless{"", lines(`{"error":[`, "[]", `]}`), 0}, 12},
		"JSON of errors":        {200, endless{lines(`{"error":[`, "[]", `]}`)[6:], " ", 0}, 12},
		"an error page":         {500, endless{"", `[{"error":`, 0}, 12},
		"text":                  {200, endless{"", events(text(strings.Repeat("x", 4000))), 0}, 150},
		"reasoning":             {200, endless{"", events(delta(`"reasoning_content":"` + strings.Repeat("x", 4000) + `"`)), 0}, 150},
		"arguments":             {200, endless{"", events(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"` + strings.Repeat("x", 4000) + `"}}`)), 0}, 40},
		"a call as text":        {200, endless{events(text("<tool_call>")), events(text(strings.Repeat("x", 500))), 0}, 150},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := openai.New(openai.Config{Endpoint: httpstream.Endpoint{NoAuth: true, BaseURL: "http://host", Transport: modeltest.Memory{Status: tt.status, Body: &tt.body}, MaxLine: mebi / 4, MaxReply: mebi / 2}, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			r := hello()
			r.Tools = []messages.ToolSpec{{Name: "f"}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var last error
			for _, err := range p.Stream(t.Context(), r) {
				last = err
			}
			runtime.ReadMemStats(&after)
			if last == nil {
				t.Error("a reply without end was one")
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > tt.limit*mebi {
				t.Errorf("%d MiB were allocated, more than %d", took/mebi, tt.limit)
			} else {
				t.Logf("%d MiB, %v", took/mebi, last)
			}
		})
	}
}

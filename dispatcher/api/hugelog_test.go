package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/model"
)

// monologue answers everything with one text.
type monologue struct{ text string }

func (m monologue) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{Reply: &model.Reply{
			Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(m.text)}, Stop: messages.StopEnd,
			Provider: "monologue", Model: "m",
		}}, nil)
	}
}

// reads counts how often each large entry of a run was fetched: the requests for the first part of its payload.
type reads struct {
	t   *testing.T
	nc  *nats.Conn
	sub *nats.Subscription
}

func (r *reads) most(run string) int {
	r.t.Helper()
	if err := r.nc.Flush(); err != nil {
		r.t.Fatal(err)
	}
	n, _, err := r.sub.Pending()
	if err != nil {
		r.t.Fatal(err)
	}
	times, most := map[string]int{}, 0
	for range n {
		m, err := r.sub.NextMsg(patience)
		if err != nil {
			r.t.Fatal(err)
		}
		if body := string(m.Data); strings.Contains(body, "blobs.default."+run+".") && strings.Contains(body, ".0-") {
			times[body]++
			most = max(most, times[body])
		}
	}
	return most
}

// The log of a run with an answer of some MiB, more than one message, comes whole over NATS and HTTP, and no entry is fetched anew for each of its parts.
func TestLogOfAHugeAnswer(t *testing.T) {
	const size = 1_200_000 // more than a message holds
	said := strings.Repeat("the tide. ", size/10)
	h := openWith(t, monologue{said})
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // its requests end with it, and not sooner: none is made again
	defer cancel()
	h.do("POST", "/v1/tasks", `{"id":"huge","input":"talk"}`, 202, nil)
	run := messages.Ref{Tenant: "default", Run: "huge"}
	if _, err := client.Wait(ctx, run); err != nil {
		t.Fatal(err)
	}
	sub, err := nc.SubscribeSync("$JS.API.STREAM.MSG.GET.BLOBS")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	fetched := &reads{t, nc, sub}
	// An entry is looked at once at the end of the page before it, and once as the first of its own.
	const atMost = 2
	check := func(way, got string) {
		t.Helper()
		if got != said {
			t.Errorf("%s: the log has %d bytes of the answer, want %d", way, len(got), len(said))
		}
		if n := fetched.most("huge"); n < 1 || n > atMost {
			t.Errorf("%s: an entry was fetched %d times, want once or twice", way, n)
		}
	}

	var answer strings.Builder
	for e, err := range client.Runs().Log(ctx, run) {
		if err != nil {
			t.Fatal(err)
		}
		answer.WriteString(replied(e))
	}
	check("Client.Log", answer.String())

	var page control.LogPage
	answer.Reset()
	for after, more := uint64(0), true; more; more = page.More {
		page = control.LogPage{}
		h.do("GET", fmt.Sprintf("/v1/tasks/huge/log?after=%d", after), "", 200, &page)
		for _, l := range page.Entries {
			answer.WriteString(replied(entry(t, l)))
			after = l.Seq
		}
	}
	check("HTTP", answer.String())

	answer.Reset()
	parts := 0
	req := control.LogRequest{ID: "huge"}
	var whole []byte
	for more := true; more; more = page.More {
		body, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		m, err := nc.Request(control.SubjectLog, body, 4*patience)
		if err != nil || m.Header.Get("Nats-Service-Error-Code") != "" {
			t.Fatalf("%s: %.200v, %v", body, m, err)
		}
		page = control.LogPage{}
		if err := json.Unmarshal(m.Data, &page); err != nil {
			t.Fatal(err)
		}
		if p := page.Part; p != nil {
			parts++
			if whole = append(whole, p.Data...); len(whole) < p.Size {
				req.Offset = len(whole)
				continue
			}
			var l control.EntryCopy
			if err := json.Unmarshal(whole, &l); err != nil {
				t.Fatal(err)
			}
			page.Entries, whole = []control.EntryCopy{l}, nil
		}
		for _, l := range page.Entries {
			answer.WriteString(replied(entry(t, l)))
			req.After, req.Offset = l.Seq, 0
		}
	}
	check("NATS", answer.String())
	if parts <= 2*atMost {
		t.Errorf("the entry came in %d parts: that is not huge", parts)
	}
}

func entry(t *testing.T, l control.EntryCopy) record.Entry {
	t.Helper()
	e, err := l.Entry()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// replied is what the model said in an entry.
func replied(e record.Entry) string {
	var b strings.Builder
	for _, r := range e.Records {
		if said, ok := r.(*record.ModelReplied); ok {
			b.WriteString(said.Message.Text())
		}
	}
	return b.String()
}

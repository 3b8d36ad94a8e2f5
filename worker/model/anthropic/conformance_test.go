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

func TestConformance(t *testing.T) {
	modeltest.Run(t, func(t *testing.T, a modeltest.Answer) model.Provider {
		t.Helper()
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if a.Fail != "" && a.Text == "" && a.Fail != model.Truncated {
				refuse(w, a.Fail)
				return
			}
			write(w, events(strings.Replace(start, "m-1", modeltest.Model, 1), open(0, "text", `"text":""`)), 0)
			for rest := []rune(a.Text); len(rest) > 0; {
				n := min(len(rest), 6)
				write(w, events(text(0, string(rest[:n]))), 0)
				rest = rest[n:]
			}
			switch {
			case a.Hang:
				<-r.Context().Done()
				return
			case a.Fail == model.Truncated:
				return
			}
			reason := "end_turn"
			for i, c := range a.Calls {
				reason = "tool_use"
				write(w, events(tool(i+1, c.ID, c.Name), input(i+1, c.Arguments), shut(i+1)), 0)
			}
			write(w, events(because(reason), stop), 0)
		})
	})
}

func TestHTTP(t *testing.T) {
	modeltest.RunHTTP(t, modeltest.Dialect{
		Open: func(t *testing.T, e httpstream.Endpoint, name string) model.Provider {
			t.Helper()
			p, err := anthropic.New(anthropic.Config{Endpoint: e, Model: name})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			return p
		},
		Variable: "ANTHROPIC",
		Begin:    events(start, open(0, "text", `"text":""`)), Text: func(s string) string { return events(text(0, s)) },
		End: events(because("end_turn"), stop), Ping: events(`{"type":"ping"}`), Half: "event: content_block_delta\ndata: {\"ty",
	})
}

func refuse(w http.ResponseWriter, class model.Class) {
	answer := map[model.Class]struct {
		status     int
		kind, said string
	}{
		model.RateLimited:   {429, "rate_limit_error", "as told"},
		model.Overloaded:    {529, "overloaded_error", "Overloaded"},
		model.Auth:          {401, "authentication_error", "invalid x-api-key"},
		model.ContextLength: {400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"},
	}[class]
	w.WriteHeader(answer.status)
	write(w, fault(answer.kind, answer.said), 0)
}

package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/modeltest"
	"github.com/longshore-run/longshore/worker/model/openai"
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
			for rest := a.Text; rest != ""; {
				n := min(len(rest), 6) // at a rune or not, JSON escapes the rest
				for n < len(rest) && rest[n]&0xC0 == 0x80 {
					n++
				}
				write(w, events(chunk(map[string]any{"content": rest[:n]}, nil)), 0)
				rest = rest[n:]
			}
			switch {
			case a.Hang:
				<-r.Context().Done()
				return
			case a.Fail == model.Truncated:
				return
			}
			reason := "stop"
			for i, c := range a.Calls {
				reason = "tool_calls"
				write(w, events(chunk(map[string]any{"tool_calls": []any{map[string]any{
					"index": i, "id": c.ID, "type": "function",
					"function": map[string]any{"name": c.Name, "arguments": c.Arguments},
				}}}, nil)), 0)
			}
			write(w, data(chunk(map[string]any{}, &reason), usage), 0)
		})
	})
}

func TestHTTP(t *testing.T) {
	modeltest.RunHTTP(t, modeltest.Dialect{
		Open: func(t *testing.T, e httpstream.Endpoint, name string) model.Provider {
			t.Helper()
			p, err := openai.New(openai.Config{Endpoint: e, Model: name})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			return p
		},
		Path: "/v1", Variable: "OPENAI",
		Text: func(s string) string { return events(text(s)) },
		End:  data(finish("stop"), usage), Ping: "data:\n\n", Half: "data: {\"cho",
	})
}

func refuse(w http.ResponseWriter, class model.Class) {
	status := map[model.Class]int{
		model.RateLimited: 429, model.Overloaded: 503, model.Auth: 401, model.ContextLength: 400,
	}[class]
	code := ""
	if class == model.ContextLength {
		code = "context_length_exceeded"
	}
	w.WriteHeader(status)
	write(w, `{"error":{"message":"as told","code":"`+code+`"}}`, 0)
}

func chunk(delta map[string]any, reason *string) string {
	raw, _ := json.Marshal(map[string]any{
		"model": modeltest.Model, "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}},
	})
	return string(raw)
}

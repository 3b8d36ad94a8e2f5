//go:build unix

package fleet_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A server that is never silent and never done does not hold a run beyond the limit of a whole reply.
func TestATrickleOfAReplyEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ env, begin, piece string }{
		"openai":    {"OPENAI", "", `data: {"id":"a","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"},
		"keepalive": {"OPENAI", "", ": wait\n\n"},
		"anthropic": {
			"ANTHROPIC", `event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n",
			"event: ping\ndata: {\"type\":\"ping\"}\n\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, tc.begin)
				tick := time.NewTicker(50 * time.Millisecond)
				defer tick.Stop()
				for {
					if _, err := io.WriteString(w, tc.piece); err != nil || http.NewResponseController(w).Flush() != nil {
						return
					}
					select {
					case <-r.Context().Done():
						return
					case <-tick.C:
					}
				}
			}))
			t.Cleanup(server.Close)
			env := []string{
				tc.env + "_BASE_URL=" + server.URL, tc.env + "_API_KEY=sk-123456789", tc.env + "_MODEL=m",
				"LONGSHORE_MODEL_RETRIES=0", "LONGSHORE_MODEL_REPLY_TIMEOUT=700ms",
			}
			p := spawn(t, name, env, binary, "run", "x", "-o", "json")
			select {
			case <-p.done:
			case <-time.After(patience):
				t.Fatal("the run does not end")
			}
			out := p.out.String()
			for _, part := range []string{`"model_timeout"`, "the reply was not complete within 700ms", "LONGSHORE_MODEL_REPLY_TIMEOUT"} {
				if !strings.Contains(out, part) {
					t.Errorf("the result lacks %q:\n%s", part, out)
				}
			}
		})
	}
}

//go:build unix

package fleet_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRunWithAnthropic works a task over Anthropic's own protocol.
func TestRunWithAnthropic(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Api-Key") != "sk-ant-test" || !strings.Contains(string(body), `"model":"fake"`) {
			http.Error(w, "not as told: "+string(body), http.StatusBadRequest)
			return
		}
		block := `{"type":"tool_use","id":"toolu_1","name":"list_files","input":{}}`
		if strings.Contains(string(body), `"tool_result"`) {
			block = `{"type":"text","text":"The folder is empty."}`
		}
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"fake","usage":{"input_tokens":9,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":`+block+`}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

`)
	}))
	t.Cleanup(s.Close)
	env := []string{"ANTHROPIC_API_KEY=sk-ant-test", "ANTHROPIC_MODEL=fake", "ANTHROPIC_BASE_URL=" + s.URL}
	got := call(t, env, "run", "What is here?", "--workspace", t.TempDir())
	if got.code != 0 || got.stdout != "The folder is empty.\n" || strings.Contains(got.stderr, "No model is configured") {
		t.Errorf("%+v", got)
	}
	env[2] = "ANTHROPIC_BASE_URL=" + s.URL + "/v1"
	if got := call(t, env, "run", "hello"); got.code != 2 || !strings.Contains(got.stderr, "must end before /v1/messages") {
		t.Errorf("%+v", got)
	}
}

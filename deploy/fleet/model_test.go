//go:build unix

package fleet_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// modelServer speaks the protocol of OpenAI over real HTTP, by a script of the test.
type modelServer struct {
	*httptest.Server
	script func(*modelCall) reply
	held   chan *modelCall // calls that the script holds, as they come
	closed chan struct{}

	mu    sync.Mutex
	calls map[string]int // by task and turn, such as "hello 0"
}

// modelCall is one request.
type modelCall struct {
	Task string // the first user message
	Turn int    // assistant messages so far
	Last string // the last message
	Role string // of the last message
	Auth string // the header

	answer chan reply
	gone   <-chan struct{} // closed when the client is
}

// reply is what the model says.
type reply struct {
	Begin  string // text that comes before the call is held
	Text   string
	Tool   string // a call of it, with Args
	Args   any
	Hold   bool // begin the stream and hold the call until the test answers it
	Status int  // an error instead, with Body
	Body   string
	Usage  int // tokens of the request, if they are told
}

// newModel starts a model server. The script must be safe for concurrent use.
func newModel(t *testing.T, script func(*modelCall) reply) *modelServer {
	t.Helper()
	m := &modelServer{script: script, held: make(chan *modelCall, 64), closed: make(chan struct{}), calls: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(func() {
		close(m.closed)
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

func (m *modelServer) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil || len(body.Messages) == 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	c := &modelCall{Auth: r.Header.Get("Authorization"), answer: make(chan reply, 1), gone: r.Context().Done()}
	for _, msg := range body.Messages {
		switch {
		case msg.Role == "user" && c.Task == "":
			c.Task = msg.Content
		case msg.Role == "assistant":
			c.Turn++
		}
		c.Last, c.Role = msg.Content, msg.Role
	}
	m.mu.Lock()
	m.calls[fmt.Sprintf("%s %d", c.Task, c.Turn)]++
	m.mu.Unlock()
	m.play(w, c)
}

func (m *modelServer) play(w http.ResponseWriter, c *modelCall) {
	answer := m.script(c)
	if answer.Status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Status)
		_, _ = io.WriteString(w, answer.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk(w, map[string]any{"role": "assistant", "content": ""}, nil)
	if answer.Begin != "" {
		chunk(w, map[string]any{"content": answer.Begin}, nil)
	}
	if answer.Hold {
		select {
		case m.held <- c:
		case <-m.closed:
			return
		}
		select {
		case answer = <-c.answer:
		case <-c.gone:
			return
		case <-m.closed:
			return
		}
	}
	finish := "stop"
	for text := answer.Text; text != ""; { // several pieces, as a model has it
		n := min(len(text), 7)
		chunk(w, map[string]any{"content": text[:n]}, nil)
		text = text[n:]
	}
	if answer.Tool != "" {
		finish = "tool_calls"
		args, ok := answer.Args.(string)
		if !ok {
			raw, _ := json.Marshal(answer.Args)
			args = string(raw)
		}
		chunk(w, map[string]any{"tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", c.Turn), "type": "function",
			"function": map[string]any{"name": answer.Tool, "arguments": args},
		}}}, nil)
	}
	chunk(w, map[string]any{}, finish)
	if answer.Usage > 0 {
		_, _ = fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"fake","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":0,"total_tokens":%d}}`+"\n\n", answer.Usage, answer.Usage)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func chunk(w http.ResponseWriter, delta map[string]any, finish any) {
	raw, _ := json.Marshal(map[string]any{
		"id": "c", "object": "chat.completion.chunk", "model": "fake",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
	_, _ = fmt.Fprintf(w, "data: %s\n\n", raw)
	w.(http.Flusher).Flush()
}

// next waits for a call that the script holds.
func (m *modelServer) next(t *testing.T) *modelCall {
	t.Helper()
	select {
	case c := <-m.held:
		return c
	case <-time.After(patience):
		t.Fatal("no model call comes")
		return nil
	}
}

// counts are the calls so far, by task and turn.
func (m *modelServer) counts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.calls)
}

// env makes a worker use the server.
func (m *modelServer) env(key string) []string {
	return []string{"OPENAI_API_KEY=" + key, "OPENAI_BASE_URL=" + m.URL + "/v1", "OPENAI_MODEL=fake"}
}

// turn is what the model says in a run of so many turns: it writes files, and then tells what the last tool said.
func turn(c *modelCall, turns int) reply {
	if c.Turn < turns-1 {
		return reply{Tool: "write_file", Args: map[string]string{
			"filePath": fmt.Sprintf("step-%d.txt", c.Turn), "content": strings.Repeat("x", c.Turn+1),
		}}
	}
	return reply{Text: "Done: " + c.Last}
}

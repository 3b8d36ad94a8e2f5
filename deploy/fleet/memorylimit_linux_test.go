package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

const (
	memoryLimit = 256 << 20 // of the worker in these tests
	// What a worker may take beyond its limit: the program's own pages and what the system counts for files that it maps, which the
	// limit does not see.
	memorySlack = 48 << 20
)

// largeModel is a model whose replies are large, or ask for what is. The first words of a task say which.
type largeModel struct {
	*httptest.Server
	site string // where http_get finds large pages
}

func newLargeModel(t *testing.T, site string) *largeModel {
	t.Helper()
	m := &largeModel{site: site}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

func (m *largeModel) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	task, turn := "", 0
	for _, msg := range body.Messages {
		switch {
		case msg.Role == "user" && task == "":
			_ = json.Unmarshal(msg.Content, &task)
		case msg.Role == "assistant":
			turn++
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk(w, map[string]any{"role": "assistant", "content": ""}, nil)
	finish := "stop"
	kind, rest, _ := strings.Cut(task, " ")
	switch {
	case kind == "get" && turn == 0: // get N PAGE
		count, page, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(count)
		var calls []any
		for i := range n {
			calls = append(calls, map[string]any{
				"index": i, "id": fmt.Sprintf("call_%d", i), "type": "function",
				"function": map[string]any{"name": "http_get", "arguments": fmt.Sprintf(`{"url":"%s/%s"}`, m.site, page)},
			})
		}
		chunk(w, map[string]any{"tool_calls": calls}, nil)
		finish = "tool_calls"
	case strings.Contains(task, "make the plan") && turn == 0:
		chunk(w, map[string]any{"content": largePlan()}, nil)
	case kind == "endless":
		piece := map[string]any{"content": strings.Repeat("word ", 4<<10)}
		for r.Context().Err() == nil {
			chunk(w, piece, nil)
		}
		return
	default:
		chunk(w, map[string]any{"content": "Done."}, nil)
	}
	chunk(w, map[string]any{}, finish)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// largePlan is one of 71 KB whose 99 calls each repeat the output of the first many times.
func largePlan() string {
	type object = map[string]any
	steps := []object{{"id": "read", "description": "Read.", "tool": "read_file", "args": object{"filePath": "big.txt"}}}
	for i := range 99 {
		steps = append(steps, object{
			"id": fmt.Sprintf("s%d", i), "description": "Write.", "tool": "write_file", "dependsOn": []string{"read"},
			"args": object{"filePath": fmt.Sprintf("out/%d.txt", i), "content": strings.Repeat("${steps.read.output} and some more text ", 15)},
		})
	}
	data, _ := json.Marshal(object{"steps": steps})
	return string(data)
}

// peak is the most memory that a process has had, in bytes.
func (p *process) peak() int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.Atoi(kib)
	if err != nil {
		p.t.Fatalf("VmHWM: %v", err)
	}
	return n << 10
}

// pages serves text of the size that the path names, in bytes.
func pages(t *testing.T) *httptest.Server {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.Copy(w, io.LimitReader(words{}, int64(n)))
	}))
	t.Cleanup(site.Close)
	return site
}

// words is text without end.
type words struct{}

func (words) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "some words and "[i%15]
	}
	return len(p), nil
}

// A worker stays within its memory limit whatever its runs ask for at once, every run ends, and others continue meanwhile.
func TestWorkerKeepsToItsMemoryLimit(t *testing.T) {
	t.Parallel()
	site := pages(t)
	grants := filepath.Join(t.TempDir(), "tools.yaml")
	host := strings.TrimPrefix(site.URL, "http://")
	if err := os.WriteFile(grants, fmt.Appendf(nil, `apiVersion: longshore.run/v1
kind: Tools
spec: {http: {hosts: [%q], plainHttp: [%q], maxBody: 16777216}}
`, host, host), 0o600); err != nil {
		t.Fatal(err)
	}
	model := newLargeModel(t, site.URL)
	w := open(t, 30*time.Second, nil)
	for _, def := range []messages.Definition{
		{Name: "reader", Tools: []string{"http_get"}},
		{Name: "planner", Planner: messages.PlannerPlan, Observe: "never", Tools: []string{"read_file", "write_file"}},
	} {
		if _, err := w.client.Agents().Apply(t.Context(), def, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("0123456789abcde ", 900<<10/16)
	file := strings.Repeat("0123456789abcde\n", 500<<10/16)
	reads := func(t *messages.Task) { t.Agent = "reader" }
	const unlimited = 1 << 40
	for name, c := range map[string]struct {
		limit, slots, runs int
		text               string
		change             func(*messages.Task)
		code               messages.Code // of the end; empty: completed
	}{
		"a reply of 256 calls": {memoryLimit, 64, 1, "get 256 1000000", reads, messages.CodeModelContextLength},
		"plans of 71 KB": {memoryLimit, 64, 6, "make the plan", func(t *messages.Task) {
			t.Agent, t.Files = "planner", []messages.TaskFile{{Path: "big.txt", Text: &file}}
		}, messages.CodeModelContextLength},
		"110 slots read 10 MB":                 {memoryLimit, 110, 110, "get 1 10000000", reads, ""},
		"110 slots read 10 MB without a limit": {unlimited, 110, 110, "get 1 10000000", reads, ""},
		"replies without end":                  {memoryLimit, 64, 32, "endless", nil, messages.CodeModelContextLength},
		"large conversations":                  {memoryLimit, 64, 24, "get 60 64000", reads, ""},
		"contexts of 900 KB":                   {memoryLimit, 64, 64, "context " + large, nil, ""},
		"calls that return 1 MB":               {memoryLimit, 64, 32, "get 10 1000000", reads, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := spawn(t, "worker", []string{
				"OPENAI_API_KEY=" + apiKey, "OPENAI_BASE_URL=" + model.URL + "/v1", "OPENAI_MODEL=fake", "NATS_URL=" + w.nats, "REDIS_URL=" + w.redis,
				"LONGSHORE_WORKER=bounded", "LONGSHORE_WORKSPACES=" + t.TempDir(), "LONGSHORE_TOOLS=" + grants,
				fmt.Sprintf("LONGSHORE_SLOTS=%d", c.slots), fmt.Sprintf("LONGSHORE_MEMORY_LIMIT=%d", c.limit),
			}, binary, "worker")
			p.line(`"message":"ready"`)
			before := p.peak()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			var runs []messages.Ref
			for range c.runs {
				var change []func(*messages.Task)
				if c.change != nil {
					change = append(change, c.change)
				}
				runs = append(runs, w.submit(c.text, change...))
			}
			other := w.submit("hello")
			began := time.Now()
			var all sync.WaitGroup
			for _, run := range append(runs, other) {
				all.Go(func() {
					r, err := w.client.Wait(ctx, run)
					switch {
					case err != nil:
						t.Errorf("%s: %v", run, err)
					case run == other || c.code == "":
						if r.Status != messages.StatusCompleted {
							t.Errorf("%s: %s, %v", run, r.Status, r.Error)
						}
					case r.Error == nil || r.Error.Code != c.code:
						t.Errorf("%s: %s, %v; want %s", run, r.Status, r.Error, c.code)
					}
				})
			}
			all.Wait()
			t.Logf("%d MiB at first, %d MiB at most, %s", before>>20, p.peak()>>20, time.Since(began).Round(time.Millisecond))
			if within := p.peak() <= memoryLimit+memorySlack; within != (c.limit == memoryLimit) {
				t.Errorf("the worker took %d MiB; its limit is %d and %d more", p.peak()>>20, c.limit>>20, memorySlack>>20)
			}
			p.kill()
		})
	}
}

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// echo is an OpenAI-compatible model that replies with the lines of its task, one after the other. "$last" in a line is
// the last message as a JSON string, the line "hold" is never answered, and "status 500" is an error.
type echo struct {
	*httptest.Server
	held   chan string // tasks that are held
	closed chan struct{}

	mu       sync.Mutex
	requests []echoRequest
}

type echoRequest struct {
	Path        string   `json:"-"`
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature"`
	MaxTokens   int      `json:"max_tokens"`
	Tools       []any    `json:"tools"`
	Messages    []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{held: make(chan string, 64), closed: make(chan struct{})}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(func() {
		close(e.closed)
		e.CloseClientConnections()
		e.Close()
	})
	return e
}

func (e *echo) serve(w http.ResponseWriter, r *http.Request) {
	var req echoRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	req.Path = r.URL.Path
	e.mu.Lock()
	e.requests = append(e.requests, req)
	e.mu.Unlock()
	task, turn := "", 0
	for _, m := range req.Messages {
		switch {
		case m.Role == "user" && task == "":
			task = m.Content
		case m.Role == "assistant":
			turn++
		}
	}
	lines := strings.Split(task, "\n")
	line := lines[min(turn, len(lines)-1)]
	switch {
	case line == "hold":
		e.held <- task
		select {
		case <-r.Context().Done():
		case <-e.closed:
		}
		return
	case line == "busy": // for longer than a worker holds a slot
		w.Header().Set("Retry-After", "600")
		http.Error(w, `{"error":{"message":"no capacity left"}}`, http.StatusServiceUnavailable)
		return
	case strings.HasPrefix(line, "status "):
		status := http.StatusInternalServerError
		_, _ = fmt.Sscanf(line, "status %d", &status)
		http.Error(w, `{"error":{"message":"refused"}}`, status)
		return
	}
	last, _ := json.Marshal(req.Messages[len(req.Messages)-1].Content)
	text := strings.ReplaceAll(line, "$last", string(last))
	w.Header().Set("Content-Type", "text/event-stream")
	delta, _ := json.Marshal(map[string]any{
		"id": "c", "object": "chat.completion.chunk", "model": req.Model,
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop"}},
	})
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", delta)
}

// next waits for a call that is held.
func (e *echo) next(t *testing.T) {
	t.Helper()
	select {
	case <-e.held:
	case <-time.After(patience):
		t.Fatal("no model call comes")
	}
}

// openLite starts a fleet on a model.
func openLite(t *testing.T, e *echo, timeout time.Duration, change func(*settings.Models)) *hall {
	t.Helper()
	models := settings.Models{OpenAIKey: "none", OpenAIURL: e.URL + "/v1", OpenAIModel: "plain"}
	if change != nil {
		change(&models)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5, ModelTimeout: time.Minute}, Models: models, Serving: settings.Serving{LiteTimeout: timeout}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &hall{t, dev, "http://" + dev.API}
}

// Replies of a model.
const (
	listFiles  = `{"type":"tool","name":"list_files","args":{}}`
	writeNote  = `{"type":"tool","name":"write_file","args":{"filePath":"notes.txt","content":"hi"}}`
	readNote   = `{"type":"tool","name":"read_file","args":{"filePath":"notes.txt"}}`
	tellLast   = `{"type":"final","content":$last}`
	noSuchTool = `{"type":"tool","name":"x","args":{}}`
)

func liteBody(steps bool, replies ...string) string {
	body, _ := json.Marshal(map[string]any{"input": strings.Join(replies, "\n"), "includeSteps": steps})
	return string(body)
}

// The checks of the design: a simple call, several steps, an unknown tool; by Go and by the real curl.
func TestLiteChecks(t *testing.T) {
	h := openLite(t, newEcho(t), 0, nil)
	for name, tc := range map[string]struct {
		replies []string
		status  int
		want    string // the body, or its begin
	}{
		"a simple tool call": {
			[]string{listFiles, `{"type":"final","content":"Looked."}`}, 200, `{"output":"Looked."}`,
		},
		"write and read": {
			[]string{writeNote, readNote, tellLast}, 200, `{"output":"Result of read_file:\nhi"}`,
		},
		"an unknown tool": {
			[]string{noSuchTool}, 500, `{"type":"about:blank","title":"Internal Server Error","status":500,` +
				`"detail":"Tool \"x\" not found. Allowed tools: list_files, read_file, write_file","code":"model_invalid_output","retryable":true,` +
				`"error":"Tool \"x\" not found. Allowed tools: list_files, read_file, write_file"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := liteBody(false, tc.replies...)
			resp := (&hall{t, h.dev, h.url}).send("POST", "/run-lite", body, "Content-Type", "application/json")
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != tc.status || strings.TrimSpace(string(got)) != tc.want {
				t.Errorf("%d %s %v", resp.StatusCode, got, err)
			}
			curl, err := exec.LookPath("curl")
			if err != nil {
				return // checked without it
			}
			out, err := exec.CommandContext(t.Context(), curl, "-sS", "-w", "%{http_code}", "-X", "POST", h.url+"/run-lite",
				"-H", "Content-Type: application/json", "-d", body).CombinedOutput()
			if want := tc.want + "\n" + strconv.Itoa(tc.status); err != nil || string(out) != want {
				t.Errorf("curl: %v: %s, want %s", err, out, want)
			}
		})
	}
}

// A call reads what the one before wrote; another tenant does not. Nothing of a long file is missing in the steps.
func TestLiteSharesAFolder(t *testing.T) {
	h := openLite(t, newEcho(t), 0, nil)
	var long strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&long, "%d,", i)
	}
	write, _ := json.Marshal(map[string]any{
		"type": "tool", "name": "write_file", "args": map[string]string{"filePath": "notes.txt", "content": long.String()},
	})
	var got map[string]any
	h.do("POST", "/run-lite", liteBody(false, string(write), `{"type":"final","content":"Done."}`), 200, &got)
	if diff := cmp.Diff(map[string]any{"output": "Done."}, got); diff != "" {
		t.Error(diff)
	}
	h.do("POST", "/run-lite", liteBody(true, string(write), readNote, listFiles, `{"type":"final","content":"Done."}`), 200, &got)
	want := map[string]any{"output": "Done.", "steps": []any{
		map[string]any{
			"type": "tool", "name": "write_file", "args": map[string]any{"filePath": "notes.txt", "content": long.String()},
			"result": fmt.Sprintf("Wrote %d bytes to notes.txt", long.Len()),
		},
		map[string]any{"type": "tool", "name": "read_file", "args": map[string]any{"filePath": "notes.txt"}, "result": long.String()},
		map[string]any{"type": "tool", "name": "list_files", "args": map[string]any{}, "result": "notes.txt"},
		map[string]any{"type": "final", "content": "Done."},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	h.do("POST", "/run-lite", liteBody(true, listFiles, `{"type":"final","content":""}`+" "), 500, nil)
	got = nil
	h.do("POST", "/run-lite", liteBody(true, listFiles, `{"type":"final","content":"None."}`), 200, &got, "Longshore-Tenant", "other")
	want = map[string]any{"output": "None.", "steps": []any{
		map[string]any{"type": "tool", "name": "list_files", "args": map[string]any{}, "result": ""},
		map[string]any{"type": "final", "content": "None."},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLiteErrors(t *testing.T) {
	h := openLite(t, newEcho(t), 0, nil)
	for name, tc := range map[string]struct {
		replies []string
		code    messages.Code
		text    string // the begin of it
	}{
		"too many steps":      {[]string{listFiles}, messages.CodeMaxSteps, "Exceeded max iterations"},
		"no JSON":             {[]string{"Sure!"}, messages.CodeModelInvalidOutput, "Invalid model output format"},
		"an unknown type":     {[]string{`{"type":"thought","content":"x"}`}, messages.CodeModelInvalidOutput, "Invalid model output format"},
		"text around it":      {[]string{"So: " + listFiles}, messages.CodeModelInvalidOutput, "Invalid model output format"},
		"an unknown tool":     {[]string{noSuchTool}, messages.CodeModelInvalidOutput, `Tool "x" not found. Allowed tools: list_files, read_file, write_file`},
		"a missing argument":  {[]string{`{"type":"tool","name":"read_file","args":{}}`}, messages.CodeModelInvalidOutput, `Invalid arguments for read_file: "filePath" is missing.`},
		"an invalid argument": {[]string{`{"type":"tool","name":"read_file","args":{"filePath":7}}`}, messages.CodeModelInvalidOutput, `Invalid arguments for read_file: "filePath" must be a string, not an integer.`},
		"a failing tool":      {[]string{`{"type":"tool","name":"read_file","args":{"filePath":"none.txt"}}`}, messages.CodeToolFailed, ""},
		"a way out":           {[]string{`{"type":"tool","name":"read_file","args":{"filePath":"../secret"}}`}, messages.CodeToolFailed, ""},
		"a refused key":       {[]string{"status 401"}, messages.CodeModelAuth, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var p struct {
				messages.Problem

				Error string
			}
			header := (&hall{t, h.dev, h.url}).do("POST", "/run-lite", liteBody(true, tc.replies...), 500, &p)
			if p.Code != tc.code || p.Status != 500 || p.Error != p.Detail || p.Error == "" || !strings.HasPrefix(p.Error, tc.text) {
				t.Errorf("%+v", p)
			}
			if ct := header.Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("content type %q", ct)
			}
		})
	}
}

func TestLiteHostileBodies(t *testing.T) {
	e := newEcho(t)
	h := openLite(t, e, 0, nil)
	for name, tc := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"nothing":            {``, 400, "body"},
		"not JSON":           {`{`, 400, "body"},
		"null":               {`null`, 400, "body"},
		"an array":           {`["input"]`, 400, "body"},
		"two bodies":         {`{"input":"x"}{"input":"y"}`, 400, "body"},
		"no input":           {`{}`, 400, "input"},
		"an empty one":       {`{"input":""}`, 400, "input"},
		"a blank one":        {`{"input":" \n"}`, 400, "input"},
		"no text":            {`{"input":7}`, 400, "input"},
		"blocks":             {`{"input":[{"text":"x"}]}`, 400, "input"},
		"null for input":     {`{"input":null}`, 400, "input"},
		"input twice":        {`{"input":"x","input":"y"}`, 400, "input"},
		"another case":       {`{"Input":"x"}`, 400, "Input"},
		"an unknown field":   {`{"input":"x","agent":"default"}`, 400, "agent"},
		"a word for a bool":  {`{"input":"x","includeSteps":"yes"}`, 400, "includeSteps"},
		"too long an input":  {`{"input":"` + strings.Repeat("x", 1<<20+1) + `"}`, 400, "input"},
		"too long a body":    {strings.Repeat("x", 5<<20), 413, ""},
		"a broken character": {"{\"input\":\"\xff\"}", 400, "input"},
	} {
		t.Run(name, func(t *testing.T) {
			var p struct {
				messages.Problem

				Error string
			}
			(&hall{t, h.dev, h.url}).do("POST", "/run-lite", tc.body, tc.status, &p)
			if p.Status != tc.status || p.Field != tc.field || p.Error == "" || p.Code != messages.CodeInvalidInput {
				t.Errorf("%+v", p)
			}
		})
	}
	h.do("POST", "/run-lite", `{"input":"x"}`, 415, nil, "Content-Type", "text/xml")
	h.do("POST", "/run-lite?steps=1", `{"input":"x"}`, 400, nil)
	h.do("POST", "/run-lite", `{"input":"x"}`, 400, nil, "Longshore-Tenant", "a.b")
	if len(e.requests) > 0 {
		t.Errorf("a model was asked: %v", e.requests)
	}
}

func TestLiteOnTheWire(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*settings.Models, *echo)
		model  string
		path   string
	}{
		"the default":     {func(*settings.Models, *echo) {}, "plain", "/v1/chat/completions"},
		"another model":   {func(m *settings.Models, _ *echo) { m.LiteModel = "small" }, "small", "/v1/chat/completions"},
		"another address": {func(m *settings.Models, e *echo) { m.LiteURL = e.URL + "/lite" }, "plain", "/lite/chat/completions"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEcho(t)
			h := openLite(t, e, 0, func(m *settings.Models) { tc.change(m, e) })
			h.do("POST", "/run-lite", liteBody(false, `{"type":"final","content":"Hello."}`), 200, nil)
			e.mu.Lock()
			defer e.mu.Unlock()
			r := e.requests[0]
			if r.Temperature == nil || *r.Temperature != 0 || r.MaxTokens != 600 || r.Model != tc.model || r.Path != tc.path || r.Tools != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// waitEnd waits until the only run has ended, and returns its result.
func (h *hall) waitEnd() messages.AgentResult {
	h.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var list struct{ Runs []control.RunSummary }
		h.do("GET", "/v1/tasks?agent=run-lite", "", 200, &list)
		if len(list.Runs) == 1 && list.Runs[0].Status.Ended() {
			var r messages.AgentResult
			h.do("GET", "/v1/tasks/"+list.Runs[0].ID+"/result", "", 200, &r)
			return r
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.t.Fatal("the run does not end")
	return messages.AgentResult{}
}

func TestLiteTimeoutCancels(t *testing.T) {
	h := openLite(t, newEcho(t), 300*time.Millisecond, nil)
	var p struct {
		messages.Problem

		Error string
	}
	h.do("POST", "/run-lite", liteBody(false, "hold"), 500, &p)
	if p.Code != messages.CodeDeadline || p.Error != "no answer within 300ms: the run was cancelled" {
		t.Errorf("%+v", p)
	}
	if r := h.waitEnd(); r.Status != messages.StatusCancelled || !strings.Contains(r.Error.Message, "no answer within 300ms") {
		t.Errorf("%+v", r)
	}
}

// A run that parks for its model is answered with the cause at once, and not with a timeout.
func TestLiteSaysWhyItsModelDoesNotAnswer(t *testing.T) {
	h := openLite(t, newEcho(t), 0, nil)
	var p struct {
		messages.Problem

		Error string
	}
	h.do("POST", "/run-lite", liteBody(false, "busy"), 500, &p)
	if p.Code != messages.CodeModelOverloaded || !p.Retryable || !strings.Contains(p.Error, "no capacity left") || !strings.Contains(p.Error, "may be called again at") {
		t.Errorf("%+v", p)
	}
	if r := h.waitEnd(); r.Status != messages.StatusCancelled || !strings.Contains(r.Error.Message, "no capacity left") {
		t.Errorf("%+v", r)
	}
}

// A run that waits for its model says everywhere what went wrong, with which model, and when it is called again.
func TestWaitForTheModelNamesItsCause(t *testing.T) {
	h := openLite(t, newEcho(t), 0, nil)
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: "stuck"}
	h.do("POST", "/v1/tasks", `{"id":"stuck","input":"busy"}`, 202, nil)
	var waits messages.RunWaiting
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	client, err := h.dev.Client(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range client.Watch(ctx, run) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == messages.EventRunWaiting {
			if err := json.Unmarshal(e.Data, &waits); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	names := func(where string, c *messages.Cause, until *time.Time) {
		t.Helper()
		if c == nil || c.Code != messages.CodeModelOverloaded || !strings.Contains(c.Message, "no capacity left") || c.Provider != "openai/plain" || c.Attempt != 1 || until == nil {
			t.Errorf("%s: %+v until %v", where, c, until)
		}
	}
	names("run_waiting", waits.Cause, waits.Until)
	var status control.RunStatus
	h.do("GET", "/v1/tasks/stuck", "", 200, &status)
	names("status", status.Cause, status.Until)
	var why control.Why
	h.do("GET", "/v1/tasks/stuck/why", "", 200, &why)
	names("why", why.Cause, why.Until)
	if !strings.Contains(why.Text, "; attempt 1 failed: ") || !strings.Contains(why.Text, "the next attempt is at") {
		t.Error(why.Text)
	}
	var list struct{ Runs []control.RunSummary }
	h.do("GET", "/v1/tasks?code=model_overloaded", "", 200, &list)
	if len(list.Runs) != 1 || list.Runs[0].Status != messages.StatusWaiting || !strings.Contains(list.Runs[0].Error, "no capacity left") {
		t.Errorf("%+v", list.Runs)
	}
}

func TestLiteCallerGoesAway(t *testing.T) {
	e := newEcho(t)
	h := openLite(t, e, 0, nil)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/run-lite", strings.NewReader(liteBody(false, "hold")))
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Error("it was answered")
		}
	}()
	e.next(t)
	leave()
	<-gone
	if r := h.waitEnd(); r.Status != messages.StatusCancelled || !strings.Contains(r.Error.Message, "went away") {
		t.Errorf("%+v", r)
	}
}

// One call too many is refused at once, the others wait for their turn; another tenant has a line of its own.
func TestLiteQueueIsBounded(t *testing.T) {
	e := newEcho(t)
	h := openLite(t, e, 0, nil)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	const most = 64
	statuses := make(chan int, most+1)
	var calls sync.WaitGroup
	defer calls.Wait()
	defer leave()
	for range most + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/run-lite", strings.NewReader(liteBody(false, "hold")))
		if err != nil {
			t.Fatal(err)
		}
		calls.Go(func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
				statuses <- resp.StatusCode
			}
		})
	}
	e.next(t)
	select {
	case status := <-statuses:
		if status != http.StatusTooManyRequests {
			t.Errorf("status %d", status)
		}
	case <-time.After(patience):
		t.Error("no call is refused")
	}
	h.do("POST", "/run-lite", liteBody(false, `{"type":"final","content":"Hello."}`), 200, nil, "Longshore-Tenant", "other")
	if n := len(e.held); n != 0 {
		t.Errorf("%d more calls run in parallel with the first", n)
	}
}

// A run that names the workspace has it alone, whichever way the task came; a run that waits for it can be cancelled.
func TestNamedWorkspaceIsForOneRun(t *testing.T) {
	e := newEcho(t)
	h := openLite(t, e, 0, nil)
	task := func(id string, replies ...string) string {
		body, _ := json.Marshal(map[string]any{
			"id": id, "agent": "run-lite", "workspace": "sandbox-lite", "input": strings.Join(replies, "\n"),
		})
		return string(body)
	}
	h.do("POST", "/v1/tasks", task("first", "hold"), 202, nil)
	e.next(t)
	h.do("POST", "/v1/tasks", task("second", "hold"), 202, nil)
	h.until("second", messages.EventRunWaiting)
	h.do("POST", "/v1/tasks", task("third", `{"type":"final","content":"Hello."}`), 202, nil)
	h.until("third", messages.EventRunWaiting)
	var why control.Why
	if h.do("GET", "/v1/tasks/third/why", "", 200, &why); why.Text != "It waits for workspace sandbox-lite, which run first has; 1 run waits before it." || why.Turn != "first" {
		t.Errorf("why: %+v", why)
	}
	var held control.WorkspaceStatus
	if h.do("GET", "/v1/workspaces/sandbox-lite", "", 200, &held); held.Holder != "first" || !slices.Equal(held.Waiting, []string{"second", "third"}) {
		t.Errorf("the workspace is %+v", held)
	}
	h.do("DELETE", "/v1/workspaces/sandbox-lite", "", 409, nil)
	h.do("POST", "/v1/tasks/second/cancel", "", 200, nil)
	h.until("second", messages.EventRunFinished)
	if len(e.held) > 0 {
		t.Error("the second run did not wait")
	}
	h.do("GET", "/v1/tasks/third/result", "", 409, nil)
	h.do("POST", "/v1/tasks/first/cancel", "", 200, nil)
	h.until("third", messages.EventRunFinished)
	var r messages.AgentResult
	h.do("GET", "/v1/tasks/third/result", "", 200, &r)
	if r.Result != "Hello." {
		t.Errorf("%+v", r)
	}
}

// What runs in a workspace leave is listed for their tenant alone, and removed.
func TestWorkspaces(t *testing.T) {
	h := openLite(t, newEcho(t), 0, nil)
	var list control.WorkspaceList
	if h.do("GET", "/v1/workspaces", "", 200, &list); list.Workspaces == nil || len(list.Workspaces) != 0 {
		t.Errorf("no workspaces are %+v", list)
	}
	h.do("GET", "/v1/workspaces/sandbox-lite", "", 404, nil)
	h.do("POST", "/run-lite", liteBody(false, writeNote, `{"type":"final","content":"Done."}`), 200, nil)
	var one control.WorkspaceStatus
	h.do("GET", "/v1/workspaces", "", 200, &list)
	h.do("GET", "/v1/workspaces/sandbox-lite", "", 200, &one)
	if len(list.Workspaces) != 1 || list.Workspaces[0].Files != 1 || list.Workspaces[0].Bytes != 2 || one.Step != 1 || one.Run == "" || one.Updated.IsZero() || one.Holder != "" {
		t.Errorf("the list is %+v, the workspace %+v", list, one)
	}
	h.do("GET", "/v1/workspaces/sandbox-lite", "", 404, nil, "Longshore-Tenant", "other")
	h.do("DELETE", "/v1/workspaces/sandbox-lite", "", 404, nil, "Longshore-Tenant", "other")
	if h.do("DELETE", "/v1/workspaces/sandbox-lite", "", 200, &one); one.Files != 1 {
		t.Errorf("it was %+v", one)
	}
	h.do("GET", "/v1/workspaces/sandbox-lite", "", 404, nil)
	h.do("DELETE", "/v1/workspaces/sandbox-lite", "", 404, nil)
	h.do("GET", "/v1/workspaces/%3E", "", 400, nil)
	if h.do("GET", "/v1/workspaces", "", 200, &list); len(list.Workspaces) != 0 {
		t.Errorf("a removed one is listed: %+v", list)
	}
}

// The script of the example plays the model.
func TestLiteExample(t *testing.T) {
	h := openLite(t, newEcho(t), 0, func(m *settings.Models) {
		*m = settings.Models{Script: "../../deploy/examples/lite.yaml"}
	})
	h.do("POST", "/run-lite", `{"input":"Write hi into notes.txt, then read it."}`, 200, nil)
	var got struct{ Steps []struct{ Result string } }
	h.do("POST", "/run-lite", `{"input":"list the files","includeSteps":true}`, 200, &got)
	if len(got.Steps) != 2 || got.Steps[0].Result != "notes.txt" {
		t.Errorf("%+v", got)
	}
	h.do("POST", "/run-lite", `{"input":"call an unknown tool"}`, 500, nil)
}

// A dispatcher that stops lets no caller wait.
func TestLiteWhenTheDispatcherStops(t *testing.T) {
	e := newEcho(t)
	h := openLite(t, e, 0, nil)
	stopped := make(chan error, 1)
	go func() {
		select {
		case <-e.held:
		case <-e.closed:
		}
		stopped <- h.dev.Stop()
	}()
	var p struct {
		messages.Problem

		Error string
	}
	h.do("POST", "/run-lite", liteBody(false, "hold"), 503, &p)
	if !p.Retryable || p.Error == "" {
		t.Errorf("%+v", p)
	}
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it does not stop")
	}
}

// How often a call is made again is a setting.
func TestModelRetriesAreASetting(t *testing.T) {
	e := newEcho(t)
	h := openLite(t, e, 0, func(m *settings.Models) { m.ModelRetries = new(0) })
	var p messages.Problem
	h.do("POST", "/run-lite", liteBody(false, "status 500"), 500, &p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Code != messages.CodeModelOverloaded || len(e.requests) != 1 {
		t.Errorf("%+v after %d calls", p, len(e.requests))
	}
}

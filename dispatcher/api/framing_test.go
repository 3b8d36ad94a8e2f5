package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// misframed is a body that does not come as its headers say.
type misframed struct {
	headers, body string
	cut           bool // the client sends nothing more; else it keeps the connection open, and keeps waiting
	want          int  // where the body is read; 0: any refusal, also one by the server itself
}

// misframedBodies are around a body that would be taken if it came whole.
func misframedBodies(body string) map[string]misframed {
	const chunked = "Transfer-Encoding: chunked\r\n"
	n := len(body)
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	whole := fmt.Sprintf("%x\r\n%s\r\n", n, body)
	return map[string]misframed{
		"a chunk size that is no number":         {chunked, whole + "zz\r\n", false, 400},
		"a chunk size that is negative":          {chunked, "-1\r\n" + body, false, 400},
		"a chunk size without digits":            {chunked, "\r\n" + body + "\r\n0\r\n\r\n", false, 400},
		"a chunk size beyond all numbers":        {chunked, "fffffffffffffffff\r\n" + body, false, 400},
		"a chunk size on a line without end":     {chunked, strings.Repeat("0", 10_000), false, 400},
		"a chunk that is longer than said":       {chunked, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n-1, body), false, 400},
		"no CRLF after a chunk":                  {chunked, fmt.Sprintf("%x\r\n%s0\r\n\r\n", n, body), false, 400},
		"no CRLF after the size":                 {chunked, fmt.Sprintf("%x%s\r\n0\r\n\r\n", n, body), false, 400},
		"a chunk that is cut":                    {chunked, fmt.Sprintf("%x\r\n%s", n, body[:n-1]), true, 400},
		"no chunk at the end, and the end":       {chunked, whole, true, 400},
		"half of the last chunk":                 {chunked, whole + "0\r", true, 400},
		"no chunk at all":                        {chunked, "", true, 400},
		"a chunk that stalls":                    {chunked, fmt.Sprintf("%x\r\n%s", n, body[:n/2]), false, 408},
		"the last chunk stalls":                  {chunked, whole, false, 408},
		"the last chunk stalls before its CRLF":  {chunked, whole + "0\r\n", false, 400},
		"a body that is cut":                     {length(n), body[:n-1], true, 400},
		"a body that is cut at once":             {length(n), "", true, 400},
		"a body that stalls":                     {length(n), body[:n/2], false, 408},
		"a body that is shorter than said":       {length(n + 1), body, false, 408},
		"the same, and cut":                      {length(n + 1), body, true, 400},
		"a body that is longer than said":        {length(n - 1), body, true, 400},
		"a length that is negative":              {length(-1), body, false, 0},
		"a length that is no number":             {"Content-Length: x\r\n", body, false, 0},
		"two lengths":                            {length(n) + length(n-1), body, false, 0},
		"a length beyond all numbers":            {"Content-Length: 99999999999999999999\r\n", body, false, 0},
		"a length beyond what is taken, and cut": {"Content-Length: 9223372036854775807\r\n", body, true, 0},
	}
}

// Bodies that do not come as their headers say are the client's mistake, for every request: a refusal that is not retryable, in
// time, and nothing is done with what came.
func TestMisframedBodies(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks", `{"id":"waits","input":"wait"}`, 202, nil)
	h.until("waits", messages.EventStepStart)
	addr := h.attacked(api.Config{})
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(64) // most of them wait
	var struck, said atomic.Int64
	for target, body := range targets(t, h) {
		for name, m := range misframedBodies(body) {
			if name == "a body that is longer than said" && (strings.HasPrefix(target, "GET") || strings.HasPrefix(target, "POST /v1/batches") ||
				strings.HasPrefix(target, "PUT /v1/files/")) {
				continue // none is asked for, a report names the line that is cut, or the request is given up because its client has gone
			}
			group.Go(func() error {
				problem, err := misframe(ctx, addr, target, m)
				if err != nil {
					t.Errorf("%s: %s: %v", target, name, err)
				}
				struck.Add(1)
				if problem {
					said.Add(1)
				}
				return nil
			})
		}
	}
	_ = group.Wait()
	if struck.Load() < 500 || said.Load() < struck.Load()*3/4 {
		t.Errorf("%d requests, of which %d were answered with a problem", struck.Load(), said.Load())
	}
	t.Logf("%d requests, of which %d were answered with a problem", struck.Load(), said.Load())
	var list struct{ Runs []control.RunSummary }
	if h.do("GET", "/v1/tasks", "", 200, &list); len(list.Runs) != 1 || list.Runs[0].ID != "waits" || list.Runs[0].Status.Ended() {
		t.Errorf("the runs are %+v", list.Runs)
	}
	for path, of := range map[string]string{"/v1/schedules": "schedules", "/v1/prompts": "prompts"} {
		var stored map[string]json.RawMessage
		if h.do("GET", path, "", 200, &stored); string(stored[of]) != "[]" {
			t.Errorf("%s: %s", path, stored[of])
		}
	}
}

// targets are all requests that read a body, with one each: those of the OpenAPI document, and those that take none but must read
// it before what they wait for.
func targets(t *testing.T, h *hall) map[string]string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Body any `json:"requestBody"`
		}
	}
	h.do("GET", "/openapi.json", "", 200, &document)
	const body = `{"input":"wait"}`
	all := map[string]string{
		"POST /v1/tasks?wait=60s": body, "POST /run-lite?stream=true": body, "GET /v1/tasks/waits/events": body,
		"GET /v1/tasks/waits/events?format=ag-ui": body, "GET /v1/tasks/waits/events?format=karl": body,
		"GET /v1/tasks/waits/logs?follow=true": body,
		"POST /v1/batches?dryRun=true":         `{"custom_id":"1","input":"wait"}` + "\n",
	}
	for path, methods := range document.Paths {
		for method, op := range methods {
			if op.Body == nil {
				continue
			}
			path = strings.NewReplacer("{id}", "waits", "{seq}", "1", "{kind}", "tenant", "{revision}", "1", "{sha256}", strings.Repeat("0", 64)).Replace(path)
			for strings.Contains(path, "{") {
				from := strings.IndexByte(path, '{')
				path = path[:from] + "waits" + path[from+strings.IndexByte(path[from:], '}')+1:]
			}
			all[strings.ToUpper(method)+" "+path] = body
		}
	}
	for target, body := range map[string]string{
		"POST /v1/batches": `{"custom_id":"1","input":"wait"}` + "\n", "POST /v1/tasks/waits/steer": `{"message":"hurry"}`,
		"POST /v1/tasks/waits/cancel": `{"reason":"late"}`, "POST /v1/tasks/waits/feedback": `{"score":1}`,
	} {
		if all[target] == "" {
			t.Fatalf("the document has no %s", target)
		}
		all[target] = body
	}
	delete(all, "POST /v1/tasks:cancel") // it means no task
	all["POST /v1/tasks:cancel?agent=default"] = `{"reason":"late"}`
	return all
}

// misframe makes a request, reads its answer until the connection is closed, and reports whether it was a problem.
func misframe(ctx context.Context, addr, target string, m misframed) (problem bool, _ error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false, fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, target+" HTTP/1.1\r\nHost: localhost\r\n"+m.headers+"\r\n"+m.body); err != nil {
		return false, fmt.Errorf("send: %w", err)
	}
	if m.cut {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return false, fmt.Errorf("cut: %w", err)
		}
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return false, fmt.Errorf("no answer: %w", err)
	}
	defer func() { // the connection first, for a stream does not end
		_ = conn.Close()
		_ = resp.Body.Close()
	}()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var p struct {
		Detail    string `json:"detail"`
		Retryable *bool  `json:"retryable"`
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("%s: read the answer: %w", resp.Status, err)
	case resp.StatusCode < 400 || resp.StatusCode >= 500:
		return false, fmt.Errorf("%s: %.300s", resp.Status, said)
	case resp.Header.Get("Content-Type") != "application/problem+json" && m.want == 0:
	case resp.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(said, &p) != nil:
		return false, fmt.Errorf("%s is no problem: %.300s", resp.Status, said)
	case p.Retryable == nil || *p.Retryable || p.Detail == "":
		return false, fmt.Errorf("%s is not said to be the client's mistake: %s", resp.Status, said)
	case m.want != 0 && resp.StatusCode != m.want && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusForbidden &&
		(resp.StatusCode != http.StatusLengthRequired || !strings.HasPrefix(m.headers, "Transfer-Encoding")): // a content must come with its length
		return false, fmt.Errorf("%s, want %d: %s", resp.Status, m.want, said)
	default:
		problem = true
	}
	if _, err := io.Copy(io.Discard, in); isTimeout(err) {
		return problem, fmt.Errorf("%s, and the connection stays open", resp.Status)
	}
	return problem, nil
}

package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
)

// hostileNames stand where a path or a parameter wants a name, a number, a time.
func hostileNames() []string {
	return []string{
		"%3E", "%2A", "a.b", "..%2F..%2Fetc%2Fpasswd", "%00", "%FF%FE", "%20", strings.Repeat("a", 5000), "%E2%80%AE", "-1",
		"99999999999999999999", "0x10", "1e9", "NaN", "%27%3B--", "null", "%0D%0AX%3A1", "%F0%9F%92%A9",
	}
}

// hostileBodies are sent to everything that takes a body.
func hostileBodies() []string {
	deep := strings.Repeat(`{"a":`, 50_000)
	bodies := []string{
		"", " ", "null", "0", "-0", "1e400", `"x"`, "[]", "[[]]", "{", "}", `{"`, "{}{}", `{"":""}`, "\x00", "\xff\xfe", "\ufeff{}", "<xml/>",
		"%PDF-1.4", deep, strings.Repeat("[", 100_000), `{"input":` + strings.Repeat(`"`, 3), `{"input":"\ud800"}`, `{"input":"` + "\xff" + `"}`,
		`{"input":"a","input":"b"}`, `{"INPUT":"a"}`, `{"input":"x","webhook":{"url":"http://169.254.169.254/"}}`, "{\"input\":\"x\"}\n{\"input\":",
		`{"input":"x","deadline":"0000-00-00T00:00:00Z"}`, `{"input":"x","limits":{"maxSteps":99999999999999999999}}`,
		`{"input":"` + strings.Repeat("x", 1<<20) + `"}`, "a=b&c=d", strings.Repeat("\n", 10_000), strings.Repeat("{}\n", 1000),
	}
	for _, field := range []string{
		"input", "id", "tenant", "agent", "labels", "limits", "plan", "context", "priority", "reason", "by", "name", "text", "message",
		"score", "kind", "spec", "metadata", "custom_id", "url", "call", "hash", "answer", "from", "step", "task", "cron", "every",
	} {
		for _, value := range []string{`null`, `-1`, `{}`, `[1,"a",{}]`, `""`, `"*.>"`, `true`} {
			bodies = append(bodies, `{"`+field+`":`+value+`}`)
		}
	}
	return bodies
}

type shot struct{ method, path, body, header string }

// shots are hostile requests to all that the OpenAPI document names.
func shots(t *testing.T, h *hall) []shot {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
			Body       any `json:"requestBody"`
		}
	}
	h.do("GET", "/openapi.json", "", 200, &document)
	fill := func(path, with string) string {
		for {
			from := strings.IndexByte(path, '{')
			if from < 0 {
				return path
			}
			path = path[:from] + with + path[from+strings.IndexByte(path[from:], '}')+1:]
		}
	}
	var all []shot
	for path, methods := range document.Paths {
		if path == "/run-lite" { // a 500 is one of its answers; it has hostile bodies of its own
			continue
		}
		for method, op := range methods {
			method = strings.ToUpper(method)
			for _, name := range hostileNames() {
				if strings.Contains(path, "{") {
					all = append(all, shot{method: method, path: fill(path, name)})
				}
				for _, p := range op.Parameters {
					if p.In == "query" {
						all = append(all, shot{method: method, path: fill(path, "unknown") + "?" + p.Name + "=" + name})
					}
				}
			}
			all = append(all,
				shot{method: method, path: fill(path, "unknown"), header: "a.>"},
				shot{method: method, path: fill(path, "unknown"), header: strings.Repeat("t", 10_000)},
				shot{method: method, path: fill(path, "unknown") + "?unknown=1&unknown=2&=%00"},
				shot{method: "BREW", path: fill(path, "unknown")})
			if op.Body == nil {
				continue
			}
			for _, body := range hostileBodies() {
				all = append(all, shot{method: method, path: fill(path, "unknown"), body: body})
			}
		}
	}
	slices.SortFunc(all, func(a, b shot) int {
		return strings.Compare(a.method+a.path+a.body+a.header, b.method+b.path+b.body+b.header)
	})
	return all
}

// Whatever comes from outside, the answer blames the sender, in words that programs can read.
func TestHostileRequestsAreRefused(t *testing.T) {
	h := open(t)
	all := shots(t, h)
	if len(all) < 1000 {
		t.Fatalf("%d requests are too few", len(all))
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	group := new(errgroup.Group)
	group.SetLimit(8)
	var refused atomic.Int64
	for _, s := range all {
		group.Go(func() error {
			if fire(t, client, h.url, s) >= 400 {
				refused.Add(1)
			}
			return nil
		})
	}
	_ = group.Wait()
	if refused.Load() < 1000 {
		t.Errorf("%d of %d were refused: they are not hostile", refused.Load(), len(all))
	}
	h.do("POST", "/v1/tasks?wait=30s", `{"input":"hi"}`, 200, nil) // it still works
	t.Logf("%d requests, %d refused", len(all), refused.Load())
}

// fire makes a request and returns the status of its answer; 0: there was none.
func fire(t *testing.T, client *http.Client, base string, s shot) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	path, rawQuery, _ := strings.Cut(s.path, "?")
	req, err := http.NewRequestWithContext(ctx, s.method, base, strings.NewReader(s.body))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.URL.RawPath, req.URL.RawQuery = path, rawQuery
	if req.URL.Path, err = url.PathUnescape(path); err != nil {
		t.Error(err)
		return 0
	}
	if s.header != "" {
		req.Header.Set("Longshore-Tenant", s.header)
	}
	begun := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		t.Errorf("%s %s %.80q: %v after %v", s.method, s.path, s.body, err, time.Since(begun))
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 400 { // it may be a stream
		return resp.StatusCode
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s %s %.80q: %v", s.method, s.path, s.body, err)
		return resp.StatusCode
	}
	if resp.StatusCode >= 500 {
		t.Errorf("%s %.200s %.80q: %s %s", s.method, s.path, s.body, resp.Status, body)
		return resp.StatusCode
	}
	if kind := resp.Header.Get("Content-Type"); kind == "application/problem+json" {
		var p messages.Problem
		if err := json.Unmarshal(body, &p); err != nil || p.Code == "" || p.Detail == "" {
			t.Errorf("%s %.200s %.80q: %s %s", s.method, s.path, s.body, resp.Status, body)
		}
	} else if s.method != "BREW" && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%s %.200s %.80q: %s of type %q: %.200s", s.method, s.path, s.body, resp.Status, kind, body)
	}
	return resp.StatusCode
}

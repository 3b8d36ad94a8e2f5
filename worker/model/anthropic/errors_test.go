package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

func fails(t *testing.T, p model.Provider) *model.Error {
	t.Helper()
	o := call(t.Context(), p, hello())
	e, ok := errors.AsType[*model.Error](o.Err)
	if !ok || o.Reply != nil {
		t.Fatalf("got reply %+v and error %v, want an error", o.Reply, o.Err)
	}
	return e
}

// said by the API in its own form.
func fault(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_body"}`
}

func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		class  model.Class
		detail string // a part
		hint   string // a part
	}{
		"bad key":                     {401, fault("authentication_error", "invalid x-api-key"), model.Auth, "invalid x-api-key", "ANTHROPIC_API_KEY"},
		"not allowed":                 {403, fault("permission_error", "no access to this model"), model.Auth, "no access", "workspace"},
		"wrong model":                 {404, fault("not_found_error", "model: claude-9"), model.InvalidRequest, "claude-9", "ANTHROPIC_MODEL"},
		"dead path":                   {404, "404 page not found", model.InvalidRequest, "404 page", "ANTHROPIC_BASE_URL"},
		"too large":                   {413, fault("request_too_large", "Request exceeds the maximum size"), model.ContextLength, "maximum size", "larger context"},
		"too large for a gateway":     {413, "<html><title>413</title>", model.ContextLength, "413", "larger context"},
		"rate limit":                  {429, fault("rate_limit_error", "This request would exceed your organization's rate limit"), model.RateLimited, "rate limit", "fewer"},
		"no credit":                   {400, fault("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), model.Quota, "credit balance", "billing"},
		"spending limit":              {400, fault("invalid_request_error", "You have reached your specified API usage limits."), model.Quota, "usage limits", "billing"},
		"billing":                     {402, fault("billing_error", "pay"), model.Quota, "pay", "billing"},
		"full context":                {400, fault("invalid_request_error", "prompt is too long: 212013 tokens > 200000 maximum"), model.ContextLength, "212013", "larger context"},
		"full context with the reply": {400, fault("invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"), model.ContextLength, "context limit", "larger context"},
		"filter":                      {400, fault("invalid_request_error", "Output blocked by content filtering policy"), model.ContentFilter, "blocked", "filter"},
		"bad request":                 {400, fault("invalid_request_error", "messages: text content blocks must be non-empty"), model.InvalidRequest, "non-empty", "refuses the request"},
		"server error":                {500, fault("api_error", "Internal server error"), model.Overloaded, "Internal", "later"},
		"overloaded":                  {529, fault("overloaded_error", "Overloaded"), model.Overloaded, "Overloaded", "later"},
		"timeout":                     {504, fault("timeout_error", "took too long"), model.Timeout, "too long", "try again"},
		"gateway timeout":             {504, "upstream request timeout", model.Timeout, "upstream", "try again"},
		"gateway's page":              {502, "<html><title>502 Bad Gateway</title>", model.Overloaded, `"502 Bad Gateway"`, "later"},
		"web page":                    {404, "<!DOCTYPE html><title>Not here</title>", model.InvalidRequest, `"Not here"`, "web page"},
		"string":                      {400, `{"error":"bad things"}`, model.InvalidRequest, "bad things", "refuses"},
		"message alone":               {400, `{"message":"Input is too long for requested model."}`, model.ContextLength, "Input is too long", "larger context"},
		"detail":                      {422, `{"detail":[{"loc":["body","tools"],"msg":"field required"}]}`, model.InvalidRequest, "field required", "refuses"},
		"list":                        {400, `[{"error":{"code":400,"message":"in a list"}}]`, model.InvalidRequest, "in a list", "refuses"},
		"another's form":              {401, `{"error":{"message":"No auth credentials found","code":401}}`, model.Auth, "No auth", "ANTHROPIC_API_KEY"},
		"empty":                       {500, "", model.Overloaded, "says nothing", "later"},
		"deep":                        {400, strings.Repeat(`{"error":`, 5000) + `"x"` + strings.Repeat(`}`, 5000), model.InvalidRequest, "", "refuses"},
		"long":                        {400, `{"error":"` + strings.Repeat("é", 100_000), model.InvalidRequest, "more bytes", "refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			e := fails(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Request-Id", "req-7")
				w.Header().Set("X-Should-Retry", "true") // we do not
				w.WriteHeader(tt.status)
				write(w, tt.body, 0)
			}))
			if e.Class != tt.class || e.Status != tt.status || e.RequestID != "req-7" {
				t.Errorf("class %q, status %d, request %q: %v", e.Class, e.Status, e.RequestID, e)
			}
			if e.Detail == "" || !strings.Contains(e.Detail, tt.detail) || len(e.Detail) > 600 {
				t.Errorf("detail %q, want %q in it", e.Detail, tt.detail)
			}
			if !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("hint %q, want %q in it", e.Hint, tt.hint)
			}
		})
	}
}

func TestTheBodyTellsTheRequest(t *testing.T) {
	e := fails(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		write(w, fault("invalid_request_error", "x"), 0)
	}))
	if e.RequestID != "req_body" {
		t.Errorf("request %q", e.RequestID)
	}
}

func TestKeyNeverShows(t *testing.T) {
	other := "sk-ant-" + strings.Repeat("other", 5)
	echo := "your key " + key + ", its start " + key[:12] + ", Bearer abc.def and " + other
	for name, tt := range map[string]struct {
		status int
		body   string
	}{
		"error":           {401, fault("authentication_error", echo)},
		"type":            {401, fault(key, "")},
		"id":              {401, `{"error":{"message":"x"},"request_id":"` + key + `"}`},
		"mid-stream":      {200, events(start, fault("api_error", echo))},
		"a strange delta": {200, events(start, `{"type":"content_block_delta","index":3,"delta":{"type":"`+key+`"}}`)},
		"a strange event": {200, events(start) + "event: " + key + "\ndata: {]\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := fails(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Api-Key") != key {
					t.Errorf("x-api-key %q", r.Header.Get("X-Api-Key"))
				}
				if name != "id" {
					w.Header().Set("Request-Id", "id-"+key)
				}
				w.WriteHeader(tt.status)
				write(w, tt.body, 0)
			}))
			for _, secret := range []string{key[:8], "abc.def", other} {
				if s := e.Error() + e.RequestID; strings.Contains(s, secret) {
					t.Errorf("%q is in %q", secret, s)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		field  string
		config anthropic.Config
	}{
		"no key":              {"apiKey", anthropic.Config{}},
		"a space in the key":  {"apiKey", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a b"}}},
		"a line in the key":   {"apiKey", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a\nb"}}},
		"a key too many":      {"apiKey", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", NoAuth: true}}},
		"no scheme":           {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "localhost:8080"}}},
		"a strange scheme":    {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "ftp://host"}}},
		"no host":             {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://"}}},
		"a password":          {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://user:secret@host"}}},
		"a password, no URL":  {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://user:secret@host/\x7f"}}},
		"a query":             {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://host?key=secret"}}},
		"the whole path":      {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://host/v1/messages/"}}},
		"half the path":       {"baseURL", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://host/v1"}}},
		"tokens":              {"maxTokens", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, MaxTokens: -1}},
		"too little thinking": {"thinking", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Thinking: 1000}},
		"negative thinking":   {"thinking", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Thinking: -1}},
		"too much thinking":   {"thinking", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Thinking: 4000, MaxTokens: 4000}},
		"capabilities":        {"capabilities", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Capabilities: &model.Capabilities{MaxOutput: -1}}},
		"idle timeout":        {"idleTimeout", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", IdleTimeout: -1}}},
		"header timeout":      {"startTimeout", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", StartTimeout: -1}}},
		"line":                {"maxLine", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", MaxLine: -1}}},
		"reply":               {"maxReply", anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: "a", MaxReply: -1}}},
	} {
		p, err := anthropic.New(tt.config)
		f, ok := errors.AsType[*messages.FieldError](err)
		if p != nil || !ok || f.Field != tt.field || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCapabilities(t *testing.T) {
	p := serve(t, nil)
	if c := p.Capabilities(); !c.Tools || !c.Streaming || !c.JSONSchema || c.JSONMode || !c.Images || !c.Reasoning || c.ContextWindow != 200_000 {
		t.Errorf("by default: %+v", c)
	}
	own := model.Capabilities{Tools: true, MaxOutput: 4096}
	p = serve(t, nil, func(c *anthropic.Config) { c.Capabilities = &own })
	if c := p.Capabilities(); c != own {
		t.Errorf("got %+v", c)
	}
}

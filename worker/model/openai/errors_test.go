package openai_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
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

type refusalCase struct {
	name   string
	status int
	body   string
	class  model.Class
	detail string
	hint   string // a part
}

func refusalCases() []refusalCase {
	const noHint = ""
	return []refusalCase{
		{"bad key", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, model.Auth, "Incorrect API key", "OPENAI_API_KEY"},
		{"Q22 a list, Gemini's bad key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, model.Auth, "API key not valid", "OPENAI_API_KEY"},
		{"forbidden", 403, `{"message":"no access"}`, model.Auth, "no access", "key"},
		{"moderated", 403, `{"error":{"message":"Input flagged by moderation","code":403}}`, model.ContentFilter, "flagged", "filter"},
		{"no credit", 402, `{"error":{"message":"Insufficient credits"}}`, model.Quota, "Insufficient", "billing"},
		{"no quota", 429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, model.Quota, "quota", "billing"},
		{"rate limit", 429, `{"error":{"message":"Limit 10000 tokens, maximum context","type":"tokens"}}`, model.RateLimited, "Limit", "fewer"},
		{"wrong model", 404, `{"error":{"message":"The model 'x' does not exist","code":"model_not_found"}}`, model.InvalidRequest, "does not exist", "OPENAI_MODEL"},
		{"dead path", 404, `404 page not found`, model.InvalidRequest, "404 page", "/v1"},
		{"web page", 404, "<html><title>Not here</title>", model.InvalidRequest, `"Not here"`, "base URL"},
		{"gateway's page", 502, "<html><title>502 Bad Gateway</title>", model.Overloaded, "502 Bad Gateway", noHint},
		{"full context", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, model.ContextLength, "8192", "larger context"},
		{"full context, llama.cpp", 500, `{"error":{"code":500,"message":"the request exceeds the available context size"}}`, model.ContextLength, "context size", "larger context"},
		{"filter", 400, `{"error":{"code":"content_filter","message":"policy","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, model.ContentFilter, "policy", "filter"},
		{"Q23 tool_use_failed", 400, `{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"x"}}`, model.ModelOutput, "Failed", noHint},
		{"Q22 a string", 400, `{"error":"bad things"}`, model.InvalidRequest, "bad things", noHint},
		{"Q22 a bare string", 400, `"bad things"`, model.InvalidRequest, "bad things", noHint},
		{"Q22 detail", 422, `{"detail":[{"loc":["body","tools"],"msg":"field required","type":"missing"}]}`, model.InvalidRequest, "[body tools]: field required", "tools"},
		{"Q22 detail as a string", 422, `{"detail":"no such thing"}`, model.InvalidRequest, "no such thing", noHint},
		{"Q22 flat", 400, `{"object":"error","message":"bad parameter","type":"BadRequestError","code":400}`, model.InvalidRequest, "bad parameter", noHint},
		{"list of errors", 400, `{"success":false,"errors":[{"code":7003,"message":"no route"}]}`, model.InvalidRequest, "no route", noHint},
		{"empty", 500, ``, model.Overloaded, "", noHint},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.Overloaded, "Overloaded", noHint},
		{"gateway timeout", 504, `upstream request timeout`, model.Timeout, "upstream", noHint},
		{"too large", 413, `too large`, model.ContextLength, "too large", "larger context"},
		{"deep", 400, strings.Repeat(`{"error":`, 5000) + `"x"` + strings.Repeat(`}`, 5000), model.InvalidRequest, "", noHint},
		{"long", 400, `{"error":"` + strings.Repeat("é", 100_000), model.InvalidRequest, "more bytes", noHint},
		{"loc of objects", 422, `{"detail":[{"loc":[{},{}],"msg":"odd"}]}`, model.InvalidRequest, "odd", noHint},
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range refusalCases() {
		t.Run(tt.name, func(t *testing.T) {
			e := fails(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "req-7")
				w.WriteHeader(tt.status)
				write(w, tt.body, 0)
			}))
			if e.Class != tt.class || e.Status != tt.status || e.RequestID != "req-7" {
				t.Errorf("class %q, status %d, request %q: %v", e.Class, e.Status, e.RequestID, e)
			}
			if !strings.Contains(e.Detail, tt.detail) || len(e.Detail) > 600 {
				t.Errorf("detail %q, want %q in it", e.Detail, tt.detail)
			}
			if !strings.Contains(e.Hint, tt.hint) || (e.Hint == "") != (tt.hint == "") {
				t.Errorf("hint %q, want %q in it", e.Hint, tt.hint)
			}
		})
	}
}

type retryAfterCase struct {
	name, header, value string
	want, slack         time.Duration
}

func retryAfterCases() []retryAfterCase {
	return []retryAfterCase{
		{"Q24 seconds", "Retry-After", "20", 20 * time.Second, 0},
		{"Q24 milliseconds", "Retry-After-Ms", "350", 350 * time.Millisecond, 0},
		{"Q24 date", "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Hour, time.Minute},
		{"Q24 reset as a duration", "X-Ratelimit-Reset-Tokens", "6m0.5s", 360_500 * time.Millisecond, 0},
		{"Q24 reset in seconds", "X-Ratelimit-Reset-Tokens", "7.5", 7500 * time.Millisecond, 0},
		{"Q24 reset at a moment", "X-Ratelimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), time.Hour, time.Minute},
		{"Q24 reset at a moment in seconds", "X-Ratelimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10), time.Hour, time.Minute},
		{"reset of a limit that is not used up", "X-Ratelimit-Reset-Requests", "6m0s", 0, 0},
		{"reset that is no time", "X-Ratelimit-Reset", "soon", 0, 0},
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tt := range retryAfterCases() {
		t.Run(tt.name, func(t *testing.T) {
			e := fails(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Ratelimit-Remaining", "0")
				w.Header().Set("X-Ratelimit-Remaining-Tokens", "0")
				w.Header().Set("X-Ratelimit-Remaining-Requests", "4")
				w.Header().Set(tt.header, tt.value)
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			if d := tt.want - e.RetryAfter; d < 0 || d > tt.slack {
				t.Errorf("got %s, want %s", e.RetryAfter, tt.want)
			}
		})
	}
}

func TestRetryAfterInTheBody(t *testing.T) {
	e := fails(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		write(w, `[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]`, 0)
	}))
	if e.Class != model.RateLimited || e.RetryAfter != 34_500*time.Millisecond {
		t.Errorf("got %v after %s", e, e.RetryAfter)
	}
}

func TestKeyNeverShows(t *testing.T) {
	other := "sk-" + strings.Repeat("other", 5)
	echo := "your key " + key + ", its start " + key[:12] + ", Bearer abc.def and " + other
	for _, tt := range []struct {
		name   string
		status int
		body   string
	}{
		{"JSON error", 401, `{"error":{"message":"` + echo + `","code":"` + key + `"}}`},
		{"code alone", 401, `{"error":{"code":"` + key + `"}}`},
		{"mid-stream", 200, events(text("a"), `{"error":{"message":"`+echo+`"}}`)},
		{"no choice", 200, `{"` + key + `":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := fails(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+key {
					t.Errorf("authorization %q", r.Header.Get("Authorization"))
				}
				w.Header().Set("X-Request-Id", "id-"+key)
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

func TestAKeyOfAnyShapeNeverShows(t *testing.T) {
	for _, own := range []string{"hunter2", "x/y+z==", "7d1f4c0a9b3e4e55a1"} {
		p := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			write(w, `{"error":"no such key: `+own+`."}`, 0)
		}, func(c *openai.Config) { c.APIKey = own })
		if e := fails(t, p); e.Detail != "no such key: [key]." {
			t.Errorf("%s", e.Detail)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		field  string
		config openai.Config
	}{
		{"apiKey", openai.Config{}},
		{"apiKey", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a b"}}},
		{"apiKey", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a\nb"}}},
		{"apiKey", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", NoAuth: true}}},
		{"organization", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Organization: "o\r\n"}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "localhost:8080"}}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "ftp://host"}}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://"}}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://user:secret@host/v1"}}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://user:secret@host/\x7f"}}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://host/v1?key=secret"}}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://host/v1/chat/completions/"}}},
		{"idleTimeout", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", IdleTimeout: -1}}},
		{"startTimeout", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", StartTimeout: -1}}},
		{"maxLine", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", MaxLine: -1}}},
		{"maxReply", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", MaxReply: -1}}},
		{"flavour", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Flavour: "vanilla"}},
		{"apiVersion", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, APIVersion: "2024-10-21"}},
		{"apiVersion", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a", BaseURL: "https://host"}, Flavour: openai.Azure, APIVersion: "1&x=y"}},
		{"baseURL", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Flavour: openai.Azure}},
		{"capabilities", openai.Config{Endpoint: httpstream.Endpoint{APIKey: "a"}, Capabilities: &model.Capabilities{MaxOutput: -1}}},
	} {
		p, err := openai.New(tt.config)
		f, ok := errors.AsType[*messages.FieldError](err)
		if p != nil || !ok || f.Field != tt.field || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", tt.field, err)
		}
	}
	if diff := cmp.Diff("https://api.openai.com/v1", openai.DefaultBaseURL); diff != "" {
		t.Error(diff)
	}
}

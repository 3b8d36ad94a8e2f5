package openai_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// want is what a stream must come to: a reply, or an error when class is set.
type want struct {
	text   string
	calls  []string // name(arguments)id, with the id "new" for one that we made
	stop   messages.StopReason
	usage  messages.Usage
	aloud  string // reasoning
	class  model.Class
	detail string // a part of the error's
}

var generated = regexp.MustCompile(`^call_[A-Z2-7]{16}$`)

// aloud is the reasoning of a reply.
func aloud(r *model.Reply) string {
	var s strings.Builder
	for _, b := range r.Message.Content {
		if b.Reasoning != nil {
			s.WriteString(b.Reasoning.Text)
		}
	}
	return s.String()
}

func check(t *testing.T, o outcome, w want) {
	t.Helper()
	if w.class != "" {
		e, ok := errors.AsType[*model.Error](o.Err)
		if !ok || e.Class != w.class || !strings.Contains(e.Detail, w.detail) || o.Reply != nil {
			t.Fatalf("got reply %+v and error %v, want class %s with %q", o.Reply, o.Err, w.class, w.detail)
		}
		return
	}
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	if o.Text != w.text || o.Reply.Message.Text() != w.text {
		t.Errorf("streamed %q and replied %q, want %q", o.Text, o.Reply.Message.Text(), w.text)
	}
	if aloud := aloud(o.Reply); o.Reasoning != w.aloud || aloud != w.aloud {
		t.Errorf("streamed the reasoning %q and replied %q, want %q", o.Reasoning, aloud, w.aloud)
	}
	var got []string
	for _, c := range o.Reply.Message.Calls() {
		if generated.MatchString(c.ID) {
			c.ID = "new"
		}
		got = append(got, c.Name+"("+c.Arguments+")"+c.ID)
	}
	if diff := cmp.Diff(w.calls, got); diff != "" {
		t.Error(diff)
	}
	if w.stop == "" {
		w.stop = messages.StopEnd
		if w.calls != nil {
			w.stop = messages.StopToolCalls
		}
	}
	if o.Reply.Stop != w.stop {
		t.Errorf("stop %q, want %q", o.Reply.Stop, w.stop)
	}
	if w.usage != (messages.Usage{}) {
		if diff := cmp.Diff(w.usage, o.Reply.Usage); diff != "" {
			t.Error(diff)
		}
	}
}

type streamCase struct {
	name, body string
	want       want
}

func streamCases() []streamCase {
	plain := messages.Usage{Input: 10, Output: 5, Total: 15}
	end := finish("stop")
	called := finish("tool_calls")
	return []streamCase{
		{"plain", data(delta(`"role":"assistant","content":""`), text("Hel"), text("lo"), end, usage), want{text: "Hello", usage: plain}},

		// Framing.
		{"Q1 keepalive comments", ": OPENROUTER PROCESSING\n\n" + events(text("a")) + ": OPENROUTER PROCESSING\n\n" + data(end), want{text: "a"}},
		{"Q2 a thousand keepalives", strings.Repeat(": wait\n\n", 1000) + data(text("a"), end), want{text: "a"}},
		{"Q3 comment, then error", ": wait\n\ndata: {\"error\":{\"message\":\"upstream is down\",\"code\":502}}\n\n", want{class: model.Overloaded, detail: "upstream is down"}},
		{"Q4 CRLF", strings.ReplaceAll(data(text("a"), end, usage), "\n", "\r\n"), want{text: "a", usage: plain}},
		{"Q4 CRLF, data on several lines", strings.ReplaceAll("data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n"+data(end), "\n", "\r\n"), want{text: "a"}},
		{"CR alone", strings.ReplaceAll(data(text("a"), text("b"), end, usage), "\n", "\r"), want{text: "ab", usage: plain}},
		{"CR alone, data on several lines", strings.ReplaceAll("data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n"+data(end), "\n", "\r"), want{text: "a"}},
		{"Q5 no space", strings.ReplaceAll(data(text("a"), end), "data: ", "data:"), want{text: "a"}},
		{"Q6 byte order mark", "\xef\xbb\xbf" + data(text("a"), end), want{text: "a"}},
		{"Q7 data on several lines", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"},\ndata: \"index\":0}]}\n\n" + data(end), want{text: "a"}},
		{"events without blank lines", strings.ReplaceAll(data(text("a"), text("b"), end), "\n\n", "\n"), want{text: "ab"}},
		{"Q8 cut", events(text("a")), want{class: model.Truncated}},
		{"Q8 cut within a line", events(text("a")) + "data: {\"choices\":[{\"delta\":{\"con", want{class: model.Truncated}},
		{"Q8 nothing at all", "", want{class: model.Truncated}},
		{"Q9 no [DONE]", events(text("a"), end), want{text: "a"}},
		{"Q9 no [DONE], usage cut", events(text("a"), end) + "data: {\"choices\":[],\"usa", want{text: "a"}},
		{"[DONE] without finish reason", data(text("a")), want{text: "a"}},
		{"Q10 last line without newline", events(text("a")) + "data: " + end, want{text: "a"}},
		{"Q10 [DONE] without newline", events(text("a")) + "data: [DONE]", want{text: "a"}},
		{"Q11 event and id lines", "event: chunk\nid: 7\nretry: 10\ndata: " + text("a") + "\n\n" + data(end), want{text: "a"}},
		{"Q11 event: error", events(text("a")) + "event: error\ndata: {\"error\":{\"message\":\"broke\",\"type\":\"server_error\"}}\n\n", want{class: model.Overloaded, detail: "broke"}},
		{"Q11 event: error with text", "event: error\ndata: service unavailable\n\n", want{class: model.Overloaded, detail: "service unavailable"}},
		{"a message of an event of another name", "event: progress\ndata: {\"message\":\"loading the model\"}\n\n" + data(text("a"), end), want{text: "a"}},
		{"a message of an event of no name", events(`{"message":"loading failed"}`), want{class: model.Unknown, detail: "loading failed"}},
		{"an error of an event of another name", "event: progress\n" + data(`{"error":{"message":"lost","code":502}}`), want{class: model.Overloaded, detail: "lost"}},
		{"Q12 a line of 300 KB", data(text(strings.Repeat("x", 300_000)), end), want{text: strings.Repeat("x", 300_000)}},
		{"Q13 wrapped keepalive", "data: : OPENROUTER PROCESSING\n\n" + data(text("a"), end), want{text: "a"}},
		{"Q14 empty pings", "data: \"\"\n\ndata:\n\n" + events("null") + "event: ping\n" + data("{}", text("a"), end), want{text: "a"}},
		{"Q15 malformed chunk", events(text("a")) + "data: {\"choices\":[}\n\n" + data(end), want{class: model.ModelOutput, detail: "cannot be read"}},
		{"not an event stream", "upstream connect error or disconnect", want{class: model.ModelOutput, detail: "upstream connect error"}},

		// Answers that are no stream.
		{"Q16 JSON error", `{"error":{"message":"model is loading","type":"server_error"}}`, want{class: model.Overloaded, detail: "model is loading"}},
		{"Q16 JSON error with code only", `{"error":{"code":429}}`, want{class: model.RateLimited}},
		{
			"Q17 reply in one piece",
			`{"object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`,
			want{text: "a", calls: []string{"f({})x"}, usage: plain},
		},
		{"Q17 cut", `{"object":"chat.completion","choices":[{"message":{"content":"a`, want{class: model.Truncated}},
		{"Q17 cut between members", `{"object":"chat.completion","choices":[{"message":{"content":"a"},"finish_reason":"stop"}],`, want{class: model.Truncated}},
		{"not JSON", `{"object":oops}`, want{class: model.ModelOutput}},
		{"Q18 HTML", "\n<!DOCTYPE html><html><head><title>Sign in</title></head></html>", want{class: model.ModelOutput, detail: "Sign in"}},
		{"Q43 no choices", `{"object":"chat.completion","choices":[]}`, want{class: model.ModelOutput, detail: "no choice"}},
		{"Q43 message is null", `{"choices":[{"message":null,"finish_reason":"content_filter"}]}`, want{stop: messages.StopContentFilter}},
		{"JSON of something else", `{"status":"ok"}`, want{class: model.ModelOutput}},
		{"[DONE] alone", data(), want{class: model.ModelOutput}},

		// Errors in the stream.
		{"Q19 error object", events(text("a"), `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`), want{class: model.RateLimited, detail: "Rate limit"}},
		{"error with a space", events(text("a"), `{ "error": {"message":"x","type":"overloaded_error"}}`), want{class: model.Overloaded}},
		{"error is a string", events(text("a"), `{"error":"worker died, internal error"}`), want{class: model.Overloaded, detail: "worker died"}},
		{"flat error", events(text("a"), `{"object":"error","message":"too long: maximum context length is 8","code":400}`), want{class: model.ContextLength}},
		{"detail", events(`{"detail":"Internal server error"}`), want{class: model.Overloaded}},
		{"bare JSON line", events(text("a")) + "{\"error\":{\"message\":\"bare\",\"code\":503}}\n", want{class: model.Overloaded, detail: "bare"}},
		{"bare JSON on several lines", events(text("a")) + "{\n  \"error\": {\n    \"message\": \"bare\", \"code\": 503\n  }\n}\n", want{class: model.Overloaded, detail: "bare"}},
		{"Q20 error beside a choice", data(text("a"), `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"provider returned error","metadata":{"raw":"engine lost"}}}`), want{class: model.Overloaded, detail: "engine lost"}},
		{"Q20 error within a choice", data(`{"choices":[{"delta":{},"error":{"code":429,"message":"slow"},"finish_reason":"error"}]}`), want{class: model.RateLimited, detail: "slow"}},
		{"finish reason error alone", data(text("a"), finish("error")), want{class: model.Unknown}},
		{"Q21 code as a string", events(`{"error":{"message":"m","code":"insufficient_quota"}}`), want{class: model.Quota}},
		{"Q21 message as a list", events(`{"error":{"message":["one","two"],"code":400}}`), want{class: model.InvalidRequest, detail: "one; two"}},
		{"Q23 tool_use_failed", events(`{"error":{"message":"Failed to call a function","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<f>"}}`), want{class: model.ModelOutput}},
		{"error is null", data(`{"error":null,"choices":[{"delta":{"content":"a"}}]}`, end), want{text: "a"}},
		{"error after the finish reason", data(text("a"), end, `{"error":{"message":"late","code":500}}`), want{class: model.Overloaded}},

		// Tool calls.
		{"Q25 no index, ids", data(calls(`{"id":"x","function":{"name":"f","arguments":"{\"a\":"}}`), calls(`{"id":"x","function":{"arguments":"1}"}}`), calls(`{"id":"y","function":{"name":"f","arguments":"{}"}}`), called), want{calls: []string{`f({"a":1})x`, "f({})y"}}},
		{"Q25 no index, no ids", data(calls(`{"function":{"name":"f","arguments":"{\"a\":"}}`), calls(`{"function":{"arguments":"1}"}}`), calls(`{"function":{"name":"f","arguments":"{}"}}`), called), want{calls: []string{`f({"a":1})new`, "f({})new"}}},
		{"Q25 no index, no ids, two tools", data(calls(`{"function":{"name":"f","arguments":"{\"a\":"}}`), calls(`{"function":{"arguments":"1}"}}`), calls(`{"function":{"name":"g","arguments":"{}"}}`), called), want{calls: []string{`f({"a":1})new`, "g({})new"}}},
		{"Q25 no index, id is the tool's name", data(calls(`{"id":"f","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"f","function":{"name":"f","arguments":"{\"a\":2}"}}`), called), want{calls: []string{`f({"a":1})f`, `f({"a":2})f`}}},
		{"Q26 colliding index, new id", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":0,"id":"y","function":{"name":"g","arguments":"{\"b\""}}`), calls(`{"index":0,"function":{"arguments":":2}"}}`), called), want{calls: []string{"f({})x", `g({"b":2})y`}}},
		{"Q26 colliding index, no ids", data(calls(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), calls(`{"index":0,"function":{"name":"g","arguments":"{}"}}`), called), want{calls: []string{"f({})new", "g({})new"}}},
		{"Q27 id only first", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{\"a\""}}`), calls(`{"index":0,"function":{"arguments":":1}"}}`), called), want{calls: []string{`f({"a":1})x`}}},
		{"Q27 id in each", data(calls(`{"index":0,"id":"x","function":{"name":"f"}}`), calls(`{"index":0,"id":"x","function":{"arguments":"{\"a\""}}`), calls(`{"index":0,"id":"x","function":{"arguments":":1}"}}`), called), want{calls: []string{`f({"a":1})x`}}},
		{"another id in each", data(calls(`{"index":0,"id":"x","function":{"name":"f"}}`), calls(`{"index":0,"id":"y","function":{"arguments":"{\"a\""}}`), calls(`{"index":0,"id":"z","function":{"arguments":":1}"}}`), called), want{calls: []string{`f({"a":1})x`}}},
		{"Q28 id is null", data(calls(`{"index":0,"id":null,"function":{"name":"f","arguments":"{}"}}`), called), want{calls: []string{"f({})new"}}},
		{"Q29 name in each", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}`), calls(`{"index":0,"id":"x","function":{"name":"f","arguments":":1"}}`), calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"}"}}`), called), want{calls: []string{`f({"a":1})x`}}},
		{"Q29 name in each, no id", data(calls(`{"index":0,"function":{"name":"f","arguments":"{\"a\""}}`), calls(`{"index":0,"function":{"name":"f","arguments":":\"}\"}"}}`), calls(`{"index":0,"function":{"name":"f","arguments":""}}`), called), want{calls: []string{`f({"a":"}"})new`}}},
		{"Q30 several objects are several calls", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}{\"a\":2}"}}`), called), want{calls: []string{`f({"a":1})x`, `f({"a":2})new`}}},
		{"Q30 the same object again is the same call", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}`), calls(`{"index":0,"function":{"arguments":"{\"a\":1}"}}`), called), want{calls: []string{`f({"a":1})x`}}},
		{"a whole object and half of one", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}{\"a\""}}`), called), want{calls: []string{`f({"a":1}{"a")x`}}},
		{"Q31 all in one delta", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"id":"y","function":{"name":"g","arguments":"{}"}}`), called), want{calls: []string{`f({"a":1})x`, "g({})y"}}},
		{"interleaved", data(calls(`{"index":1,"id":"y","function":{"name":"g","arguments":"{"}},{"index":0,"id":"x","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"}"}}`), called), want{calls: []string{"g({})y", "f({})x"}}},
		{"Q32 arguments are an object", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":{"a": [1, 2]}}}`), called), want{calls: []string{`f({"a":[1,2]})x`}}},
		{"arguments are an object with broken bytes", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":{"a":"`+"\xff\xfe"+`"}}}`), called), want{calls: []string{"f({\"a\":\"\ufffd\ufffd\"})x"}}},
		{"Q33 arguments empty", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":""}}`), called), want{calls: []string{"f({})x"}}},
		{"Q33 arguments null", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":null}}`), called), want{calls: []string{"f({})x"}}},
		{"Q33 arguments \"null\"", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"null"}}`), called), want{calls: []string{"f({})x"}}},
		{"Q33 arguments absent", data(calls(`{"index":0,"id":"x","function":{"name":"f"}}`), called), want{calls: []string{"f({})x"}}},
		{"Q34 arguments before name", data(calls(`{"index":0,"function":{"arguments":"{\"a\""}}`), calls(`{"index":0,"id":"x","function":{"name":"f","arguments":":1}"}}`), called), want{calls: []string{`f({"a":1})x`}}},
		{"Q34 arguments before name, no index", data(calls(`{"function":{"arguments":"{\"a\":1}"}}`), calls(`{"id":"x","function":{"name":"f"}}`), called), want{calls: []string{`f({"a":1})x`}}},
		{"Q35 strange ids", data(calls(`{"index":0,"id":"functions.add:0","function":{"name":"f","arguments":"{}"}},{"index":1,"id":7,"function":{"name":"g","arguments":"{}"}}`), called), want{calls: []string{"f({})functions.add:0", "g({})7"}}},
		{"Q38 finish stop with calls", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`), end), want{calls: []string{"f({})x"}}},
		{"Q39 half a call, by the limit", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":\"lo"}}`), called, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":64}}`), want{stop: messages.StopLength}},
		{"half a call, not by the limit", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":\"lo"}}`), called, usage), want{calls: []string{`f({"a":"lo)x`}}},
		{"half a call after a whole one", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"y","function":{"name":"f","arguments":"{"}}`), called), want{calls: []string{"f({})x", "f({)y"}}},
		{"half a call, and no reason why", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}`), "[DONE]"), want{class: model.ModelOutput}},
		{"half a call, filtered", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}`), finish("content_filter")), want{class: model.ModelOutput, detail: "within a tool call"}},
		{"half a call after a whole one, by the limit", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"y","function":{"name":"f","arguments":"{"}}`), called, `{"choices":[],"usage":{"completion_tokens":64}}`), want{stop: messages.StopLength}},
		{"no call at length", data(text("a"), calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`), finish("length")), want{text: "a", stop: messages.StopLength}},
		{"a call without name", data(calls(`{"index":0,"id":"x","function":{"arguments":"{}"}}`), called), want{class: model.ModelOutput}},
		{"arguments that are no JSON", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{'a': 1}"}}`), called), want{calls: []string{"f({'a': 1})x"}}},
		{"tool_calls is null", data(delta(`"content":"a","tool_calls":null`), end), want{text: "a"}},
		{"arguments without end", data(calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":\"`+strings.Repeat("x", 1<<20)+`\"}"}}`), called), want{class: model.ReplyTooLarge, detail: "larger than 1048576"}},
		{"a name without end", data(calls(`{"index":0,"id":"x","function":{"name":"`+strings.Repeat("f", 300)+`"}}`), called), want{class: model.ModelOutput, detail: "longer than 256"}},
		{"too many calls", data(calls(manyCalls(300)), called), want{class: model.ModelOutput, detail: "tool calls"}},

		// Finish reasons.
		{"tool_calls without a call", data(text("I will look."), called, usage), want{class: model.ModelOutput, detail: "holds no call"}},
		{"tool_calls without anything", data(called), want{class: model.ModelOutput, detail: "holds no call"}},
		{"Q40 empty reason in the middle", data(`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, text("b"), end), want{text: "ab"}},
		{"Q40 empty reason, then cut", events(`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`), want{class: model.Truncated}},
		{"Q41 a choice after the reason", data(text("a"), end, delta(`"content":""`), usage), want{text: "a", usage: plain}},
		{"Q41 the reason stays", data(text("a"), finish("length"), delta(`"content":""`), usage), want{text: "a", usage: plain, stop: messages.StopLength}},
		{"Q42 end_turn", data(text("a"), finish("end_turn")), want{text: "a"}},
		{"Q42 PROHIBITED_CONTENT", data(finish("PROHIBITED_CONTENT")), want{stop: messages.StopContentFilter}},
		{"Q42 max_tokens", data(text("a"), finish("max_tokens")), want{text: "a", stop: messages.StopLength}},
		{"refusal", data(delta(`"refusal":"I will "`), delta(`"refusal":"not."`), end), want{text: "I will not.", stop: messages.StopRefusal}},

		// Usage.
		{"Q45 with the last choice", data(text("a"), `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}}`), want{text: "a", usage: messages.Usage{Input: 10, Output: 5, CacheRead: 4, CacheWrite: 2, Reasoning: 3, Total: 15}}},
		{"Q46 several, counting up", data(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`, end, usage), want{text: "a", usage: plain}},
		{"Q46 x_groq", data(text("a"), `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":5}}}`), want{text: "a", usage: plain}},
		{"Q44 a chunk of its own", data(text("a"), end, usage), want{text: "a", usage: plain}},
		{"Q44 before the end", data(usage, text("a"), end), want{text: "a", usage: plain}},
		{"xAI counts reasoning on top", data(text("a"), end, `{"choices":[],"usage":{"prompt_tokens":468,"completion_tokens":82,"total_tokens":870,"completion_tokens_details":{"reasoning_tokens":320}}}`), want{text: "a", usage: messages.Usage{Input: 468, Output: 402, Reasoning: 320, Total: 870}}},
		{"Gemini counts reasoning on top", data(text("a"), end, `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":400,"total_tokens":520,"completion_tokens_details":{"reasoning_tokens":100}}}`), want{text: "a", usage: messages.Usage{Input: 20, Output: 500, Reasoning: 100, Total: 520}}},
		{"more reasoning than output, no total", data(text("a"), end, `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":100}}}`), want{text: "a", usage: messages.Usage{Input: 20, Output: 104, Reasoning: 100, Total: 124}}},
		{"reasoning is all of the output", data(text("a"), end, `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":100,"total_tokens":120,"completion_tokens_details":{"reasoning_tokens":100}}}`), want{text: "a", usage: messages.Usage{Input: 20, Output: 100, Reasoning: 100, Total: 120}}},
		{"Q47 null after it", data(text("a"), end, usage, `{"choices":[],"usage":null}`), want{text: "a", usage: plain}},
		{"Q47 absent", data(text("a"), end), want{text: "a"}},
		{"usage alone is no reply", data(usage), want{class: model.ModelOutput, detail: "empty"}},
		{"usage alone, cut", events(usage), want{class: model.Truncated}},
		{"DeepSeek cache", data(text("a"), end, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8}}`), want{text: "a", usage: messages.Usage{Input: 10, Output: 5, CacheRead: 8, Total: 15}}},
		{"counts in strings, broken and negative", data(text("a"), end, `{"choices":[],"usage":{"prompt_tokens":"10","completion_tokens":5.0,"total_tokens":-3}}`), want{text: "a", usage: plain}},

		// Chunks of other shapes.
		{"Q48 Azure's first chunk", data(`{"id":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, text("a"), end), want{text: "a"}},
		{"Q49 no delta", data(`{"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{}}]}`, text("a"), end), want{text: "a"}},
		{"Q50 moderation chunk", data(`{"choices":[],"moderation":{"flagged":false},"usage":null}`, text("a"), end), want{text: "a"}},
		{"Q51 content is a list", data(delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), delta(`"content":[{"type":"text","text":"a"},"b"]`), end), want{text: "ab", aloud: "hm"}},
		{"Q51 thinking is a text", data(delta(`"content":[{"type":"thinking","thinking":"hm"},{"type":"reference","reference_ids":[1]}]`), text("a"), end), want{text: "a", aloud: "hm"}},
		{"Q52 reasoning_content", data(delta(`"content":null,"reasoning_content":"h"`), delta(`"reasoning_content":"m"`), text("a"), end), want{text: "a", aloud: "hm"}},
		{"Q52 reasoning", data(delta(`"content":"","reasoning":"h"`), delta(`"reasoning":"m"`), text("a"), end), want{text: "a", aloud: "hm"}},
		{"Q52 reasoning_details", data(delta(`"content":"","reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]`), delta(`"reasoning_details":[{"type":"reasoning.text","text":"m","index":0},{"type":"reasoning.encrypted","data":"xx","index":0}]`), text("a"), end), want{text: "a", aloud: "hm"}},
		{"Q52 all names at once", data(delta(`"content":"","reasoning":"hm","reasoning_content":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]`), text("a"), end), want{text: "a", aloud: "hm"}},
		{"Q52 a summary", data(delta(`"reasoning":"hm","reasoning_details":[{"type":"reasoning.summary","summary":"hm","index":0}]`), text("a"), end), want{text: "a", aloud: "hm"}},
		{"Q52 in one piece", `{"choices":[{"message":{"content":"a","reasoning_content":"hm"},"finish_reason":"stop"}]}`, want{text: "a", aloud: "hm"}},
		{"Q52 reasoning alone, at length", data(delta(`"reasoning":"hm"`), finish("length")), want{aloud: "hm", stop: messages.StopLength}},
		{"reasoning alone, without a reason to end", data(delta(`"reasoning":"hm"`)), want{class: model.ModelOutput, detail: "empty"}},
		{"reasoning, then cut", events(delta(`"reasoning":"hm"`)), want{class: model.Truncated}},
		{"too many parts of reasoning", data(delta(`"reasoning_details":[`+details(257)+`]`), end), want{class: model.ModelOutput, detail: "parts of reasoning"}},
		{"think marks", data(text("\\n<th"), text("ink>h"), text("m</thi"), text("nk>\\n"), text("\\n a"), end), want{text: "a", aloud: "hm"}},
		{"think marks without an end", data(text("<think>hm"), text("</"), finish("length")), want{aloud: "hm</", stop: messages.StopLength}},
		{"think marks later are text", data(text("a <think>b</think>"), end), want{text: "a <think>b</think>"}},
		{"the beginning of a mark is text", data(text("<thi"), end), want{text: "<thi"}},
		{"white space alone", data(text("\\n "), end), want{text: "\n "}},

		// Calls as text.
		{"Q37 a call as text", data(text(`<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>`), end), want{calls: []string{`f({"a":1})new`}}},
		{"Q37 over several chunks", data(text("a<tool"), text(`_call>{\"name\":\"f\",`), text(`\"arguments\":{}}</tool_`), text(`call><tool_call>{\"name\":\"g\",\"arguments\":\"{}\"}`), text("</tool_call>"), end), want{text: "a", calls: []string{"f({})new", "g({})new"}}},
		{"Q37 the end of it is missing", data(text(`<tool_call>{\"name\":\"f\",\"arguments\":{}}`), end), want{calls: []string{"f({})new"}}},
		{"a call as text of a tool that was not offered", data(text(`<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>`), end), want{text: `<tool_call>{"name":"rm","arguments":{}}</tool_call>`}},
		{"not a call as text", data(text("<tool_call>f(1)</tool_call> b <"), end), want{text: "<tool_call>f(1)</tool_call> b <"}},
		{"a call as text, cut", events(text(`<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>`)), want{class: model.Truncated}},
		{"a call as text at length", data(text(`<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>`), finish("length")), want{stop: messages.StopLength}},
		{"Q53 unknown extras", data(`{"obfuscation":"xx","p":"abc","timings":{},"provider":"P","choices":[{"delta":{"content":"a","token_ids":[1]},"logprobs":null}]}`, end), want{text: "a"}},
		{"Q54 types drift", data(`{"id":7,"created":1.5,"model":null,"choices":[{"index":"0","delta":{"role":null,"content":null}}]}`, calls(`{"index":"0","id":"x","function":{"name":"f","arguments":"{"}}`), calls(`{"index":0.0,"function":{"arguments":"}"}}`), called), want{calls: []string{"f({})x"}}},
		{"another choice", data(`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, end), want{text: "a"}},
		{"more items than a list may have", data(`{"choices":[` + strings.Repeat("{},", 2000) + `{}]}`), want{class: model.ModelOutput, detail: "items"}},
		{"lists in lists", data(delta(`"content":`+strings.Repeat("[", 2000)+`"x"`+strings.Repeat("]", 2000)), text("a"), end), want{text: "a"}},
	}
}

func TestStream(t *testing.T) {
	for _, tt := range streamCases() {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range []int{0, 1, 7} {
				if piece > 0 && len(tt.body) > 20_000 {
					piece *= 1000
				}
				t.Run(fmt.Sprintf("in pieces of %d", piece), func(t *testing.T) {
					r := hello()
					r.MaxTokens = 64
					r.Tools = []messages.ToolSpec{{Name: "f"}, {Name: "g"}}
					check(t, call(t.Context(), serve(t, streaming(tt.body, piece)), r), tt.want)
				})
			}
		})
	}
}

func details(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"type":"reasoning.text","text":"h","index":%d}`, i)
	}
	return strings.Join(list, ",")
}

func manyCalls(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"index":%d,"function":{"name":"f","arguments":"{}"}}`, i)
	}
	return strings.Join(list, ",")
}

func TestBounds(t *testing.T) {
	small := func(c *openai.Config) { c.MaxLine, c.MaxReply = 1000, 5000 }
	for _, tt := range []struct{ name, body, detail string }{
		{"a line", "data: " + strings.Repeat("x", 2000), "larger than 1000"},
		{"a line in a line's buffer", "data: {\"a\":\"" + strings.Repeat("x", 2000) + "\"}\n\n", "larger than 1000"},
		{"data on many lines", strings.Repeat("data: [\n", 600), "larger than 1000"},
		{"a reply in one piece", "{\"a\":\"" + strings.Repeat("x", 2000) + "\"}", "larger than 1000"},
		{"a stream", strings.Repeat("data: "+text("abc")+"\n\n", 200), "larger than 5000"},
		{"comments", strings.Repeat(": wait\n\n", 1000), "larger than 5000"},
		{"an endless line of comment", ": " + strings.Repeat("x", 6000), "larger than 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := call(t.Context(), serve(t, streaming(tt.body, 0), small), hello())
			check(t, o, want{class: model.ReplyTooLarge, detail: tt.detail})
		})
	}
}

func TestReplyNames(t *testing.T) {
	o := call(t.Context(), serve(t, streaming(data(text("a"), finish("stop")), 0)), hello())
	if o.Err != nil || o.Reply.Provider != "openai" || o.Reply.Model != "m-1" || o.Reply.Message.Role != messages.RoleAssistant {
		t.Errorf("got %+v, %v", o.Reply, o.Err)
	}
	o = call(t.Context(), serve(t, streaming(data(`{"choices":[{"delta":{"content":"a"}}]}`), 0)), hello())
	if o.Err != nil || o.Reply.Model != "test-model" {
		t.Errorf("got %+v, %v", o.Reply, o.Err)
	}
}

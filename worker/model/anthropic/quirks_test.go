package anthropic_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// TestQuirks has what servers of the Messages API, and gateways before it, are known to send. The numbers are those of
// the list of quirks that the project keeps of all providers.
func TestQuirks(t *testing.T) {
	one := messages.ToolCall{ID: "toolu_1", Name: "f", Arguments: `{"a":1}`}
	two := messages.ToolCall{ID: "toolu_2", Name: "g", Arguments: `{}`}
	hi := want{text: "Hi"}
	usage := func(in, out, read, write, thought int64) *messages.Usage {
		return &messages.Usage{Input: in, Output: out, CacheRead: read, CacheWrite: write, Reasoning: thought, Total: in + out}
	}
	cut := want{class: model.Truncated}
	for name, tt := range map[string]struct {
		body string
		want want
	}{
		"Q1 comments of gateways":             {": PROCESSING\n\n" + said("Hi"), hi},
		"Q2 many keepalives before the text":  {strings.Repeat(": wait\n\n", 1000) + said("Hi"), hi},
		"Q3 a comment, then an error":         {": wait\n\n" + events(`{"type":"error","error":{"type":"api_error","message":"boom"}}`), want{class: model.Overloaded, detail: "boom"}},
		"Q4 CRLF":                             {strings.ReplaceAll(said("Hi"), "\n", "\r\n"), hi},
		"CR alone":                            {strings.ReplaceAll(said("Hi"), "\n", "\r"), hi},
		"Q5 no space after the colon":         {strings.ReplaceAll(strings.ReplaceAll(said("Hi"), "data: ", "data:"), "event: ", "event:"), hi},
		"Q6 byte order mark":                  {"\xef\xbb\xbf" + said("Hi"), hi},
		"Q7 data of several lines":            {strings.ReplaceAll(said("Hi"), `,"index"`, ",\ndata: \"index\""), hi},
		"Q8 cut within the text":              {events(start, open(0, "text", `"text":""`), text(0, "Hi")), cut},
		"Q10 no end of the last line":         {strings.TrimRight(said("Hi"), "\n"), hi},
		"Q11 id and retry lines":              {"id: 7\nretry: 100\n" + said("Hi"), hi},
		"Q12 a long line":                     {said(strings.Repeat("x", 300_000)), want{text: strings.Repeat("x", 300_000)}},
		"Q12 a line that is too long":         {said(strings.Repeat("x", 5<<20)), want{class: model.ReplyTooLarge, detail: "line of the answer is larger"}},
		"Q13 a comment wrapped once more":     {"data: : PROCESSING\n\n" + said("Hi"), hi},
		"Q14 empty data":                      {"data:\n\n" + `data: ""` + "\n\n" + said("Hi"), hi},
		"Q14 [DONE] as elsewhere":             {strings.Replace(said("Hi"), "event: message_stop", "data: [DONE]\n\nevent: message_stop", 1), hi},
		"Q15 cut within an event":             {events(start) + "event: content_block_delta\ndata: {\"type\":\"content_bl", want{class: model.Truncated, detail: "within an event"}},
		"Q15 broken within the stream":        {events(start) + "data: {\"type\":\"content_bl\n\n" + said("Hi"), want{class: model.ModelOutput, detail: "cannot be read"}},
		"Q15 an event that is a list":         {"data: []\n\n" + said("Hi"), want{class: model.ModelOutput, detail: "cannot be read"}},
		"Q16 an error within 200":             {`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, want{class: model.Overloaded, detail: "Overloaded"}},
		"Q16 a gateway's error within 200":    {`{"error":{"message":"no such route","code":404}}`, want{class: model.ModelOutput, detail: "no such route"}},
		"Q16 JSON that is nothing":            {`{"ok":true}`, want{class: model.ModelOutput}},
		"Q16 a list":                          {`[]`, want{class: model.ModelOutput}},
		"Q17 a reply in one piece":            {`{"type":"message","model":"m","content":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`, want{text: "Hi", calls: []messages.ToolCall{one}, stop: messages.StopToolCalls, usage: usage(3, 4, 0, 0, 0)}},
		"Q17 half a reply in one piece":       {`{"type":"message","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":null}`, cut},
		"Q17 cut in one piece":                {`{"type":"message","model":"m","content":[{"type":"te`, cut},
		"Q18 a web page within 200":           {"<!DOCTYPE html><title>Sign in</title>", want{class: model.ModelOutput, detail: `"Sign in"`}},
		"Q18 plain text within 200":           {"upstream connect error", want{class: model.ModelOutput, detail: "upstream connect error"}},
		"Q18 nothing within 200":              {"", cut},
		"Q19 an error after text":             {events(start, open(0, "text", `"text":""`), text(0, "Hi"), `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`), want{text: "Hi", class: model.RateLimited, detail: "slow down"}},
		"Q19 an error without a type":         {events(start) + "data: {\"error\":{\"message\":\"Internal server error\"}}\n\n", want{class: model.Overloaded, detail: "Internal"}},
		"Q19 an error by its name alone":      {events(start) + "event: error\ndata: {\"message\":\"timed out\"}\n\n", want{class: model.Timeout, detail: "timed out"}},
		"Q21 an error that is a string":       {events(start) + "event: error\ndata: {\"type\":\"error\",\"error\":\"unavailable\"}\n\n", want{class: model.Overloaded, detail: "unavailable"}},
		"Q26 two calls of one index":          {events(start, tool(0, "toolu_1", "f"), input(0, `{"a":1}`), tool(0, "toolu_2", "g"), because("tool_use"), stop), want{calls: []messages.ToolCall{one, two}, stop: messages.StopToolCalls}},
		"Q31 the input in the block's start":  {events(start, open(0, "tool_use", `"id":"toolu_1","name":"f","input":{"a":1}`), because("tool_use"), stop), want{calls: []messages.ToolCall{one}, stop: messages.StopToolCalls}},
		"Q31 the input in many pieces":        {events(start, tool(0, "toolu_1", "f"), input(0, ""), input(0, `{"`), input(0, `a`), input(0, `":1`), input(0, `}`), shut(0), because("tool_use"), stop), want{calls: []messages.ToolCall{one}, stop: messages.StopToolCalls}},
		"Q33 no input at all":                 {events(start, tool(0, "toolu_2", "g"), shut(0), because("tool_use"), stop), want{calls: []messages.ToolCall{two}, stop: messages.StopToolCalls}},
		"Q33 empty input":                     {events(start, tool(0, "toolu_2", "g"), input(0, ""), shut(0), because("tool_use"), stop), want{calls: []messages.ToolCall{two}, stop: messages.StopToolCalls}},
		"Q33 null input":                      {events(start, open(0, "tool_use", `"id":"toolu_2","name":"g","input":null`), because("tool_use"), stop), want{calls: []messages.ToolCall{two}, stop: messages.StopToolCalls}},
		"Q33 input that is no JSON":           {events(start, tool(0, "toolu_1", "f"), input(0, `a=1`), because("tool_use"), stop), want{calls: []messages.ToolCall{{ID: "toolu_1", Name: "f", Arguments: "a=1"}}, stop: messages.StopToolCalls}},
		"Q38 end_turn with a call":            {events(start, tool(0, "toolu_1", "f"), input(0, `{"a":1}`), because("end_turn"), stop), want{calls: []messages.ToolCall{one}, stop: messages.StopToolCalls}},
		"Q38 tool_use without a call":         {events(start, open(0, "text", `"text":"Hi"`), because("tool_use"), stop), want{class: model.ModelOutput, detail: "holds no call"}},
		"Q39 half a call at the limit":        {events(start, tool(0, "toolu_1", "f"), input(0, `{"a":`), `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":8192}}`, stop), want{stop: messages.StopLength}},
		"Q39 half a call below the limit":     {events(start, tool(0, "toolu_1", "f"), input(0, `{"a":`), because("tool_use"), stop), want{calls: []messages.ToolCall{{ID: "toolu_1", Name: "f", Arguments: `{"a":`}}, stop: messages.StopToolCalls}},
		"half a call without a name":          {events(start, tool(0, "toolu_1", ""), input(0, `{"a":`), because("tool_use"), stop), want{class: model.ModelOutput, detail: "within a tool call"}},
		"Q39 max_tokens with a call":          {events(start, open(0, "text", `"text":"Hi"`), tool(1, "toolu_1", "f"), input(1, `{"a":1}`), because("max_tokens"), stop), want{text: "Hi", stop: messages.StopLength}},
		"Q42 stop_sequence":                   {events(start, open(0, "text", `"text":"Hi"`), because("stop_sequence"), stop), hi},
		"Q42 refusal":                         {events(start, open(0, "text", `"text":"Hi"`), because("refusal"), stop), want{text: "Hi", stop: messages.StopRefusal}},
		"Q42 refusal with a call":             {events(start, tool(0, "toolu_1", "f"), because("refusal"), stop), want{stop: messages.StopRefusal}},
		"Q42 pause_turn":                      {events(start, open(0, "text", `"text":"Hi"`), because("pause_turn"), stop), want{text: "Hi", stop: messages.StopLength}},
		"Q42 model_context_window_exceeded":   {events(start, open(0, "text", `"text":"Hi"`), because("model_context_window_exceeded"), stop), want{text: "Hi", stop: messages.StopLength}},
		"Q42 a gateway's own reason":          {events(start, open(0, "text", `"text":"Hi"`), because("stop"), stop), hi},
		"Q42 a gateway's filter":              {events(start, open(0, "text", `"text":"Hi"`), because("content_filter"), stop), want{text: "Hi", stop: messages.StopContentFilter}},
		"Q43 no content, with a reason":       {events(start, because("end_turn"), stop), want{}},
		"Q43 no content and no reason":        {events(start, stop), want{class: model.Truncated, detail: "why it ended"}},
		"message_stop without a reason":       {events(start, open(0, "text", `"text":"Hi"`), stop), want{text: "Hi", class: model.Truncated, detail: "why it ended"}},
		"Q46 usage in several events":         {events(start, open(0, "text", `"text":"Hi"`), because("end_turn"), `{"type":"message_delta","delta":{},"usage":{"input_tokens":12,"output_tokens":7,"output_tokens_details":{"thinking_tokens":2}}}`, stop), want{text: "Hi", usage: usage(19, 7, 4, 3, 2)}},
		"Q46 zeros of a gateway in the end":   {events(start, open(0, "text", `"text":"Hi"`), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5}}`, stop), want{text: "Hi", usage: usage(17, 5, 4, 3, 0)}},
		"Q47 null counts":                     {events(start, open(0, "text", `"text":"Hi"`), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"output_tokens":5}}`, stop), want{text: "Hi", usage: usage(17, 5, 4, 3, 0)}},
		"Q47 no usage at all":                 {events(`{"type":"message_start","message":{}}`, open(0, "text", `"text":"Hi"`), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}`, stop), want{text: "Hi", usage: &messages.Usage{}}},
		"Q53 unknown fields":                  {strings.ReplaceAll(said("Hi"), `"type":"text_delta"`, `"obfuscation":"abc","citations":[1],"type":"text_delta"`), hi},
		"Q53 unknown events":                  {events(start, `{"type":"vendor_event","index":[],"delta":7}`) + "event: other\ndata: {}\n\n" + said("Hi"), hi},
		"Q53 unknown blocks":                  {events(start, open(0, "server_tool_use", `"id":["x"],"text":{"a":1},"input":{}`), input(0, `{"query":"x"}`), shut(0), open(1, "text", `"text":"Hi"`), shut(1), because("end_turn"), stop), hi},
		"Q53 unknown deltas":                  {events(start, open(0, "text", `"text":"Hi"`), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","text":[1],"citation":{}}}`, because("end_turn"), stop), hi},
		"Q54 text that is a number":           {events(start, open(0, "text", ""), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}`, because("end_turn"), stop), want{class: model.ModelOutput, detail: "cannot be read"}},
		"Q54 an index that is text":           {strings.ReplaceAll(said("Hi"), `"index":0`, `"index":"0"`), want{class: model.ModelOutput, detail: "no index"}},
		"Q59 overloaded before the text":      {events(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), want{class: model.Overloaded, detail: "Overloaded"}},
		"Q59 overloaded after the text":       {events(start, open(0, "text", `"text":"Hi"`), `{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`), want{text: "Hi", class: model.Overloaded, detail: "Overloaded"}},
		"Q59 pings anywhere":                  {events(`{"type": "ping"}`) + strings.ReplaceAll(said("Hi"), "\n\n", "\n\n"+events(`{"type": "ping"}`)), hi},
		"Q59 cumulative usage":                {said("Hi"), want{text: "Hi", usage: usage(17, 5, 4, 3, 0)}},
		"Q60 no message_stop":                 {events(start, open(0, "text", `"text":"Hi"`), shut(0), because("end_turn")), want{text: "Hi", class: model.Truncated, detail: "before message_stop"}},
		"Q60 cut after message_start":         {events(start), cut},
		"Q60 cut within a call":               {events(start, tool(0, "toolu_1", "f"), input(0, `{"a":`)), cut},
		"Q60 a billing error within 200":      {`{"type":"error","error":{"type":"billing_error","message":"pay"}}`, want{class: model.Quota, detail: "pay"}},
		"a delta of a block that never began": {events(start, text(0, "Hi"), stop), want{class: model.ModelOutput, detail: "has not begun"}},
		"a delta of another kind of block":    {events(start, open(0, "text", ""), input(0, "{}"), stop), want{class: model.ModelOutput, detail: "cannot be of a block"}},
		"blocks without number":               {events(start) + strings.Repeat(events(open(0, "text", "")), 3000), want{class: model.ModelOutput, detail: "blocks"}},
		"counts that are too large":           {strings.ReplaceAll(said("Hi"), `"output_tokens":5`, `"output_tokens":9223372036854775807,"input_tokens":9223372036854775807`), want{text: "Hi", usage: &messages.Usage{Input: 1<<40 + 7, Output: 1 << 40, CacheRead: 4, CacheWrite: 3, Total: 2<<40 + 7}}},
	} {
		t.Run(name, func(t *testing.T) {
			pieces := []int{0, 17}
			if len(tt.body) > 100_000 {
				pieces = []int{0}
			}
			for _, n := range pieces {
				check(t, call(t.Context(), serve(t, streaming(tt.body, n)), hello()), tt.want)
			}
		})
	}
}

// TestThoughts has reasoning in all its forms, in its place.
func TestThoughts(t *testing.T) {
	body := events(
		start, open(0, "thinking", `"thinking":"","signature":""`), piece(0, "thinking_delta", "thinking", "Let "),
		piece(0, "thinking_delta", "thinking", "me see."), piece(0, "signature_delta", "signature", "SIG"), shut(0),
		open(1, "redacted_thinking", `"data":"OPAQUE=="`), shut(1),
		open(2, "text", `"text":""`), text(2, "Hi"), shut(2),
		open(3, "thinking", `"thinking":"","signature":"ONLY"`), shut(3),
		tool(4, "toolu_1", "f"), input(4, `{"a":1}`), shut(4), because("tool_use"), stop,
	)
	o := call(t.Context(), serve(t, streaming(body, 0)), hello())
	check(t, o, want{
		text: "Hi", stop: messages.StopToolCalls, calls: []messages.ToolCall{{ID: "toolu_1", Name: "f", Arguments: `{"a":1}`}},
		reasoning: []messages.Reasoning{
			{Family: "anthropic", Text: "Let me see.", Signature: "SIG"},
			{Family: "anthropic", Opaque: "OPAQUE=="},
			{Family: "anthropic", Signature: "ONLY"},
		},
	})
	var order []string
	for _, b := range o.Reply.Message.Content {
		switch {
		case b.Reasoning != nil:
			order = append(order, "T")
		case b.ToolCall != nil:
			order = append(order, "C")
		default:
			order = append(order, "t")
		}
	}
	if got := strings.Join(order, ""); got != "TTtTC" {
		t.Errorf("the blocks stand as %s", got)
	}
}

func TestIDsOfCallsDiffer(t *testing.T) {
	o := call(t.Context(), serve(t, streaming(events(start, tool(0, "x", "f"), tool(1, "x", "f"), tool(2, "", "f"), because("tool_use"), stop), 0)), hello())
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	ids := map[string]bool{}
	for _, c := range o.Reply.Message.Calls() {
		ids[c.ID] = true
	}
	if len(ids) != 3 || ids[""] {
		t.Errorf("ids %v", ids)
	}
}

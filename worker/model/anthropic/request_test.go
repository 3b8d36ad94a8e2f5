package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
)

// sent gives the body of the request that r becomes.
func sent(t *testing.T, r model.Request, edit ...func(*anthropic.Config)) string {
	t.Helper()
	body := ""
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body = string(raw)
		if r.URL.Path != "/v1/messages" || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		write(w, said("ok"), 0)
	}, edit...)
	if o := call(t.Context(), p, r); o.Err != nil {
		t.Fatal(o.Err)
	}
	return body
}

// field is one field of a JSON object, compact.
func field(t *testing.T, body, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return string(fields[name])
}

// same compares JSON, whatever the order of keys.
func same(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Error(diff)
	}
}

func noCache(c *anthropic.Config) { c.NoCache = true }

func user(s string) messages.Message {
	return messages.Message{Role: messages.RoleUser, Content: messages.TextContent(s)}
}

func assistant(blocks ...messages.Block) messages.Message {
	return messages.Message{Role: messages.RoleAssistant, Content: blocks}
}

func called(id, name, args string) messages.Block {
	return messages.Block{ToolCall: &messages.ToolCall{ID: id, Name: name, Arguments: args}}
}

func answered(id string, blocks ...messages.Block) messages.Message {
	return messages.Message{Role: messages.RoleTool, Content: []messages.Block{{ToolResult: &messages.ToolResult{CallID: id, Content: blocks}}}}
}

func thought(family, text, signature, opaque string) messages.Block {
	return messages.Block{Reasoning: &messages.Reasoning{Family: family, Text: text, Signature: signature, Opaque: opaque}}
}

func TestMessages(t *testing.T) {
	pixel := &messages.Image{MediaType: "image/png", Data: []byte{1, 2, 3}}
	failed := answered("toolu_2", messages.Block{Text: "no such file"})
	failed.Content[0].ToolResult.IsError = true
	for name, tt := range map[string]struct {
		list []messages.Message
		echo bool
		want string
	}{
		"one": {[]messages.Message{user("hello")}, false, `[{"role":"user","content":[{"type":"text","text":"hello"}]}]`},
		"results of one turn are one message, before what the user says": {
			[]messages.Message{
				user("go"), assistant(messages.Block{Text: "I look."}, called("toolu_1", "f", `{"a":1}`), called("toolu_2", "g", "")),
				user("hurry"), answered("toolu_1", messages.Block{Text: "5"}), failed,
			},
			false,
			`[{"role":"user","content":[{"type":"text","text":"go"}]},
			{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}},{"type":"tool_use","id":"toolu_2","name":"g","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"5"}]},
			{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"no such file"}]},{"type":"text","text":"hurry"}]}]`,
		},
		"images": {
			[]messages.Message{
				{Role: messages.RoleUser, Content: []messages.Block{{Text: "look"}, {Image: pixel}, {Image: &messages.Image{URL: "https://h/x.png"}}}},
				assistant(called("toolu_1", "f", "{}")), answered("toolu_1", messages.Block{Text: "here"}, messages.Block{Image: pixel}),
			},
			false,
			`[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}},{"type":"image","source":{"type":"url","url":"https://h/x.png"}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"here"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}}]}]}]`,
		},
		"messages of one role are merged, empty text is dropped": {
			[]messages.Message{user("a"), user(" \n"), user("b"), assistant(messages.Block{}), user("c"), assistant(messages.Block{Text: "d"}), assistant(messages.Block{Text: "e"}), user("f")},
			false,
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"}]},
			{"role":"assistant","content":[{"type":"text","text":"d"},{"type":"text","text":"e"}]},{"role":"user","content":[{"type":"text","text":"f"}]}]`,
		},
		"an empty result": {
			[]messages.Message{user("a"), assistant(called("toolu_1", "f", "null")), answered("toolu_1", messages.Block{Text: ""})},
			false,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"invalid_arguments":"null"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"}]}]`,
		},
		"thoughts stay where they were": {
			[]messages.Message{user("a"), assistant(
				thought("anthropic", "hm", "SIG", ""), thought("anthropic", "", "", "OPAQUE"), thought("anthropic", "", "ONLY", ""),
				messages.Block{Text: "b"}, thought("anthropic", "unsigned", "", ""), thought("openai", "theirs", "X", ""), called("toolu_1", "f", "{}")), answered("toolu_1")},
			true,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"SIG"},{"type":"redacted_thinking","data":"OPAQUE"},{"type":"thinking","thinking":"","signature":"ONLY"},{"type":"text","text":"b"},{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"}]}]`,
		},
		"thoughts are not sent unasked": {
			[]messages.Message{user("a"), assistant(thought("anthropic", "hm", "SIG", ""), messages.Block{Text: "b"}), user("c")},
			false,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c"}]}]`,
		},
		"Q35 ids and names that the API refuses": {
			[]messages.Message{user("a"), assistant(called("functions.add:0", "math.add", `{"b":2,"a":1}`), called("", "f", "a=1")), answered("functions.add:0"), answered("")},
			false,
			`[{"role":"user","content":[{"type":"text","text":"a"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"functions_add_0_2aab2b9e6b10fe77","name":"math_add_ecef409b9d4ae1ef","input":{"a":1,"b":2}},{"type":"tool_use","id":"_e3b0c44298fc1c14","name":"f","input":{"invalid_arguments":"a=1"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_add_0_2aab2b9e6b10fe77"},{"type":"tool_result","tool_use_id":"_e3b0c44298fc1c14"}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, field(t, sent(t, model.Request{Messages: tt.list, Echo: tt.echo}, noCache), "messages"), tt.want)
		})
	}
}

func TestRefusesWhatTheAPIWould(t *testing.T) {
	img := func(i messages.Image) []messages.Message {
		return []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{{Image: &i}}}}
	}
	for name, tt := range map[string]struct {
		r    model.Request
		want string
	}{
		"nothing":            {model.Request{}, "nothing to answer"},
		"nothing but blanks": {model.Request{Messages: []messages.Message{user(" ")}}, "nothing to answer"},
		"a strange image":    {model.Request{Messages: img(messages.Image{MediaType: "image/bmp", Data: []byte{1}})}, "image/bmp"},
		"an insecure image":  {model.Request{Messages: img(messages.Image{URL: "http://h/x.png"})}, "https://"},
		"a broken schema":    {model.Request{Messages: hello().Messages, Tools: []messages.ToolSpec{{Name: "f", InputSchema: []byte("{")}}}, `tool "f"`},
		"a list as schema":   {model.Request{Messages: hello().Messages, Tools: []messages.ToolSpec{{Name: "f", InputSchema: []byte("[]")}}}, `tool "f"`},
		"a broken format":    {model.Request{Messages: hello().Messages, Format: &model.Format{Schema: []byte("[]")}}, "schema of the reply"},
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
			o := call(t.Context(), p, tt.r)
			e, ok := o.Err.(*model.Error)
			if !ok || e.Class != model.InvalidRequest || !strings.Contains(e.Detail, tt.want) {
				t.Errorf("got %v", o.Err)
			}
		})
	}
}

func TestSystemToolsAndCache(t *testing.T) {
	r := model.Request{
		Model: "own", MaxTokens: 77,
		Messages: []messages.Message{
			{Role: messages.RoleSystem, Content: messages.TextContent("Be brief.")},
			user("a"), assistant(called("toolu_1", "f", "{}")),
			answered("toolu_1", messages.Block{Text: "5"}),
			{Role: messages.RoleSystem, Content: messages.TextContent("Be kind.")},
		},
		Tools: []messages.ToolSpec{
			{Name: "f", Description: "Does.", InputSchema: []byte(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`)},
			{Name: "my.tool", InputSchema: []byte(`{"properties":{}}`)},
			{Name: "g"},
		},
	}
	same(t, sent(t, r), `{"model":"own","max_tokens":77,"stream":true,
		"system":[{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"f","description":"Does.","input_schema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}},
			{"name":"my_tool_bca2c3613c44dc0e","input_schema":{"type":"object","properties":{}}},
			{"name":"g","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"5"}],"cache_control":{"type":"ephemeral"}}]}]}`)
	if body := sent(t, r); !strings.Contains(body, `{"z":{"type":"string"},"a":`) {
		t.Errorf("the schema was put into another order, which the cache minds: %s", body)
	}
	if body := sent(t, r, noCache); strings.Contains(body, "cache_control") {
		t.Errorf("cached: %s", body)
	}
	r.Messages = []messages.Message{user("a"), assistant(messages.Block{Text: "b"}, thought("anthropic", "hm", "SIG", ""))}
	r.Echo = true
	same(t, field(t, sent(t, r), "messages"), `[{"role":"user","content":[{"type":"text","text":"a"}]},
		{"role":"assistant","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}},{"type":"thinking","thinking":"hm","signature":"SIG"}]}]`)
}

func TestNamesComeBack(t *testing.T) {
	r := hello()
	r.Tools = []messages.ToolSpec{{Name: "my.tool"}}
	p := serve(t, streaming(events(start, tool(0, "toolu_1", "my_tool_bca2c3613c44dc0e"), because("tool_use"), stop), 0))
	check(t, call(t.Context(), p, r), want{
		calls: []messages.ToolCall{{ID: "toolu_1", Name: "my.tool", Arguments: "{}"}}, stop: messages.StopToolCalls,
	})
}

func TestSampling(t *testing.T) {
	zero, two := 0.0, 2.0
	turn := []messages.Message{user("a"), assistant(called("toolu_1", "f", "{}")), answered("toolu_1")}
	kept := []messages.Message{user("a"), assistant(thought("anthropic", "hm", "SIG", ""), called("toolu_1", "f", "{}")), answered("toolu_1")}
	const on = `{"type":"enabled","budget_tokens":2000}`
	for name, tt := range map[string]struct {
		r                        model.Request
		thinking, limit          int
		max, temperature, thinks string
	}{
		"defaults":                       {hello(), 0, 0, "8192", "", ""},
		"a limit by configuration":       {hello(), 0, 500, "500", "", ""},
		"a limit of the request":         {model.Request{Messages: hello().Messages, MaxTokens: 9}, 0, 500, "9", "", ""},
		"temperature zero":               {model.Request{Messages: hello().Messages, Temperature: &zero}, 0, 0, "8192", "0", ""},
		"temperature beyond the API's":   {model.Request{Messages: hello().Messages, Temperature: &two}, 0, 0, "8192", "1", ""},
		"thinking has no temperature":    {model.Request{Messages: hello().Messages, Temperature: &zero}, 2000, 0, "10192", "", on},
		"thinking within a small limit":  {model.Request{Messages: hello().Messages, MaxTokens: 3000}, 2000, 0, "3000", "", `{"type":"enabled","budget_tokens":1500}`},
		"no room to think":               {model.Request{Messages: hello().Messages, MaxTokens: 2000, Temperature: &zero}, 2000, 0, "2000", "0", ""},
		"a turn begun without a thought": {model.Request{Messages: turn, Echo: true}, 2000, 0, "10192", "", ""},
		"a turn begun with one":          {model.Request{Messages: kept, Echo: true}, 2000, 0, "10192", "", on},
		"a thought that is not sent":     {model.Request{Messages: kept}, 2000, 0, "10192", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := sent(t, tt.r, func(c *anthropic.Config) { c.Thinking, c.MaxTokens = tt.thinking, tt.limit })
			for name, want := range map[string]string{"max_tokens": tt.max, "temperature": tt.temperature, "thinking": tt.thinks} {
				switch got := field(t, body, name); {
				case want == "" || got == "":
					if got != want {
						t.Errorf("%s is %s, want %q", name, got, want)
					}
				default:
					same(t, got, want)
				}
			}
		})
	}
}

func TestFormat(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":3},"o":{"type":"object","properties":{}}},"required":["n"]}`)
	r := hello()
	r.Format = &model.Format{Name: "x", Schema: schema}
	body := sent(t, r)
	var out struct {
		OutputConfig struct {
			Format struct {
				Type   string         `json:"type"`
				Schema map[string]any `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	f := out.OutputConfig.Format
	if f.Type != "json_schema" || f.Schema["additionalProperties"] != false || f.Schema["type"] != "object" || field(t, body, "system") != "" {
		t.Errorf("%s", body)
	}
	body = sent(t, r, func(c *anthropic.Config) { c.Capabilities = &model.Capabilities{Tools: true} })
	if !strings.Contains(field(t, body, "system"), `minimum`) || field(t, body, "output_config") != "" {
		t.Errorf("by the prompt: %s", body)
	}
	r.Format = &model.Format{}
	if body = sent(t, r); !strings.Contains(field(t, body, "system"), "JSON object") || field(t, body, "output_config") != "" {
		t.Errorf("any object: %s", body)
	}
	for _, odd := range []string{
		`{}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"type":["object","null"]}`, `{"properties":7}`, `{"oneOf":[{"type":"string"}],"enum":[]}`,
		`{"type":"object","properties":{"a":true,"b":null}}`, `{"additionalProperties":{"type":"string"},"minItems":"x"}`,
	} {
		r.Format = &model.Format{Schema: json.RawMessage(odd)}
		o := call(t.Context(), serve(t, streaming(said("{}"), 0)), r)
		if e, ok := o.Err.(*model.Error); o.Err != nil && (!ok || e.Class != model.InvalidRequest) {
			t.Errorf("%s: %v", odd, o.Err)
		}
	}
}

// The API takes schemas that are closed and hold no other keywords than it knows.
func TestSchemasAreClosed(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"n":{"type":"integer","minimum":3,"description":"A number."}},"required":["n"]}`: `{"type":"object","additionalProperties":false,"required":["n"],
			"properties":{"n":{"type":"integer","description":"A number.\n\n{minimum: 3}"}}}`,
		`{"type":["object","null"]}`:                                           `{"type":["object","null"],"additionalProperties":false}`,
		`{"type":"object","additionalProperties":{"type":"object"}}`:           `{"type":"object","additionalProperties":{"type":"object","additionalProperties":false}}`,
		`{"type":"array","minItems":2,"items":{"type":"string","format":"x"}}`: `{"type":"array","description":"{minItems: 2}","items":{"type":"string","description":"{format: \"x\"}"}}`,
		`{"type":"array","minItems":1,"items":true}`:                           `{"type":"array","minItems":1,"items":true}`,
		`{"oneOf":[{"type":"object"},{"type":"string","format":"date"}]}`:      `{"anyOf":[{"type":"object","additionalProperties":false},{"type":"string","format":"date"}]}`,
		`{"$ref":"#/$defs/a","title":"T","$defs":{"a":{"type":"object"}}}`:     `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","additionalProperties":false}}}`,
	} {
		r := hello()
		r.Format = &model.Format{Schema: json.RawMessage(schema)}
		same(t, field(t, sent(t, r), "output_config"), `{"format":{"type":"json_schema","schema":`+want+`}}`)
	}
	r := hello()
	r.Format = &model.Format{Schema: json.RawMessage(`{"properties":{}}`)}
	o := call(t.Context(), serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }), r)
	check(t, o, want{class: model.InvalidRequest, detail: "does not say of what type"})
}

func TestWhatTheModelCannotDo(t *testing.T) {
	can := func(c model.Capabilities) func(*anthropic.Config) {
		return func(conf *anthropic.Config) { conf.Capabilities, conf.Thinking, conf.NoCache = &c, 2000, true }
	}
	pixel := messages.Block{Image: &messages.Image{MediaType: "image/png", Data: []byte{1}}}
	for name, r := range map[string]model.Request{
		"no images": {Messages: []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{pixel}}}},
		"no files":  {Messages: []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{{File: &messages.File{MediaType: messages.TypePDF, Data: []byte("%PDF-")}}}}}},
		"no tools":  {Messages: hello().Messages, Tools: []messages.ToolSpec{{Name: "f"}}},
	} {
		p := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, can(model.Capabilities{}))
		check(t, call(t.Context(), p, r), want{class: model.InvalidRequest, detail: name})
	}
	list := []messages.Message{
		user("a"), assistant(thought("anthropic", "hm", "SIG", ""), called("toolu_1", "f", "{}")),
		answered("toolu_1", pixel, messages.Block{Image: &messages.Image{MediaType: "image/bmp"}}),
	}
	body := sent(t, model.Request{Messages: list, Echo: true, MaxTokens: 9000}, can(model.Capabilities{MaxOutput: 5000}))
	if field(t, body, "max_tokens") != "5000" || strings.Contains(body, "thinking") || strings.Count(body, "cannot see") != 2 {
		t.Errorf("%s", body)
	}
	body = sent(t, model.Request{Messages: list, Echo: true}, can(model.Capabilities{Images: true, Reasoning: true}))
	if strings.Count(body, "cannot see") != 1 || !strings.Contains(body, `"budget_tokens":2000`) || !strings.Contains(body, "SIG") {
		t.Errorf("%s", body)
	}
}

func TestFiles(t *testing.T) {
	body := sent(t, model.Request{Messages: []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{
		{Text: "what?"}, {File: &messages.File{Name: "a.pdf", MediaType: messages.TypePDF, Data: []byte("%PDF-")}},
	}}}}, func(c *anthropic.Config) { c.NoCache = true })
	same(t, field(t, body, "messages"), `[{"role":"user","content":[{"type":"text","text":"what?"},
		{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}]}]`)
}

func TestKeylessEndpoint(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Header["X-Api-Key"]; ok {
			t.Errorf("key %q", v)
		}
		write(w, said("ok"), 0)
	}, func(c *anthropic.Config) { c.APIKey, c.NoAuth = "", true })
	t.Setenv("ANTHROPIC_API_KEY", "of-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "of-the-environment")
	check(t, call(t.Context(), p, hello()), want{text: "ok"})
}

package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
)

func of(f openai.Flavour) func(*openai.Config) {
	return func(c *openai.Config) { c.Flavour = f }
}

func seeing(c *openai.Config) {
	c.Capabilities = &model.Capabilities{Tools: true, Streaming: true, Images: true}
}

// exchange is a turn with a call, as it is in the request that follows it.
func turn(id string, more ...messages.Block) []messages.Message {
	return []messages.Message{
		{Role: messages.RoleUser, Content: messages.TextContent("go")},
		{Role: messages.RoleAssistant, Content: append(more, messages.Block{ToolCall: &messages.ToolCall{ID: id, Name: "f", Arguments: "{}"}})},
		{Role: messages.RoleTool, Content: []messages.Block{{ToolResult: &messages.ToolResult{CallID: id, Content: messages.TextContent("ok")}}}},
		{Role: messages.RoleAssistant, Content: messages.TextContent("done")},
	}
}

// dialectCase is a request that a server would refuse without its quirk being known: refuses says why it does.
type dialectCase struct {
	name     string
	edit     []func(*openai.Config)
	messages []messages.Message
	echo     bool
	refuses  func(body map[string]any) string
}

func dialectCases() []dialectCase {
	toolTurn := func(body map[string]any) (assistant, result map[string]any) {
		list := body["messages"].([]any)
		return list[1].(map[string]any), list[2].(map[string]any)
	}
	ids := func(body map[string]any) (call, result string) {
		a, r := toolTurn(body)
		return a["tool_calls"].([]any)[0].(map[string]any)["id"].(string), r["tool_call_id"].(string)
	}
	return []dialectCase{
		{"Q35 ids go back as they came", nil, turn("functions.add:0"), false, func(body map[string]any) string {
			if call, result := ids(body); call != "functions.add:0" || result != call {
				return "ids " + call + ", " + result
			}
			return ""
		}},
		{"Q35 an id longer than OpenAI takes", []func(*openai.Config){of(openai.OpenAI)}, turn(strings.Repeat("x", 100)), false, func(body map[string]any) string {
			if call, result := ids(body); len(call) > 40 || result != call {
				return "ids " + call + ", " + result
			}
			return ""
		}},
		{"Q36 Mistral's ids", []func(*openai.Config){of(openai.Mistral)}, turn("toolu_01A2b3C4d5"), false, func(body map[string]any) string {
			call, result := ids(body)
			if len(call) != 9 || strings.ContainsFunc(call, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) || result != call {
				return "ids " + call + ", " + result
			}
			return ""
		}},
		{"Q36 Mistral's own ids", []func(*openai.Config){of(openai.Mistral)}, turn("Ab3dEf7h9"), false, func(body map[string]any) string {
			if call, result := ids(body); call != "Ab3dEf7h9" || result != call {
				return "ids " + call + ", " + result
			}
			return ""
		}},
		{"Q55 DeepSeek wants reasoning_content everywhere", []func(*openai.Config){of(openai.DeepSeek)}, turn("x", thought(openai.DeepSeek, "reasoning_content", "hm")), true, func(body map[string]any) string {
			for i, want := range map[int]string{1: "hm", 3: ""} {
				if got, ok := body["messages"].([]any)[i].(map[string]any)["reasoning_content"]; !ok || got != want {
					return "The reasoning_content in the thinking mode must be passed back to the API."
				}
			}
			return ""
		}},
		{"Q57 content beside tool calls", nil, turn("x"), false, func(body map[string]any) string {
			for _, m := range body["messages"].([]any) {
				if _, ok := m.(map[string]any)["content"].(string); !ok {
					return "content must be a string"
				}
			}
			return ""
		}},
		{"Q58 nothing that strict servers do not know", nil, turn("x"), false, func(body map[string]any) string {
			return unknown(body, "model", "messages", "stream", "stream_options", "temperature", "max_tokens", "tools")
		}},
		{"Q58 Mistral forbids stream_options", []func(*openai.Config){of(openai.Mistral)}, turn("x"), false, func(body map[string]any) string {
			return unknown(body, "model", "messages", "stream", "temperature", "max_tokens", "tools")
		}},
	}
}

func unknown(body map[string]any, known ...string) string {
	for _, k := range known {
		delete(body, k)
	}
	for k := range body {
		return "Extra inputs are not permitted: " + k
	}
	return ""
}

// thought is reasoning as the provider has it in a reply.
func thought(f openai.Flavour, as, text string) messages.Block {
	raw, _ := json.Marshal(map[string]string{"flavour": string(f), "as": as})
	return messages.Block{Reasoning: &messages.Reasoning{Family: "openai", Text: text, Opaque: string(raw)}}
}

func TestDialects(t *testing.T) {
	for _, tt := range dialectCases() {
		t.Run(tt.name, func(t *testing.T) {
			zero := 0.0
			_, body := sent(t, model.Request{
				Messages: tt.messages, Echo: tt.echo, Temperature: &zero, MaxTokens: 9,
				Tools: []messages.ToolSpec{{Name: "f", InputSchema: []byte(`{"type":"object"}`)}},
			}, tt.edit...)
			if why := tt.refuses(body); why != "" {
				t.Error(why)
			}
		})
	}
}

// echoCase is a reply with reasoning, and what the message of the model must look like when it goes back.
type echoCase struct {
	name    string
	flavour openai.Flavour
	reply   string
	want    string // JSON of the message without role and tool calls' usual fields
}

func echoCases() []echoCase {
	called := calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`)
	end := finish("tool_calls")
	const plain = `{"content":""}`
	return []echoCase{
		{"reasoning_content", openai.Compatible, data(delta(`"reasoning_content":"h"`), delta(`"reasoning_content":"m"`), called, end), `{"content":"","reasoning_content":"hm"}`},
		{"reasoning", openai.Groq, data(delta(`"reasoning":"hm"`), called, end), `{"content":"","reasoning":"hm"}`},
		{
			"reasoning_details", openai.OpenRouter,
			data(
				delta(`"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","format":"anthropic-claude-v1","index":0,"signature":null}]`),
				delta(`"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","format":"anthropic-claude-v1","index":0}]`),
				delta(`"reasoning_details":[{"type":"reasoning.text","signature":"sig","index":0}]`),
				delta(`"reasoning_details":[{"type":"reasoning.encrypted","data":"AA","id":"rs_1","index":1,"format":"openai-responses-v1"}]`),
				delta(`"reasoning_details":[{"type":"reasoning.summary","summary":"s","id":"rs_1","index":1}]`), called, end,
			),
			`{"content":"","reasoning_details":[
				{"type":"reasoning.text","text":"hm","format":"anthropic-claude-v1","index":0,"signature":"sig"},
				{"type":"reasoning.encrypted","data":"AA","id":"rs_1","index":1,"format":"openai-responses-v1"},
				{"type":"reasoning.summary","summary":"s","id":"rs_1","index":1}]}`,
		},
		{"details without an index", openai.OpenRouter, data(delta(`"reasoning_details":[{"type":"reasoning.text","text":"h"}]`), delta(`"reasoning_details":{"type":"reasoning.text","text":"m"}`), called, end), `{"content":"","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`},
		{"Mistral's thinking", openai.Mistral, data(delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), text("a"), called, end), `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}`},
		{
			"Q56 Gemini's thought signatures", openai.Compatible,
			data(calls(`{"index":0,"id":"w","function":{"name":"f","arguments":"{\"a\":1}{\"a\":2}"}}`), calls(`{"index":1,"id":"x","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}`), end),
			`{"content":"","extra_content":{"2":{"google":{"thought_signature":"sig"}}}}`,
		},
		{"think marks stay away", openai.Compatible, data(text("<think>hm</think>a"), called, end), `{"content":"a"}`},
		{"OpenAI takes none", openai.OpenAI, data(delta(`"reasoning_content":"hm"`), called, end), plain},
	}
}

func TestEcho(t *testing.T) {
	for _, tt := range echoCases() {
		t.Run(tt.name, func(t *testing.T) {
			o := call(t.Context(), serve(t, streaming(tt.reply, 0), of(tt.flavour)), hello())
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			raw, err := json.Marshal(o.Reply.Message) // as it is recorded
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, &o.Reply.Message); err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, returned(t, o.Reply.Message, true, tt.flavour)); diff != "" {
				t.Error(diff)
			}
			delete(want, "reasoning")
			delete(want, "reasoning_content")
			delete(want, "reasoning_details")
			delete(want, "extra_content")
			want["content"] = o.Reply.Message.Text()
			if diff := cmp.Diff(want, returned(t, o.Reply.Message, false, tt.flavour)); diff != "" {
				t.Errorf("without echo: %s", diff)
			}
			other := openai.OpenRouter
			if tt.flavour == other {
				other = openai.Groq
			}
			if diff := cmp.Diff(want, returned(t, o.Reply.Message, true, other)); diff != "" {
				t.Errorf("to another flavour: %s", diff)
			}
			for i := range o.Reply.Message.Content {
				if r := o.Reply.Message.Content[i].Reasoning; r != nil {
					r.Family = "anthropic"
				}
			}
			if diff := cmp.Diff(want, returned(t, o.Reply.Message, true, tt.flavour)); diff != "" {
				t.Errorf("of another family: %s", diff)
			}
		})
	}
}

// returned sends a message of the model back and gives what the server sees of it.
func returned(t *testing.T, m messages.Message, echo bool, f openai.Flavour) map[string]any {
	t.Helper()
	_, body := sent(t, model.Request{Messages: []messages.Message{hello().Messages[0], m}, Echo: echo}, of(f))
	got := body["messages"].([]any)[1].(map[string]any)
	extras := map[string]any{}
	for i, c := range got["tool_calls"].([]any) {
		if extra, ok := c.(map[string]any)["extra_content"]; ok {
			extras[string(rune('0'+i))] = extra
		}
	}
	delete(got, "role")
	delete(got, "tool_calls")
	if len(extras) > 0 {
		got["extra_content"] = extras
	}
	return got
}

func TestReasoningThatIsNotOursIsNotSent(t *testing.T) {
	for name, r := range map[string]messages.Reasoning{
		"no opaque part":    {Family: "openai", Text: "hm"},
		"another's":         {Family: "openai", Text: "hm", Opaque: "EqQB"},
		"unknown place":     {Family: "openai", Text: "hm", Opaque: `{"flavour":"compatible","as":"role"}`},
		"a call beyond all": {Family: "openai", Opaque: `{"flavour":"compatible","as":"extra_content","call":7,"extra":{}}`},
		"a call before all": {Family: "openai", Opaque: `{"flavour":"compatible","as":"extra_content","call":-1,"extra":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := messages.Message{Role: messages.RoleAssistant, Content: []messages.Block{
				{Reasoning: &r}, {ToolCall: &messages.ToolCall{ID: "x", Name: "f", Arguments: "{}"}},
			}}
			if diff := cmp.Diff(map[string]any{"content": ""}, returned(t, m, true, openai.Compatible)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImages(t *testing.T) {
	png := messages.Block{Image: &messages.Image{MediaType: "image/png", Data: []byte("abc")}}
	remote := messages.Block{Image: &messages.Image{URL: "https://host/a.png"}}
	result := func(id string, content ...messages.Block) messages.Block {
		return messages.Block{ToolResult: &messages.ToolResult{CallID: id, Content: content}}
	}
	part := func(url string) any {
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}}
	}
	words := func(s string) any { return map[string]any{"type": "text", "text": s} }
	const inline = "data:image/png;base64,YWJj"
	user := func(content any) any { return map[string]any{"role": "user", "content": content} }
	tool := func(id string, content any) any {
		return map[string]any{"role": "tool", "tool_call_id": id, "content": content}
	}
	asked := []messages.Message{
		{Role: messages.RoleTool, Content: []messages.Block{result("x", messages.Block{Text: "seen"}, png), result("y", messages.Block{Text: "b"})}},
		{Role: messages.RoleTool, Content: []messages.Block{result("z", remote)}},
		{Role: messages.RoleUser, Content: messages.TextContent("and?")},
	}
	for name, tt := range map[string]struct {
		edit     []func(*openai.Config)
		messages []messages.Message
		want     []any
	}{
		"of the user": {[]func(*openai.Config){seeing}, []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{{Text: "what?"}, png, {}, remote}}}, []any{
			user([]any{words("what?"), part(inline), part("https://host/a.png")}),
		}},
		"alone": {[]func(*openai.Config){seeing}, []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{png}}}, []any{user([]any{part(inline)})}},
		"of tools, after all results": {[]func(*openai.Config){seeing}, asked, []any{
			tool("x", "seen"), tool("y", "b"), tool("z", "The image follows."),
			user([]any{words("Shown by the tool call x:"), part(inline)}), user([]any{words("Shown by the tool call z:"), part("https://host/a.png")}), user("and?"),
		}},
		"of tools, at the end": {[]func(*openai.Config){seeing}, asked[1:2], []any{
			tool("z", "The image follows."), user([]any{words("Shown by the tool call z:"), part("https://host/a.png")}),
		}},
		"of tools, to Mistral": {[]func(*openai.Config){of(openai.Mistral)}, []messages.Message{{Role: messages.RoleTool, Content: []messages.Block{result("Ab3dEf7h9", messages.Block{Text: "seen"}, png)}}}, []any{
			tool("Ab3dEf7h9", []any{words("seen"), part(inline)}),
		}},
		"of tools, to the blind": {nil, asked[:2], []any{
			tool("x", "seen [an image that this model cannot see]"), tool("y", "b"), tool("z", "[an image that this model cannot see]"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := sent(t, model.Request{Messages: tt.messages}, tt.edit...)
			if diff := cmp.Diff(tt.want, body["messages"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	pdf := messages.Block{File: &messages.File{Name: "a.pdf", MediaType: messages.TypePDF, Data: []byte("%PDF-")}}
	png := messages.Block{Image: &messages.Image{MediaType: "image/png", Data: []byte("abc")}}
	file := map[string]any{"type": "file", "file": map[string]any{"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}
	words := map[string]any{"type": "text", "text": "what?"}
	image := map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,YWJj"}}
	for name, tt := range map[string]struct {
		content []messages.Block
		want    []any
	}{
		"beside text":            {[]messages.Block{{Text: "what?"}, pdf}, []any{file, words}},
		"beside text and images": {[]messages.Block{{Text: "what?"}, pdf, png}, []any{file, words, image}},
	} {
		t.Run(name, func(t *testing.T) {
			first := messages.Message{Role: messages.RoleSystem, Content: messages.TextContent("Read.")}
			_, body := sent(t, model.Request{Messages: []messages.Message{first, {Role: messages.RoleUser, Content: tt.content}}}, of(openai.OpenAI))
			want := []any{map[string]any{"role": "system", "content": "Read."}, map[string]any{"role": "user", "content": tt.want}}
			if diff := cmp.Diff(want, body["messages"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusedBeforeSending(t *testing.T) {
	image := func(i messages.Image) model.Request {
		return model.Request{Messages: []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{{Image: &i}}}}}
	}
	for name, tt := range map[string]struct {
		edit    func(*openai.Config)
		request model.Request
		detail  string
	}{
		"an image to the blind":         {of(openai.Compatible), image(messages.Image{URL: "https://h/a"}), "takes no images"},
		"a file to one that reads none": {of(openai.Azure), model.Request{Messages: []messages.Message{{Role: messages.RoleUser, Content: []messages.Block{{Text: "x"}, {File: &messages.File{MediaType: messages.TypePDF, Data: []byte("%PDF-")}}}}}}, "takes no files"},
		"an image over http":            {seeing, image(messages.Image{URL: "http://h/a"}), "https"},
		"an image from a file":          {seeing, image(messages.Image{URL: "file:///etc/passwd"}), "https"},
		"an image of nothing":           {seeing, image(messages.Image{}), "https"},
		"bytes that are text":           {seeing, image(messages.Image{MediaType: "text/html", Data: []byte("a")}), "media type"},
		"bytes of two types":            {seeing, image(messages.Image{MediaType: "image/png;x,", Data: []byte("a")}), "media type"},
		"tools where none go":           {func(c *openai.Config) { c.Capabilities = &model.Capabilities{} }, model.Request{Tools: []messages.ToolSpec{{Name: "f"}}}, "no tools"},
		"not a schema":                  {of(openai.Compatible), model.Request{Format: &model.Format{Schema: []byte("{")}}, "schema"},
		"a deployment as a path":        {of(openai.Azure), model.Request{Model: "../x?y="}, "deployment"},
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, tt.edit)
			check(t, call(t.Context(), p, tt.request), want{class: model.InvalidRequest, detail: tt.detail})
		})
	}
}

func TestFormat(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`)
	asSchema := func(name string) any {
		var s any
		_ = json.Unmarshal(schema, &s)
		return map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": name, "strict": false, "schema": s}}
	}
	object := map[string]any{"type": "json_object"}
	can := func(c model.Capabilities) func(*openai.Config) {
		c.Tools, c.Streaming = true, true
		return func(conf *openai.Config) { conf.Capabilities = &c }
	}
	tools := []messages.ToolSpec{{Name: "f"}}
	for name, tt := range map[string]struct {
		edit   func(*openai.Config)
		format *model.Format
		tools  []messages.ToolSpec
		want   any
	}{
		"none":                  {of(openai.OpenAI), nil, nil, nil},
		"schema":                {of(openai.OpenAI), &model.Format{Name: "out put/1", Schema: schema}, nil, asSchema("out_put_1")},
		"schema without a name": {of(openai.OpenAI), &model.Format{Schema: schema}, nil, asSchema("reply")},
		"any object":            {of(openai.OpenAI), &model.Format{}, nil, object},
		"schema to JSON mode":   {can(model.Capabilities{JSONMode: true}), &model.Format{Schema: schema}, nil, object},
		"schema to DeepSeek":    {of(openai.DeepSeek), &model.Format{Schema: schema}, nil, object},
		"schema to nothing":     {can(model.Capabilities{}), &model.Format{Schema: schema}, nil, nil},
		"object to schema only": {can(model.Capabilities{JSONSchema: true}), &model.Format{}, nil, nil},
		"beside tools":          {of(openai.OpenAI), &model.Format{Schema: schema}, tools, asSchema("reply")},
		"beside tools of Groq":  {of(openai.Groq), &model.Format{}, tools, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := hello()
			r.Format, r.Tools = tt.format, tt.tools
			_, body := sent(t, r, tt.edit)
			if diff := cmp.Diff(tt.want, body["response_format"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(*openai.Config)
		field string
		want  float64
	}{
		"compatible":        {of(openai.Compatible), "max_tokens", 99},
		"OpenAI":            {of(openai.OpenAI), "max_completion_tokens", 99},
		"the model's limit": {func(c *openai.Config) { c.Capabilities = &model.Capabilities{Streaming: true, MaxOutput: 50} }, "max_tokens", 50},
	} {
		t.Run(name, func(t *testing.T) {
			r := hello()
			r.MaxTokens = 99
			if _, body := sent(t, r, tt.edit); body[tt.field] != tt.want {
				t.Errorf("sent %v", body)
			}
		})
	}
}

func TestAServerThatDoesNotStream(t *testing.T) {
	p := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body["stream"] != false || body["stream_options"] != nil {
			t.Errorf("sent %v (%v)", body, err)
		}
		write(w, `{"model":"m-1","choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, 0)
	}, func(c *openai.Config) { c.Capabilities = &model.Capabilities{} })
	check(t, call(t.Context(), p, hello()), want{text: "a", usage: messages.Usage{Input: 1, Output: 1, Total: 2}})
}

func TestAzure(t *testing.T) {
	for name, tt := range map[string]struct {
		model, version string
		want           string
	}{
		"default version": {"", "", "/openai/deployments/test-model/chat/completions?api-version=2024-10-21"},
		"both named":      {"gpt-3.5_x", "2025-04-01-preview", "/openai/deployments/gpt-3.5_x/chat/completions?api-version=2025-04-01-preview"},
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if got := strings.TrimPrefix(r.URL.String(), "/v1"); got != tt.want {
					t.Errorf("asked for %s", got)
				}
				if r.Header.Get("Api-Key") != key || r.Header.Get("Authorization") != "" {
					t.Errorf("headers %v", r.Header)
				}
				write(w, data(`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`, text("a"), finish("stop"), usage), 0)
			}, of(openai.Azure), func(c *openai.Config) { c.APIVersion = tt.version })
			r := hello()
			r.Model = tt.model
			check(t, call(t.Context(), p, r), want{text: "a", usage: messages.Usage{Input: 10, Output: 5, Total: 15}})
		})
	}
}

func TestFlavourByHost(t *testing.T) {
	for base, tt := range map[string]struct{ images, schema bool }{
		"":                                        {true, true},
		"https://api.openai.com/v1":               {true, true},
		"https://openrouter.ai/api/v1":            {true, true},
		"https://res.openai.azure.com":            {true, true},
		"https://api.groq.com/openai/v1":          {false, false},
		"https://api.deepseek.com":                {false, false},
		"https://api.mistral.ai/v1":               {true, true},
		"https://integrate.api.nvidia.com/v1":     {false, true},
		"http://127.0.0.1:11434/v1":               {false, true},
		"https://api.openai.com.evil.example/v1":  {false, true},
		"https://res.openai.azure.com/openai/v1/": {false, true},
	} {
		p, err := openai.New(openai.Config{Endpoint: httpstream.Endpoint{BaseURL: base, APIKey: key}})
		if err != nil {
			t.Fatal(err)
		}
		c := p.Capabilities()
		if c.Images != tt.images || c.JSONSchema != tt.schema || !c.Tools || !c.Streaming {
			t.Errorf("%s: %+v", base, c)
		}
		p.Close()
	}
}

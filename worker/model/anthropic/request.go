package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	api "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// request is the API's form of r.
func (x *exchange) request(r model.Request) (*api.MessageNewParams, error) {
	c := &x.provider.config
	can := c.Capabilities
	out := &api.MessageNewParams{Model: r.Model, MaxTokens: limit(c, r.MaxTokens)}
	w := writer{out: out, echo: r.Echo && can.Reasoning, images: can.Images, files: can.Files}
	for i := range r.Messages {
		if err := w.add(&r.Messages[i]); err != nil {
			return nil, err
		}
	}
	if len(out.Messages) == 0 {
		return nil, invalid("the conversation holds nothing to answer")
	}
	for i := range out.Messages { // the API wants the results of tools before anything else of their message
		slices.SortStableFunc(out.Messages[i].Content, func(a, b api.ContentBlockParamUnion) int {
			return rank(&a) - rank(&b)
		})
	}
	if len(r.Tools) > 0 && !can.Tools {
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no tools",
			Hint: "choose a model with tools for the agent, or an agent without tools for the model",
		}
	}
	for i := range r.Tools {
		t, err := tool(&r.Tools[i])
		if err != nil {
			return nil, err
		}
		out.Tools = append(out.Tools, api.ToolUnionParam{OfTool: t})
	}
	if r.Format != nil {
		if err := format(out, r.Format, can.JSONSchema); err != nil {
			return nil, err
		}
	}
	if budget := thinking(out, c.Thinking); budget > 0 && can.Reasoning {
		out.Thinking = api.ThinkingConfigParamOfEnabled(budget)
	} else if r.Temperature != nil {
		out.Temperature = param.NewOpt(min(*r.Temperature, 1)) // other providers go up to 2
	}
	if !c.NoCache {
		cache(out)
	}
	out.SetExtraFields(map[string]any{"stream": true})
	return out, nil
}

func invalid(format string, args ...any) error {
	return &model.Error{
		Class: model.InvalidRequest, Detail: fmt.Sprintf(format, args...), Hint: "correct it where the agent or the task says so",
	}
}

// limit is how long a reply may be.
func limit(c *Config, asked int) int64 {
	n := c.MaxTokens
	if asked > 0 {
		n = asked
	}
	if most := c.Capabilities.MaxOutput; most > 0 {
		n = min(n, most)
	}
	return int64(n)
}

func rank(b *api.ContentBlockParamUnion) int {
	if b.OfToolResult != nil {
		return 0
	}
	return 1
}

// writer puts messages into the API's form.
type writer struct {
	out    *api.MessageNewParams
	echo   bool // send reasoning back
	images bool // the model sees them
	files  bool // the model reads them
}

// add appends a message. The API knows two roles, which must alternate: system messages become the system prompt,
// results of tools are the user's, and messages of the same role in a row become one.
func (w *writer) add(m *messages.Message) error {
	out, role := w.out, api.MessageParamRoleUser
	switch m.Role {
	case messages.RoleSystem:
		if text := m.Text(); !blank(text) {
			out.System = append(out.System, api.TextBlockParam{Text: text})
		}
		return nil
	case messages.RoleAssistant:
		role = api.MessageParamRoleAssistant
	case messages.RoleUser, messages.RoleTool:
	}
	var blocks []api.ContentBlockParamUnion
	for i := range m.Content {
		b, err := w.block(&m.Content[i])
		if err != nil {
			return err
		}
		blocks = append(blocks, b...)
	}
	if len(blocks) == 0 {
		return nil
	}
	if n := len(out.Messages); n > 0 && out.Messages[n-1].Role == role {
		out.Messages[n-1].Content = append(out.Messages[n-1].Content, blocks...)
		return nil
	}
	out.Messages = append(out.Messages, api.MessageParam{Role: role, Content: blocks})
	return nil
}

// blank reports whether the API refuses a text.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// block is a block in the API's form; none for what must not be sent.
func (w *writer) block(b *messages.Block) ([]api.ContentBlockParamUnion, error) {
	switch {
	case b.Image != nil && !w.images:
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no images",
			Hint: "choose a model that sees images, and say in its provider's capabilities that it does",
		}
	case b.Image != nil:
		img, err := image(b.Image)
		return []api.ContentBlockParamUnion{{OfImage: img}}, err
	case b.File != nil && !w.files:
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no files",
			Hint: "choose a model that reads PDF, and say in its provider's capabilities that it does",
		}
	case b.File != nil:
		return []api.ContentBlockParamUnion{{OfDocument: &api.DocumentBlockParam{
			Title:  param.NewOpt(b.File.Title()),
			Source: api.DocumentBlockParamSourceUnion{OfBase64: &api.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(b.File.Data)}},
		}}}, nil
	case b.Reasoning != nil:
		return w.reasoning(b.Reasoning), nil
	case b.ToolCall != nil:
		return []api.ContentBlockParamUnion{
			api.NewToolUseBlock(toolID(b.ToolCall.ID), arguments(b.ToolCall.Arguments), plain(b.ToolCall.Name)),
		}, nil
	case b.ToolResult != nil:
		return []api.ContentBlockParamUnion{{OfToolResult: w.result(b.ToolResult)}}, nil
	case blank(b.Text):
		return nil, nil
	default:
		return []api.ContentBlockParamUnion{api.NewTextBlock(b.Text)}, nil
	}
}

// reasoning is sent back as it came, and never without the proof that it is the provider's.
func (w *writer) reasoning(r *messages.Reasoning) []api.ContentBlockParamUnion {
	switch {
	case !w.echo || r.Family != family:
		return nil
	case r.Opaque != "":
		return []api.ContentBlockParamUnion{api.NewRedactedThinkingBlock(r.Opaque)}
	case r.Signature != "":
		return []api.ContentBlockParamUnion{api.NewThinkingBlock(r.Signature, r.Text)}
	default:
		return nil
	}
}

// arguments is what a model is shown of the arguments that it wrote. The API takes objects only, so a text that is
// none is wrapped in one.
func arguments(args string) any {
	if blank(args) {
		return map[string]string{}
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &object) == nil && object != nil {
		return json.RawMessage(args)
	}
	return map[string]string{"invalid_arguments": args}
}

// unseen replaces an image in the result of a tool, which cannot be changed afterwards.
const unseen = "[an image that this model cannot see]"

func (w *writer) result(r *messages.ToolResult) *api.ToolResultBlockParam {
	out := &api.ToolResultBlockParam{ToolUseID: toolID(r.CallID)}
	if r.IsError {
		out.IsError = param.NewOpt(true)
	}
	for i := range r.Content {
		b := r.Content[i]
		if b.Image != nil {
			img, err := image(b.Image)
			if err == nil && w.images {
				out.Content = append(out.Content, api.ToolResultBlockParamContentUnion{OfImage: img})
				continue
			}
			b.Text = unseen
		}
		if !blank(b.Text) {
			out.Content = append(out.Content, api.ToolResultBlockParamContentUnion{OfText: &api.TextBlockParam{Text: b.Text}})
		}
	}
	return out
}

func image(i *messages.Image) (*api.ImageBlockParam, error) {
	if i.URL != "" {
		if !strings.HasPrefix(i.URL, "https://") {
			return nil, invalid("an image's address must begin with https://")
		}
		return &api.ImageBlockParam{Source: api.ImageBlockParamSourceUnion{OfURL: &api.URLImageSourceParam{URL: i.URL}}}, nil
	}
	switch i.MediaType {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		return nil, invalid("an image is of type %.100q; it must be image/jpeg, image/png, image/gif or image/webp", i.MediaType)
	}
	return &api.ImageBlockParam{Source: api.ImageBlockParamSourceUnion{OfBase64: &api.Base64ImageSourceParam{
		MediaType: api.Base64ImageSourceMediaType(i.MediaType), Data: base64.StdEncoding.EncodeToString(i.Data),
	}}}, nil
}

// tool keeps the schema as it was written, since the cache goes by the bytes. The API wants its type to be said.
func tool(t *messages.ToolSpec) (*api.ToolParam, error) {
	schema := t.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil || object == nil {
		return nil, invalid("the input schema of tool %q is not a JSON object", t.Name)
	}
	if _, ok := object["type"]; !ok {
		object["type"] = json.RawMessage(`"object"`)
		var err error
		if schema, err = json.Marshal(object); err != nil {
			return nil, invalid("the input schema of tool %q: %v", t.Name, err)
		}
	}
	out := &api.ToolParam{Name: plain(t.Name), InputSchema: param.Override[api.ToolInputSchemaParam](schema)}
	if t.Description != "" {
		out.Description = param.NewOpt(t.Description)
	}
	return out, nil
}

// format asks for JSON: by the API's structured output when there is a schema and the model has it, and by the prompt
// alone otherwise.
func format(out *api.MessageNewParams, f *model.Format, native bool) error {
	if len(f.Schema) == 0 {
		out.System = append(out.System, api.TextBlockParam{Text: "Answer with one JSON object and nothing else."})
		return nil
	}
	var schema map[string]any
	if json.Unmarshal(f.Schema, &schema) != nil || schema == nil {
		return invalid("the schema of the reply is not a JSON object")
	}
	if !native {
		out.System = append(out.System, api.TextBlockParam{
			Text: "Answer with one JSON object and nothing else. It must be valid against this JSON Schema:\n" + string(f.Schema),
		})
		return nil
	}
	// The API refuses schemas that leave an object open or use keywords that it does not know; the SDK closes the
	// objects, and tells the model of the keywords in descriptions.
	closed, ok := api.BetaJSONSchemaOutputFormat(schema).Schema.(map[string]any)
	if !ok {
		return invalid("the schema of the reply cannot be put into the form that the API takes")
	}
	out.OutputConfig.Format = api.JSONOutputFormatParam{Schema: closed}
	return nil
}

// thinking is the budget of a request; 0 is none. A turn that called tools without thinking cannot be continued with
// it: the API wants its first block to be a thought.
func thinking(out *api.MessageNewParams, budget int) int64 {
	b := min(int64(budget), out.MaxTokens/2)
	if b < minThinking {
		return 0
	}
	n := len(out.Messages)
	if n > 1 && out.Messages[n-1].Content[0].OfToolResult != nil {
		if first := out.Messages[n-2].Content[0]; first.OfThinking == nil && first.OfRedactedThinking == nil {
			return 0
		}
	}
	return b
}

// cache marks the ends of what the next request will begin with too.
func cache(out *api.MessageNewParams) {
	mark := api.NewCacheControlEphemeralParam()
	if n := len(out.Tools); n > 0 {
		out.Tools[n-1].OfTool.CacheControl = mark
	}
	if n := len(out.System); n > 0 {
		out.System[n-1].CacheControl = mark
	}
	last := out.Messages[len(out.Messages)-1].Content
	for i := range slices.Backward(last) {
		if at := last[i].GetCacheControl(); at != nil { // thoughts have none
			*at = mark
			return
		}
	}
}

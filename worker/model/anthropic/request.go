package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// request is the API's form of r.
func (x *exchange) request(r model.Request) (*body, error) {
	c := &x.provider.config
	can := c.Capabilities
	out := &body{Model: r.Model, MaxTokens: limit(c, r.MaxTokens), Stream: true}
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
		slices.SortStableFunc(out.Messages[i].Content, func(a, b block) int { return rank(&a) - rank(&b) })
	}
	if len(r.Tools) > 0 && !can.Tools {
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no tools",
			Hint: "choose a model with tools for the agent, or an agent without tools for the model",
		}
	}
	for i := range r.Tools {
		t, err := toolOf(&r.Tools[i])
		if err != nil {
			return nil, err
		}
		out.Tools = append(out.Tools, t)
	}
	if r.Format != nil {
		if err := format(out, r.Format, can.JSONSchema); err != nil {
			return nil, err
		}
	}
	if budget := budgetOf(out, c.Thinking); budget > 0 && can.Reasoning {
		out.Thinking = &thinking{Type: "enabled", BudgetTokens: budget}
	} else if r.Temperature != nil {
		out.Temperature = new(min(*r.Temperature, 1)) // other providers go up to 2
	}
	if !c.NoCache {
		cache(out)
	}
	return out, nil
}

func invalid(format string, args ...any) error {
	return &model.Error{
		Class: model.InvalidRequest, Detail: fmt.Sprintf(format, args...), Hint: "correct it where the agent or the task says so",
	}
}

// limit is how long a reply may be.
func limit(c *Config, asked int) int {
	n := c.MaxTokens
	if asked > 0 {
		n = asked
	}
	if most := c.Capabilities.MaxOutput; most > 0 {
		n = min(n, most)
	}
	return n
}

func rank(b *block) int {
	if b.Type == resultBlock {
		return 0
	}
	return 1
}

// writer puts messages into the API's form.
type writer struct {
	out    *body
	echo   bool // send reasoning back
	images bool // the model sees them
	files  bool // the model reads them
}

// add appends a message. The API knows two roles, which must alternate: system messages become the system prompt,
// results of tools are the user's, and messages of the same role in a row become one.
func (w *writer) add(m *messages.Message) error {
	out, role := w.out, roleUser
	switch m.Role {
	case messages.RoleSystem:
		if text := m.Text(); !blank(text) {
			out.System = append(out.System, said(text))
		}
		return nil
	case messages.RoleAssistant:
		role = roleAssistant
	case messages.RoleUser, messages.RoleTool:
	}
	var blocks []block
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
	out.Messages = append(out.Messages, turn{Role: role, Content: blocks})
	return nil
}

// blank reports whether the API refuses a text.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// block is a block in the API's form; none for what must not be sent.
func (w *writer) block(b *messages.Block) ([]block, error) {
	switch {
	case b.Image != nil && !w.images:
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no images",
			Hint: "choose a model that sees images, and say in its provider's capabilities that it does",
		}
	case b.Image != nil:
		img, err := image(b.Image)
		return []block{img}, err
	case b.File != nil && !w.files:
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no files",
			Hint: "choose a model that reads PDF, and say in its provider's capabilities that it does",
		}
	case b.File != nil:
		pdf := &source{Type: "base64", MediaType: messages.TypePDF, Data: b.File.Data}
		return []block{{Type: documentBlock, Title: b.File.Title(), Source: pdf}}, nil
	case b.Reasoning != nil:
		return w.reasoning(b.Reasoning), nil
	case b.ToolCall != nil:
		c := b.ToolCall
		return []block{{Type: toolBlock, ID: toolID(c.ID), Name: plain(c.Name), Input: arguments(c.Arguments)}}, nil
	case b.ToolResult != nil:
		return []block{w.result(b.ToolResult)}, nil
	case blank(b.Text):
		return nil, nil
	default:
		return []block{said(b.Text)}, nil
	}
}

// reasoning is sent back as it came, and never without the proof that it is the provider's.
func (w *writer) reasoning(r *messages.Reasoning) []block {
	switch {
	case !w.echo || r.Family != family:
		return nil
	case r.Opaque != "":
		return []block{{Type: redactedBlock, Data: r.Opaque}}
	case r.Signature != "":
		return []block{{Type: thinkingBlock, Thinking: &r.Text, Signature: r.Signature}}
	default:
		return nil
	}
}

// arguments is what a model is shown of the arguments that it wrote. The API takes objects only, so other text is
// wrapped in one.
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

func (w *writer) result(r *messages.ToolResult) block {
	out := block{Type: resultBlock, ToolUseID: toolID(r.CallID), IsError: r.IsError}
	for i := range r.Content {
		b := r.Content[i]
		if b.Image != nil {
			img, err := image(b.Image)
			if err == nil && w.images {
				out.Content = append(out.Content, img)
				continue
			}
			b.Text = unseen
		}
		if !blank(b.Text) {
			out.Content = append(out.Content, said(b.Text))
		}
	}
	return out
}

func image(i *messages.Image) (block, error) {
	if i.URL != "" {
		if !strings.HasPrefix(i.URL, "https://") {
			return block{}, invalid("an image's address must begin with https://")
		}
		return block{Type: imageBlock, Source: &source{Type: "url", URL: i.URL}}, nil
	}
	switch i.MediaType {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		return block{}, invalid("an image is of type %.100q; it must be image/jpeg, image/png, image/gif or image/webp", i.MediaType)
	}
	return block{Type: imageBlock, Source: &source{Type: "base64", MediaType: i.MediaType, Data: i.Data}}, nil
}

// toolOf keeps the schema as it was written, since the cache goes by the bytes. The API wants its type to be said.
func toolOf(t *messages.ToolSpec) (tool, error) {
	schema := t.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil || object == nil {
		return tool{}, invalid("the input schema of tool %q is not a JSON object", t.Name)
	}
	if _, ok := object["type"]; !ok {
		object["type"] = json.RawMessage(`"object"`)
		var err error
		if schema, err = json.Marshal(object); err != nil {
			return tool{}, invalid("the input schema of tool %q: %v", t.Name, err)
		}
	}
	return tool{Name: plain(t.Name), Description: t.Description, InputSchema: schema}, nil
}

// format asks for JSON: by the API's structured output when there is a schema and the model has it, and by the prompt
// alone otherwise.
func format(out *body, f *model.Format, native bool) error {
	if len(f.Schema) == 0 {
		out.System = append(out.System, said("Answer with one JSON object and nothing else."))
		return nil
	}
	var schema map[string]any
	if json.Unmarshal(f.Schema, &schema) != nil || schema == nil {
		return invalid("the schema of the reply is not a JSON object")
	}
	if !native {
		out.System = append(out.System, said(
			"Answer with one JSON object and nothing else. It must be valid against this JSON Schema:\n"+string(f.Schema),
		))
		return nil
	}
	fit, ok := closed(schema)
	if !ok {
		return invalid("the schema of the reply does not say of what type it is, which the API wants to know")
	}
	out.OutputConfig = &outputConfig{Format: outputFormat{Type: "json_schema", Schema: fit}}
	return nil
}

// budgetOf is the budget of a request; 0 is none. A turn that called tools without thinking cannot be continued with
// it: the API wants its first block to be a thought.
func budgetOf(out *body, budget int) int {
	b := min(budget, out.MaxTokens/2)
	if b < minThinking {
		return 0
	}
	n := len(out.Messages)
	if n > 1 && out.Messages[n-1].Content[0].Type == resultBlock {
		if first := out.Messages[n-2].Content[0]; first.Type != thinkingBlock && first.Type != redactedBlock {
			return 0
		}
	}
	return b
}

// cache marks the ends of what the next request will begin with too.
func cache(out *body) {
	mark := &cacheControl{Type: "ephemeral"}
	if n := len(out.Tools); n > 0 {
		out.Tools[n-1].CacheControl = mark
	}
	if n := len(out.System); n > 0 {
		out.System[n-1].CacheControl = mark
	}
	last := out.Messages[len(out.Messages)-1].Content
	for i := range slices.Backward(last) {
		if t := last[i].Type; t != thinkingBlock && t != redactedBlock { // which cannot have one
			last[i].CacheControl = mark
			return
		}
	}
}

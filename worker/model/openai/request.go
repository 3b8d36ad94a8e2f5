package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// request is the client's form of r, and what patch adds to it.
func (p *Provider) request(r model.Request) (api.ChatCompletionRequest, edit, error) {
	out := api.ChatCompletionRequest{Model: r.Model, Stream: true}
	e := edit{temperature: r.Temperature, whole: !p.config.Capabilities.Streaming, messages: map[int]echoed{}, tools: map[string]bool{}}
	if !e.whole && !p.config.Flavour.countsUnasked() {
		out.StreamOptions = &api.StreamOptions{IncludeUsage: true}
	}
	p.limit(&out, r.MaxTokens)
	if p.config.Flavour == Azure && !deployable(r.Model) {
		return out, e, refused("the model %q is not the name of a deployment", r.Model)
	}
	if err := p.chat(&out, &e, r); err != nil {
		return out, e, err
	}
	if len(r.Tools) > 0 && !p.config.Capabilities.Tools {
		return out, e, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no tools",
			Hint: "choose a model with tools for the agent, or an agent without tools for the model",
		}
	}
	for i := range r.Tools {
		t, err := tool(&r.Tools[i])
		if err != nil {
			return out, e, err
		}
		out.Tools = append(out.Tools, t)
		e.tools[r.Tools[i].Name] = true
	}
	return out, e, p.format(&out, r)
}

func refused(format string, args ...any) error {
	return &model.Error{Class: model.InvalidRequest, Detail: fmt.Sprintf(format, args...)}
}

// limit sets how long the reply may be.
func (p *Provider) limit(out *api.ChatCompletionRequest, n int) {
	if p.config.Capabilities.MaxOutput > 0 {
		n = min(n, p.config.Capabilities.MaxOutput)
	}
	if p.config.Flavour.refusesOldLimit() || reasons(out.Model) {
		out.MaxCompletionTokens = n
	} else {
		out.MaxTokens = n //nolint:staticcheck // deprecated by OpenAI, and all that most other servers know
	}
}

// reasons reports whether OpenAI takes max_completion_tokens alone for a model.
func reasons(name string) bool {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// deployable keeps a name from being more than one step of a path.
func deployable(name string) bool {
	return name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool {
		return notAlphanumeric(r) && !strings.ContainsRune("-_.", r)
	})
}

func tool(t *messages.ToolSpec) (api.Tool, error) {
	schema := t.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if !json.Valid(schema) {
		return api.Tool{}, refused("the input schema of tool %q is not JSON", t.Name)
	}
	return api.Tool{
		Type:     api.ToolTypeFunction,
		Function: &api.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: schema},
	}, nil
}

// format asks for JSON as closely as the model can be held to it; not at all when it cannot.
func (p *Provider) format(out *api.ChatCompletionRequest, r model.Request) error {
	f := r.Format
	switch {
	case f == nil, len(r.Tools) > 0 && !p.config.Flavour.formatWithTools():
	case len(f.Schema) > 0 && !json.Valid(f.Schema):
		return refused("the schema of the format is not JSON")
	case len(f.Schema) > 0 && p.config.Capabilities.JSONSchema:
		// Not strict: that is for schemas without optional fields.
		out.ResponseFormat = &api.ChatCompletionResponseFormat{
			Type:       api.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &api.ChatCompletionResponseFormatJSONSchema{Name: formatName(f.Name), Schema: f.Schema},
		}
	case p.config.Capabilities.JSONMode:
		out.ResponseFormat = &api.ChatCompletionResponseFormat{Type: api.ChatCompletionResponseFormatTypeJSONObject}
	}
	return nil
}

// maxFormatName is OpenAI's.
const maxFormatName = 64

func formatName(s string) string {
	s = strings.Map(func(r rune) rune {
		if notAlphanumeric(r) && r != '-' {
			return '_'
		}
		return r
	}, s)
	if s == "" {
		return "reply"
	}
	return s[:min(len(s), maxFormatName)]
}

// chat sets the messages.
func (p *Provider) chat(out *api.ChatCompletionRequest, e *edit, r model.Request) error {
	var shown []api.ChatCompletionMessage // images of results, for a message of the user after all of them
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != messages.RoleTool {
			out.Messages, shown = append(out.Messages, shown...), nil
		}
		for _, b := range m.Content {
			if b.ToolResult == nil {
				continue
			}
			result, images, err := p.result(b.ToolResult)
			if err != nil {
				return err
			}
			out.Messages = append(out.Messages, result)
			shown = append(shown, images...)
		}
		if m.Role == messages.RoleTool {
			continue
		}
		msg, err := p.message(m)
		if err != nil {
			return err
		}
		if m.Role == messages.RoleAssistant && r.Echo && p.config.Capabilities.Reasoning && p.config.Flavour.echoes() {
			e.messages[len(out.Messages)] = p.config.Flavour.echo(m)
		}
		if m.Role == messages.RoleUser {
			if err := p.attach(e, len(out.Messages), m, msg.MultiContent); err != nil {
				return err
			}
		}
		out.Messages = append(out.Messages, msg)
	}
	out.Messages = append(out.Messages, shown...)
	return nil
}

// message is one that holds no results.
func (p *Provider) message(m *messages.Message) (api.ChatCompletionMessage, error) {
	msg := api.ChatCompletionMessage{Role: string(m.Role)}
	parts, images, err := p.parts(m.Content)
	switch {
	case err != nil:
		return msg, err
	case images > 0 && !p.config.Capabilities.Images:
		return msg, &model.Error{
			Class: model.InvalidRequest, Detail: "this model takes no images",
			Hint: "choose a model that sees images, and say in its provider's capabilities that it does",
		}
	case images > 0:
		msg.MultiContent = parts
	default:
		msg.Content = m.Text()
	}
	for _, c := range m.Calls() {
		msg.ToolCalls = append(msg.ToolCalls, api.ToolCall{
			ID: p.config.Flavour.callID(c.ID), Type: api.ToolTypeFunction,
			Function: api.FunctionCall{Name: c.Name, Arguments: echo(c.Arguments)},
		})
	}
	return msg, nil
}

// unseen replaces an image in the result of a tool, which cannot be changed afterwards.
const unseen = "[an image that this model cannot see]"

// result is the message of a tool's result, and the messages that show its images.
func (p *Provider) result(t *messages.ToolResult) (msg api.ChatCompletionMessage, shown []api.ChatCompletionMessage, err error) {
	text := messages.Message{Content: t.Content}
	id := p.config.Flavour.callID(t.CallID)
	msg = api.ChatCompletionMessage{Role: api.ChatMessageRoleTool, ToolCallID: id, Content: text.Text()}
	parts, images, err := p.parts(t.Content)
	switch {
	case err != nil || images == 0:
		return msg, nil, err
	case !p.config.Capabilities.Images:
		msg.Content = strings.TrimSpace(msg.Content + " " + unseen)
	case p.config.Flavour.imagesInTools():
		msg.Content, msg.MultiContent = "", parts
	default:
		only := slices.DeleteFunc(parts, func(p api.ChatMessagePart) bool { return p.ImageURL == nil })
		label := api.ChatMessagePart{Type: api.ChatMessagePartTypeText, Text: "Shown by the tool call " + id + ":"}
		shown = []api.ChatCompletionMessage{{
			Role: api.ChatMessageRoleUser, MultiContent: append([]api.ChatMessagePart{label}, only...),
		}}
		if msg.Content == "" {
			msg.Content = "The image follows."
		}
	}
	return msg, shown, nil
}

// parts are the texts and images of a message.
func (p *Provider) parts(content []messages.Block) (out []api.ChatMessagePart, images int, err error) {
	for _, b := range content {
		switch {
		case b.Image != nil:
			u, err := imageURL(b.Image)
			if err != nil {
				return nil, 0, err
			}
			images++
			out = append(out, api.ChatMessagePart{Type: api.ChatMessagePartTypeImageURL, ImageURL: &api.ChatMessageImageURL{URL: u}})
		case b.Text != "":
			out = append(out, api.ChatMessagePart{Type: api.ChatMessagePartTypeText, Text: b.Text})
		}
	}
	return out, images, nil
}

func imageURL(i *messages.Image) (string, error) {
	if len(i.Data) > 0 {
		if kind, ok := strings.CutPrefix(i.MediaType, "image/"); !ok || strings.ContainsAny(kind, ";, \r\n") {
			return "", refused("an image has the media type %q", i.MediaType)
		}
		return "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data), nil
	}
	if u, err := url.Parse(i.URL); err != nil || u.Scheme != "https" || u.Host == "" {
		return "", refused("an image has neither bytes nor an https address")
	}
	return i.URL, nil
}

// echo is what a model is shown of the arguments that it wrote. Servers parse them again and answer with an error
// when they are no JSON object, so other text is wrapped in one.
func echo(args string) string {
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &object) == nil && object != nil {
		return args
	}
	return string(encode(map[string]string{"invalid_arguments": args}))
}

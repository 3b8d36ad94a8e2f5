package model

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// DefaultCapabilities are what is taken for granted of a model that nothing is known about.
func DefaultCapabilities() Capabilities {
	return Capabilities{Tools: true, Streaming: true, JSONSchema: true, JSONMode: true, Images: true, Files: true, Reasoning: true}
}

// lacks says why a model cannot take a request; empty: it can.
func (c Capabilities) lacks(r *Request) string {
	switch {
	case len(r.Tools) > 0 && !c.Tools:
		return "it takes no tools"
	case !c.Images && has(r.Messages, func(b *messages.Block) bool { return b.Image != nil }):
		return "it takes no images"
	case !c.Files && has(r.Messages, func(b *messages.Block) bool { return b.File != nil }):
		return "it takes no files"
	}
	if c.ContextWindow == 0 {
		return ""
	}
	if n := estimate(r) + c.output(r.MaxTokens); n > c.ContextWindow {
		return fmt.Sprintf("the conversation and its reply need about %d tokens, more than its window of %d", n, c.ContextWindow)
	}
	return ""
}

// output is how long a reply may be at most: what is asked for, or what the model can write if that is less.
func (c Capabilities) output(asked int) int {
	if c.MaxOutput > 0 && asked > c.MaxOutput {
		return c.MaxOutput
	}
	return asked
}

// format is what of a wished format the model knows: a schema, any JSON object, or nothing, which leaves the prompt.
func (c Capabilities) format(f *Format) *Format {
	switch {
	case f == nil || f.Schema != nil && c.JSONSchema || f.Schema == nil && c.JSONMode:
		return f
	case c.JSONMode:
		return &Format{Name: f.Name}
	default:
		return nil
	}
}

// has reports whether a block of the messages, or of a tool's result in them, is such a one.
func has(all []messages.Message, such func(*messages.Block) bool) bool {
	for i := range all {
		for j := range all[i].Content {
			b := &all[i].Content[j]
			if such(b) {
				return true
			}
			if b.ToolResult == nil {
				continue
			}
			for k := range b.ToolResult.Content {
				if such(&b.ToolResult.Content[k]) {
					return true
				}
			}
		}
	}
	return false
}

// Sizes by which tokens are guessed. A guess that is too low costs one refused call, one that is too high a model that
// would have done; so it is rather low.
const (
	bytesOfToken  = 4
	tokensOfImage = 700
)

// estimate guesses the tokens of a request, without its reply.
func estimate(r *Request) int {
	bytes, images := 0, 0
	count := func(b *messages.Block) {
		bytes += len(b.Text)
		if b.Image != nil {
			images++
		}
		if b.File != nil {
			bytes += bytesOfToken * b.File.Tokens()
		}
		if b.ToolCall != nil {
			bytes += len(b.ToolCall.Name) + len(b.ToolCall.Arguments)
		}
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Content {
			b := &r.Messages[i].Content[j]
			count(b)
			if b.ToolResult != nil {
				for k := range b.ToolResult.Content {
					count(&b.ToolResult.Content[k])
				}
			}
		}
	}
	for i := range r.Tools {
		bytes += len(r.Tools[i].Name) + len(r.Tools[i].Description) + len(r.Tools[i].InputSchema)
	}
	return bytes/bytesOfToken + images*tokensOfImage
}

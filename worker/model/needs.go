package model

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// DefaultCapabilities are what is taken for granted of a model that nothing is known about.
func DefaultCapabilities() Capabilities {
	return Capabilities{Tools: true, Streaming: true, JSONSchema: true, JSONMode: true, Images: true, Reasoning: true}
}

// lacks says why a model cannot take a request; empty: it can.
func (c Capabilities) lacks(r *Request) string {
	switch {
	case len(r.Tools) > 0 && !c.Tools:
		return "it takes no tools"
	case !c.Images && hasImages(r.Messages):
		return "it takes no images"
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

func hasImages(all []messages.Message) bool {
	for i := range all {
		for _, b := range all[i].Content {
			if b.Image != nil {
				return true
			}
			if b.ToolResult == nil {
				continue
			}
			for _, inner := range b.ToolResult.Content {
				if inner.Image != nil {
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

package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// Limits of one answer.
const (
	maxText   = 900 << 10 // bytes of text
	maxBlocks = 256
)

// result is a tool's answer as the model gets it.
func (s *server) result(res *sdk.CallToolResult) tools.Result {
	if res.NeedsInput() {
		return tools.Failure(fmt.Sprintf("The MCP server %s asks for more input from a person or a model before it answers, which is not offered here.", s.name))
	}
	a := &answer{s: s, left: maxText}
	for _, c := range res.Content {
		a.content(c)
	}
	if len(res.Content) == 0 && res.StructuredContent != nil {
		data, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return tools.Failure("The answer of the MCP server " + s.name + " cannot be encoded.")
		}
		a.text(string(data))
	}
	r := a.result()
	r.IsError = res.IsError
	if r.IsError {
		r.Code = messages.CodeToolFailed
	}
	return r
}

// answer collects what the model gets of an answer.
type answer struct {
	s         *server
	left      int
	bytes     int
	truncated bool
	out       []messages.Block
}

func (a *answer) text(t string) {
	a.bytes += len(t)
	if len(a.out) == maxBlocks || a.left <= 0 {
		a.truncated = true
		return
	}
	t = tools.Plain(a.s.redact(t)) // before it is cut: half a secret is not known as one
	if len(t) > a.left {
		t, a.truncated = strict.Clip(t, a.left), true
		a.left = 0
	}
	a.left -= len(t)
	a.out = append(a.out, messages.Block{Text: t})
}

func (a *answer) note(format string, args ...any) { a.text("(" + fmt.Sprintf(format, args...) + ")") }

func (a *answer) content(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		a.text(c.Text)
	case *sdk.ImageContent:
		a.image(c.MIMEType, c.Data)
	case *sdk.AudioContent:
		a.note("audio of %d bytes, %s, was left out", len(c.Data), line(c.MIMEType, 64))
	case *sdk.ResourceLink:
		a.note("a resource: %s %s", line(c.URI, 2048), line(c.Name, 256))
	case *sdk.EmbeddedResource:
		a.resource(c.Resource)
	default:
		a.note("content of a kind that is not known was left out")
	}
}

func (a *answer) image(kind string, data []byte) {
	a.bytes += len(data)
	if len(a.out) == maxBlocks {
		a.truncated = true
		return
	}
	a.out = append(a.out, messages.Block{Image: &messages.Image{MediaType: kind, Data: data}})
}

func (a *answer) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
		a.note("a resource without content was left out")
	case r.Blob == nil:
		a.text(r.Text)
	case strings.HasPrefix(r.MIMEType, "image/"):
		a.image(r.MIMEType, r.Blob)
	default:
		a.note("the resource %s of %d bytes, %s, is no text and was left out", line(r.URI, 2048), len(r.Blob), line(r.MIMEType, 64))
	}
}

func (a *answer) result() tools.Result {
	meta := map[string]any{"bytes": a.bytes}
	if a.truncated {
		meta["truncated"] = true
	}
	return tools.Result{Content: a.out, Meta: meta}
}

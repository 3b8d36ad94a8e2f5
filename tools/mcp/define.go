package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// Limits of one definition.
const (
	maxDescription = 8 << 10
	maxSchema      = 64 << 10 // as a model sees it
	maxToolName    = 256
)

// hash tells definitions apart: everything that a model sees follows from what it covers.
func hash(t *sdk.Tool) (string, error) {
	whole, err := json.Marshal([]any{t.Name, cmp.Or(t.Description, t.Title), t.InputSchema})
	if err != nil {
		return "", fmt.Errorf("encode definition: %w", err)
	}
	sum := sha256.Sum256(whole)
	return hex.EncodeToString(sum[:]), nil
}

// define returns what a model may know of a tool, or an error that says why it cannot be offered. The error holds no text of the
// server as it came.
func define(server string, t *sdk.Tool) (Pin, error) {
	var p Pin
	var err error
	if p.SHA256, err = hash(t); err != nil {
		return p, err
	}
	p.Description = strings.TrimSpace(tools.Plain(cmp.Or(t.Description, t.Title)))
	if p.Description == "" {
		p.Description = fmt.Sprintf("The tool %s of the MCP server %s, which does not describe it.", t.Name, server)
	}
	if len(p.Description) > maxDescription {
		return p, fmt.Errorf("its description is longer than %d bytes", maxDescription)
	}
	if p.InputSchema, err = writtenOut(t.InputSchema); err != nil {
		return p, fmt.Errorf("its schema: %s", line(err.Error(), 256)) // without the error itself: it may hold what a server wrote
	}
	_, err = p.spec(server, t.Name, messages.EffectOnce)
	return p, err
}

// spec is what a model sees.
func (p *Pin) spec(server, tool string, effect messages.Effect) (messages.ToolSpec, error) {
	name, err := toldName(server, tool)
	if err != nil {
		return messages.ToolSpec{}, err
	}
	spec := messages.ToolSpec{Name: name, Description: p.Description, InputSchema: p.InputSchema, Effect: effect}
	if _, err := tools.NewSet(described{spec}); err != nil {
		return spec, errors.New(line(err.Error(), 256)) // it may hold what a server wrote
	}
	return spec, nil
}

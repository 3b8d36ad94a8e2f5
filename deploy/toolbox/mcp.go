package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/mcp"
)

// mcpTools are the tools of MCP servers. A server that is away is offered when it comes.
func mcpTools(ctx context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	p, err := parseMCP(part, n)
	if err != nil {
		return nil, nil, err
	}
	f, err := mcp.Open(ctx, p.Config, p.Lock, p.Deps)
	if err != nil {
		return nil, nil, err
	}
	n.Degraded(f.Degraded)
	return f.Tools(), f.Close, nil
}

// MCP is the part of a tools file about MCP servers, with what stands in its lock file.
type MCP struct {
	Config   mcp.Config
	Lock     *mcp.Lock
	LockFile string
	Deps     mcp.Deps
}

// ErrNoMCP means that the operator's file has no part about MCP servers.
var ErrNoMCP = errors.New("no MCP servers are granted")

// OpenMCP reads the part about MCP servers and their lock file, and starts nothing.
func OpenMCP(t *settings.Tools, needs Needs) (*MCP, error) {
	granted := t.Granted()
	part, ok := granted.Families["mcp"]
	if !ok {
		return nil, ErrNoMCP
	}
	needs.Credentials, needs.Dir, needs.Path, needs.Home = granted.Credentials, granted.Dir, granted.Path, granted.Home
	p, err := parseMCP(part, needs)
	if err != nil {
		return nil, t.Wrong(strict.Under("spec.mcp", err))
	}
	return p, nil
}

func parseMCP(part json.RawMessage, n Needs) (*MCP, error) {
	cfg, err := mcp.ParseConfig(part, n.Credentials)
	if err != nil {
		return nil, err
	}
	file := cfg.Lock
	if !filepath.IsAbs(file) {
		file = filepath.Join(n.Dir, file)
	}
	lock, err := mcp.ReadLock(file)
	if err != nil {
		return nil, &messages.FieldError{Field: "lock", Reason: fmt.Sprintf("%s; `longshore tools pin` writes it anew", err)}
	}
	return &MCP{Config: cfg, Lock: lock, LockFile: file, Deps: mcp.Deps{
		Credentials: n.Credentials, Dir: n.Dir, Path: n.Path, Home: n.Home, Version: n.Version, Log: n.Log,
	}}, nil
}

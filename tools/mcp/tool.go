package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// returns is how long a call waits for a server that is just being connected to again.
const returns = 5 * time.Second

// rejected is the code of the library's own error for a request over HTTP whose connection broke, or that was answered with a
// status that is no answer.
const rejected = -32005

// keyName is the field of a request's _meta with the idempotency key, for servers that know it.
const keyName = "run.longshore/idempotencyKey"

// tools are what this server offers.
func (s *server) tools() ([]tools.Tool, error) {
	var made []tools.Tool
	told := map[string]string{}
	add := func(what string, t tools.Tool) error {
		name := t.Spec().Name
		if other := told[name]; other != "" {
			return wrong("tools", "%s and %s would both be called %s: leave one of them out of tools", other, what, name)
		}
		told[name] = what
		made = append(made, t)
		return nil
	}
	for _, tool := range slices.Sorted(maps.Keys(s.pins)) {
		p := s.pins[tool]
		spec, err := p.spec(s.name, tool, s.effect(tool))
		if err != nil {
			return nil, wrong("tools", "the lock file has %q: %s", strict.Shown(tool), err.Error())
		}
		if err := add("the tool "+strict.Shown(tool), &called{described{spec}, s, tool}); err != nil {
			return nil, err
		}
	}
	readers, err := s.readers()
	if err != nil {
		return nil, err
	}
	for _, r := range readers {
		if err := add("what reads "+r.what, r); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// described is a spec as a Tool that cannot be called.
type described struct{ spec messages.ToolSpec }

// Spec implements tools.Tool.
func (d described) Spec() messages.ToolSpec { return d.spec }

// Call implements tools.Tool.
func (d described) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, errors.New("it is only described")
}

// called is a tool of a server.
type called struct {
	described

	s    *server
	tool string // as the server calls it
}

var (
	_ tools.Timeouter = (*called)(nil)
	_ tools.Retrier   = (*called)(nil)
	_ tools.Presence  = (*called)(nil)
	_ tools.Weigher   = (*called)(nil)
)

// Timeout implements tools.Timeouter.
func (t *called) Timeout() time.Duration { return time.Duration(t.s.cfg.Timeout) }

// Retry implements tools.Retrier.
func (t *called) Retry() tools.Retry { return again() }

// Weight implements tools.Weigher.
func (t *called) Weight(*tools.Call) int64 { return t.s.weight() }

// messageWeight is how many times a message is in memory while the last of it is read and decoded.
const messageWeight = 3

// weight is how much memory a call of this server may take: its answer is read as a whole before it is cut.
func (s *server) weight() int64 { return messageWeight*int64(s.cfg.Bytes) + tools.DefaultWeight }

// Present implements tools.Presence.
func (t *called) Present() bool { return t.s.offers(t.tool) }

// again is how a call without effect is made again: a server that lost its session is back soon.
func again() tools.Retry {
	return tools.Retry{Retries: 2, First: 500 * time.Millisecond, Most: 2 * time.Second}
}

// Call implements tools.Tool.
func (t *called) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return t.s.ask(ctx, c, t.spec.Effect, func(ctx context.Context, n *session) (tools.Result, error) {
		if why := n.problems()[t.tool]; why != "" {
			r := tools.Failure(fmt.Sprintf("Refused: the tool is disabled, because of what the MCP server %s says of it: %s. The operator must look into it; other arguments would not help.", t.s.name, why))
			r.Code = messages.CodePolicy
			return r, nil
		}
		res, err := n.sdk.CallTool(ctx, &sdk.CallToolParams{Name: t.tool, Arguments: c.Arguments, Meta: sdk.Meta{keyName: c.Key}})
		if err != nil {
			return tools.Result{}, err
		}
		return t.s.result(res), nil
	})
}

// ask makes one request of a call. The error of f is that of the request.
func (s *server) ask(ctx context.Context, c tools.Call, effect messages.Effect, f func(context.Context, *session) (tools.Result, error)) (tools.Result, error) {
	if reason := s.refuses(&c); reason != "" {
		r := tools.Failure("Refused: " + reason + ".")
		r.Code = messages.CodePolicy
		return r, nil
	}
	soon, stop := context.WithTimeout(ctx, returns)
	n, err := s.await(soon, true)
	stop()
	if err != nil {
		if ctx.Err() != nil {
			return tools.Result{}, context.Cause(ctx)
		}
		return s.unreached("is away")
	}
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	case <-ctx.Done():
		return tools.Result{}, context.Cause(ctx)
	}
	if c.Begin != nil {
		if err := c.Begin(); err != nil {
			return tools.Result{}, err
		}
	}
	r, err := f(ctx, n)
	switch {
	case err == nil:
		if r.Meta == nil {
			r.Meta = map[string]any{}
		}
		r.Meta["server"] = s.name
		return r, nil
	case ctx.Err() != nil: // the server was told
		return tools.Result{}, context.Cause(ctx)
	default:
		return s.failed(err, effect)
	}
}

// refuses says why the agent's grants or the rules of the run do not leave a call.
func (s *server) refuses(c *tools.Call) string {
	if s.auth == nil {
		for _, name := range slices.Sorted(maps.Values(s.cfg.Secrets)) {
			if !messages.Leaves(c.Grants.Credentials, name) {
				return fmt.Sprintf("the credential of the MCP server %s, %q, is not in the agent's grants", s.name, name)
			}
		}
		return ""
	}
	left, err := hosts.Parse(c.Grants.Hosts)
	if err != nil {
		return "grants.hosts of the agent cannot be read: " + err.Error()
	}
	if c.Grants.Hosts != nil && !left.Lists(s.auth.endpoint) {
		return fmt.Sprintf("the host of the MCP server %s, %s, is not in the agent's grants", s.name, s.auth.endpoint)
	}
	for _, name := range []string{s.auth.credential, s.auth.secret} {
		if name != "" && !messages.Leaves(c.Grants.Credentials, name) {
			return fmt.Sprintf("the credential of the MCP server %s, %q, is not in the agent's grants", s.name, name)
		}
	}
	if c.Reach != nil {
		if err := c.Reach(s.auth.endpoint); err != nil {
			return err.Error()
		}
	}
	return ""
}

// unreached is a call that certainly had no effect.
func (s *server) unreached(why string) (tools.Result, error) {
	r := tools.Failure(fmt.Sprintf("The MCP server %s %s. Nothing came of the call.", s.name, why))
	r.Transient = true
	return r, nil
}

// failed is a request without an answer, or with one that is an error of the protocol.
func (s *server) failed(err error, effect messages.Effect) (tools.Result, error) {
	if _, ok := errors.AsType[*unsentError](err); ok {
		return s.unreached("cannot be reached")
	}
	if errors.Is(err, sdk.ErrSessionMissing) { // it does not serve a session that it does not know
		return s.unreached("lost the session")
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != rejected {
		return tools.Failure(fmt.Sprintf("The MCP server %s answered with the error %d: %s", s.name, e.Code, s.clean(e.Message))), nil
	}
	// The text of the library may hold addresses and what the server wrote: the log has it when the session ends for it.
	text := fmt.Sprintf("The MCP server %s gave no answer that can be read: the connection broke, or the answer was too large or malformed.", s.name)
	r := tools.Failure(text)
	switch effect {
	case messages.EffectOnce:
		r = tools.Failure(text + " The call may or may not have taken effect; check before you repeat it.")
		r.Code = messages.CodeToolUnknownOutcome
	default:
		r.Transient = true
	}
	return r, nil
}

package mcp

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// Descriptions for the model.
var (
	//go:embed list_resources.md
	listResources string
	//go:embed read_resource.md
	readResource string
	//go:embed list_prompts.md
	listPrompts string
	//go:embed get_prompt.md
	getPrompt string
)

const maxListed = 200 // entries that are shown of one page

type (
	pageArgs struct {
		Cursor string `json:"cursor,omitempty" jsonschema:"Where to continue, from the previous page"`
	}
	uriArgs struct {
		URI string `json:"uri" jsonschema:"URI of the resource"`
	}
	promptArgs struct {
		Name      string            `json:"name"                jsonschema:"Name of the prompt"`
		Arguments map[string]string `json:"arguments,omitempty" jsonschema:"Arguments of the prompt by name"`
	}
)

// reader is a tool that reads what a server has besides tools.
type reader struct {
	tools.Tool

	s    *server
	what string // "resources" or "prompts"
}

var (
	_ tools.Timeouter = (*reader)(nil)
	_ tools.Retrier   = (*reader)(nil)
	_ tools.Presence  = (*reader)(nil)
	_ tools.Weigher   = (*reader)(nil)
)

// Timeout implements tools.Timeouter.
func (r *reader) Timeout() time.Duration { return time.Duration(r.s.cfg.Timeout) }

// Retry implements tools.Retrier.
func (r *reader) Retry() tools.Retry { return again() }

// Weight implements tools.Weigher.
func (r *reader) Weight(*tools.Call) int64 { return r.s.weight() }

// Present implements tools.Presence.
func (r *reader) Present() bool { return r.s.present() != nil }

// readers are the tools for resources and prompts, where the operator grants them.
func (s *server) readers() ([]*reader, error) {
	var made []*reader
	add := func(what string, t tools.Tool, err error) error {
		made = append(made, &reader{t, s, what})
		return err
	}
	if s.cfg.Resources {
		t, err := reads(s, "list_resources", listResources, s.listResources)
		if err := add("resources", t, err); err != nil {
			return nil, err
		}
		t, err = reads(s, "read_resource", readResource, s.readResource)
		if err := add("resources", t, err); err != nil {
			return nil, err
		}
	}
	if s.cfg.Prompts {
		t, err := reads(s, "list_prompts", listPrompts, s.listPrompts)
		if err := add("prompts", t, err); err != nil {
			return nil, err
		}
		t, err = reads(s, "get_prompt", getPrompt, s.getPrompt)
		if err := add("prompts", t, err); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// reads makes a tool of a request that changes nothing.
func reads[In any](s *server, name, description string, f func(context.Context, *session, *answer, In) error) (tools.Tool, error) {
	told, err := toldName(s.name, name)
	if err != nil {
		return nil, err
	}
	spec := messages.ToolSpec{Name: told, Description: strings.ReplaceAll(description, "SERVER", s.name), Effect: messages.EffectRead}
	return tools.Func(spec, func(ctx context.Context, c tools.Call, in In) (tools.Result, error) {
		return s.ask(ctx, c, messages.EffectRead, func(ctx context.Context, n *session) (tools.Result, error) {
			a := &answer{s: s, left: maxText}
			if err := f(ctx, n, a, in); err != nil {
				return tools.Result{}, err
			}
			return a.result(), nil
		})
	})
}

func (s *server) listResources(ctx context.Context, n *session, a *answer, in pageArgs) error {
	res, err := n.sdk.ListResources(ctx, &sdk.ListResourcesParams{Cursor: in.Cursor})
	if err != nil {
		return err
	}
	l := &listed{}
	for _, r := range res.Resources {
		if r != nil {
			l.add(r.URI, r.Name, r.Description)
		}
	}
	l.end(a, "resources", res.NextCursor)
	if in.Cursor != "" {
		return nil
	}
	templates, err := n.sdk.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{})
	if err != nil || len(templates.ResourceTemplates) == 0 {
		return nil //nolint:nilerr // many servers have none and answer so with an error
	}
	l = &listed{}
	for _, t := range templates.ResourceTemplates {
		if t != nil {
			l.add(t.URITemplate, t.Name, t.Description)
		}
	}
	l.end(a, "templates of URIs", "")
	return nil
}

func (s *server) readResource(ctx context.Context, n *session, a *answer, in uriArgs) error {
	res, err := n.sdk.ReadResource(ctx, &sdk.ReadResourceParams{URI: in.URI})
	if err != nil {
		return err
	}
	for _, c := range res.Contents {
		a.resource(c)
	}
	return nil
}

func (s *server) listPrompts(ctx context.Context, n *session, a *answer, in pageArgs) error {
	res, err := n.sdk.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: in.Cursor})
	if err != nil {
		return err
	}
	l := &listed{}
	for _, p := range res.Prompts {
		if p == nil {
			continue
		}
		var args []string
		for _, arg := range p.Arguments {
			if arg == nil {
				continue
			}
			args = append(args, arg.Name)
		}
		l.add(p.Name, "("+strings.Join(args, ", ")+")", p.Description)
	}
	l.end(a, "prompts", res.NextCursor)
	return nil
}

func (s *server) getPrompt(ctx context.Context, n *session, a *answer, in promptArgs) error {
	res, err := n.sdk.GetPrompt(ctx, &sdk.GetPromptParams{Name: in.Name, Arguments: in.Arguments})
	if err != nil {
		return err
	}
	for _, m := range res.Messages {
		if m == nil {
			continue
		}
		a.text(line(string(m.Role), 32) + ":")
		a.content(m.Content)
	}
	return nil
}

// listed is a list as a model sees it, an entry a line, so that none can look like another.
type listed struct {
	n    int
	text strings.Builder
}

func (l *listed) add(key, name, description string) {
	if l.n++; l.n <= maxListed {
		fmt.Fprintf(&l.text, "%s %s: %s\n", line(key, 2048), line(name, 256), line(description, 512))
	}
}

func (l *listed) end(a *answer, what, next string) {
	fmt.Fprintf(&l.text, "%d %s", l.n, what)
	if l.n > maxListed {
		fmt.Fprintf(&l.text, ", of which %d are told", maxListed)
	}
	if next != "" {
		fmt.Fprintf(&l.text, "; there are more with the cursor %q", line(next, 1024))
	}
	a.text(l.text.String())
}

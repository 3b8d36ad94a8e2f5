package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// errLost is why a call of a run that is another worker's by now must have no effect.
var errLost = errors.New("the run is another worker's")

// crashes makes calls of a worker that dies before and after their effect.
func (b *bench) crashes(ctx context.Context, c Case, args json.RawMessage) {
	b.lostBefore(ctx, c, args)
	if b.spec.Effect == messages.EffectOnce {
		b.unknownAfter(ctx, c, args)
	} else {
		b.repeatedAfter(ctx, c, args)
	}
}

// lostBefore lets the run be lost right before the effect. A tool need not ask; one that does keeps to the answer.
func (b *bench) lostBefore(ctx context.Context, c Case, args json.RawMessage) {
	ws := b.workspace(c)
	defer func() { _ = ws.Close() }()
	call, before, files, asked := b.call(c, args, ws), c.effects(), b.files(ctx, ws), false
	call.Begin = func() error {
		asked = true
		return errLost
	}
	_, err := b.tool.Call(ctx, call)
	if !asked {
		return
	}
	if !errors.Is(err, errLost) {
		b.broke("a call whose run was lost ended with %w, want the error of Begin", err)
	}
	if n := c.effects() - before; n != 0 {
		b.broke("a call whose run was lost had %d effects", n)
	}
	if diff := cmp.Diff(files, b.files(ctx, ws)); diff != "" {
		b.broke("a call whose run was lost changed files (-before +after):\n%s", diff)
	}
}

// repeatedAfter lets the worker die after the effect: nothing is known of the answer, and the next worker makes the call again with
// the same key, on the same files.
func (b *bench) repeatedAfter(ctx context.Context, c Case, args json.RawMessage) {
	ws := b.workspace(c)
	dir := b.last
	call, before := b.call(c, args, ws), c.effects()
	first, err := b.tool.Call(ctx, call)
	files := b.files(ctx, ws)
	if err = errors.Join(err, ws.Close()); err != nil {
		b.broke("a call ended with %w", err)
		return
	}
	next, err := tools.Tool(b.tool), error(nil)
	if c.Restarted != nil {
		next, err = c.Restarted()
	}
	if err == nil {
		call.Workspace, err = sandbox.Open(dir, sandbox.Limits{})
	}
	if err != nil {
		b.broke("restart: %w", err)
		return
	}
	defer func() { _ = call.Workspace.Close() }()
	again, err := next.Call(ctx, call)
	if err != nil {
		b.broke("the call of the next worker ended with %w", err)
		return
	}
	if diff := cmp.Diff(first, again); diff != "" {
		b.broke("the next worker was answered otherwise for the same key (-first +next):\n%s", diff)
	}
	b.counts("a call that the next worker made again", c, before)
	if diff := cmp.Diff(files, b.files(ctx, call.Workspace)); diff != "" {
		b.broke("the next worker changed files again for the same key (-first +next):\n%s", diff)
	}
}

// unknownAfter lets a call with the effect once break down after its effect: it is not made again, and the model is told that its outcome
// is unknown.
func (b *bench) unknownAfter(ctx context.Context, c Case, args json.RawMessage) {
	set, err := tools.NewSet(breaking{b.tool})
	if err != nil {
		b.broke("%w", err)
		return
	}
	ws := b.workspace(c)
	defer func() { _ = ws.Close() }()
	before, calls, many := c.effects(), b.tool.calls.Load(), maxAsked
	call := b.call(c, args, ws)
	call.Retries = &many
	r, err := set.Call(ctx, b.spec.Name, call)
	if err != nil || r.Code != messages.CodeToolUnknownOutcome {
		b.broke("a call that broke down after its effect was answered %q, %w, want the code %s", r.Code, err, messages.CodeToolUnknownOutcome)
	}
	if n := b.tool.calls.Load() - calls; n != 1 {
		b.broke("a call with the effect once was made %d times", n)
	}
	b.counts("a call that broke down", c, before)
}

// maxAsked is how many retries an agent may ask for.
const maxAsked = 10

// breaking is a tool that breaks down after each call.
type breaking struct{ tools.Tool }

func (b breaking) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	if _, err := b.Tool.Call(ctx, c); err != nil {
		return tools.Result{}, err
	}
	panic("the worker dies")
}

// files are those of a workspace with what is in them.
func (b *bench) files(ctx context.Context, ws *sandbox.Workspace) map[string]string {
	names, err := ws.List(ctx)
	if err != nil {
		b.broke("%w", err)
	}
	out := map[string]string{}
	for _, name := range names {
		data, err := ws.Read(name)
		if err != nil { // such as one that is not text
			data = fmt.Append(nil, err)
		}
		out[name] = string(data)
	}
	return out
}

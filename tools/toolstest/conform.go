// Package toolstest checks that a tool keeps the promises of [tools.Tool]. A family of tools calls [Run] in its tests.
package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// Case is a call that the tool is able to make. It succeeds, unless Fails says otherwise.
type Case struct {
	Arguments string
	Files     map[string]string // what the workspace holds before
	Grants    messages.Grants   // of the run's agent
	Delegate  *messages.Delegate
	Fails     bool // it can only fail, such as for a file that is missing
	// Effects counts what calls have done, where it has its effect. Calls of an idempotent tool with the same key count once. nil: it cannot
	// be counted.
	Effects func() int
	// Restarted makes the tool anew, as the worker does that takes over a run. nil: the same one is called again.
	Restarted func() (tools.Tool, error)
}

// atOnce is how many calls are made at the same time.
const atOnce = 8

// patience is how soon a call must end after its context, with room for a busy machine.
const patience = 5 * time.Second

// Run reports every promise that the tool breaks. It calls the tool several times, each with a fresh workspace; give
// at least one case.
func Run(t *testing.T, tool tools.Tool, good ...Case) {
	t.Helper()
	for _, err := range Broken(t.Context(), t.TempDir(), tool, good...) {
		t.Error(err)
	}
}

// Broken returns an error for every promise that the tool breaks. It makes workspaces below dir.
func Broken(ctx context.Context, dir string, tool tools.Tool, good ...Case) []error {
	counted := &counter{Tool: tool}
	set, err := tools.NewSet(counted)
	if err != nil {
		return []error{err}
	}
	if len(good) == 0 {
		return []error{errors.New("no case was given")}
	}
	b := bench{dir: dir, set: set, spec: tool.Spec(), tool: counted, name: "spec"}
	if diff := cmp.Diff(b.spec, tool.Spec()); diff != "" {
		b.broke("the spec changes:\n%s", diff)
	}
	b.rejects()
	for i, c := range good {
		b.name = fmt.Sprintf("case %d", i)
		if args := b.answers(ctx, c); args != nil {
			b.crashes(ctx, c, args)
			b.cancels(ctx, c, args)
			b.together(ctx, c, args)
			b.late(ctx, c, args)
		}
	}
	return b.errs
}

// counter counts the calls that reach a tool.
type counter struct {
	tools.Tool
	calls atomic.Int64
}

func (c *counter) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	c.calls.Add(1)
	return c.Tool.Call(ctx, call)
}

type bench struct {
	dir        string
	workspaces int
	last       string // folder of the last workspace
	set        *tools.Set
	spec       messages.ToolSpec
	tool       *counter
	name       string // of the case
	keys       atomic.Int64
	errs       []error
}

func (b *bench) broke(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf("%s: "+format, append([]any{b.name}, args...)...))
}

// call is a call with a key of its own.
func (b *bench) call(c Case, args json.RawMessage, ws *sandbox.Workspace) tools.Call {
	id := fmt.Sprintf("c%d", b.keys.Add(1))
	run := messages.Ref{Tenant: "conformance", Run: "r1"}
	return tools.Call{Run: run, ID: id, Key: "r1.1." + id, Arguments: args, Workspace: ws, Grants: c.Grants, Delegate: c.Delegate}
}

// rejects tries arguments that fit no tool, and none at all when something is required.
func (b *bench) rejects() {
	b.name = "bad arguments"
	bad := []string{`{`, `nope`, `[]`, `null`, `"text"`, `{} {}`, `{"toolstest_unknown":1}`, `{"a":1,"a":2}`, "{\"\xff\":1}"}
	var schema struct {
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(b.spec.InputSchema, &schema); err != nil {
		b.broke("%w", err)
	}
	if len(schema.Required) > 0 {
		bad = append(bad, "", "{}")
	}
	for name := range schema.Properties {
		key, err := json.Marshal(name)
		if err != nil {
			b.broke("%w", err)
		}
		bad = append(bad, fmt.Sprintf(`{%s:{"toolstest_unknown":[[1]]}}`, key)) // of a wrong type, or misses another
	}
	for _, arguments := range bad {
		_, refusal := b.set.Check(messages.ToolCall{Name: b.spec.Name, Arguments: arguments}, []messages.ToolSpec{b.spec})
		if refusal == nil {
			b.broke("the schema lets %q pass", arguments)
		}
	}
	if n := b.tool.calls.Load(); n != 0 {
		b.broke("Check called the tool %d times", n)
	}
}

// answers makes a call, and again with the same key where that must do no harm. It returns the arguments, nil when
// they were refused.
func (b *bench) answers(ctx context.Context, c Case) json.RawMessage {
	args, refusal := b.set.Check(messages.ToolCall{Name: b.spec.Name, Arguments: c.Arguments}, []messages.ToolSpec{b.spec})
	if refusal != nil {
		b.broke("the arguments were refused: %s", text(*refusal))
		return nil
	}
	ws := b.workspace(c)
	defer func() { _ = ws.Close() }()
	call, before := b.call(c, args, ws), c.effects()
	first, err := b.tool.Call(ctx, call) // not through the set, which repairs what it can
	if err != nil {
		b.broke("the call ended with %w", err)
		return args
	}
	for _, block := range first.Content {
		if block.ToolCall != nil || block.ToolResult != nil || !utf8.ValidString(block.Text) {
			b.broke("the result is not valid text: %q", block.Text)
		}
	}
	switch {
	case first.IsError && text(first) == "":
		b.broke("a failure without words")
	case first.IsError && !c.Fails:
		b.broke("the call failed: %s", text(first))
	case len(first.Meta) == 0 && !first.IsError && first.Park == nil && first.Delegation == nil:
		b.broke("the result has no meta")
	}
	b.counts("the call", c, before)
	if b.spec.Effect == messages.EffectOnce {
		return args
	}
	again, err := b.tool.Call(ctx, call)
	if err != nil {
		b.broke("the second call ended with %w", err)
	} else if diff := cmp.Diff(first, again); diff != "" {
		b.broke("the second call with the same key gave another result (-first +second):\n%s", diff)
	}
	b.counts("the call and its repetition with the same key", c, before)
	return args
}

func (c *Case) effects() int {
	if c.Effects == nil {
		return 0
	}
	return c.Effects()
}

// counts compares the effects so far with those that one call has.
func (b *bench) counts(what string, c Case, before int) {
	want := 1
	if c.Fails || b.spec.Effect == messages.EffectRead {
		want = 0
	}
	if got := c.effects() - before; c.Effects != nil && got != want {
		b.broke("%s had %d effects, want %d", what, got, want)
	}
}

// together makes several calls at once. The race detector sees what they share.
func (b *bench) together(ctx context.Context, c Case, args json.RawMessage) {
	errs := make(chan error, atOnce)
	for range atOnce {
		ws := b.workspace(c)
		call := b.call(c, args, ws)
		go func() {
			_, err := b.set.Call(ctx, b.spec.Name, call)
			errs <- errors.Join(err, ws.Close())
		}()
	}
	for range atOnce {
		if err := <-errs; err != nil {
			b.broke("one of several calls at once ended with %w", err)
		}
	}
}

// late makes a call that the agent gives no time.
func (b *bench) late(ctx context.Context, c Case, args json.RawMessage) {
	ws := b.workspace(c)
	call := b.call(c, args, ws)
	call.Timeout = time.Nanosecond
	done := make(chan error, 1)
	go func() {
		_, err := b.set.Call(ctx, b.spec.Name, call)
		done <- errors.Join(err, ws.Close())
	}()
	select {
	case err := <-done:
		if err != nil {
			b.broke("a call whose time is over ended with %w", err)
		}
	case <-time.After(patience):
		b.broke("a call still ran %v after its time was over", patience)
	}
}

// cancels ends a call before it begins and as soon as it has begun.
func (b *bench) cancels(ctx context.Context, c Case, args json.RawMessage) {
	for _, begun := range []bool{false, true} {
		ws := b.workspace(c)
		ended, cancel := context.WithCancel(ctx)
		if !begun {
			cancel()
		}
		call := b.call(c, args, ws)
		started, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			close(started)
			_, _ = b.tool.Call(ended, call)
		}()
		<-started
		cancel()
		select {
		case <-done:
			_ = ws.Close()
		case <-time.After(patience):
			b.broke("a call still ran %v after it was cancelled", patience)
			return // with its workspace, which the call still holds
		}
	}
}

// workspace is a fresh one with the files of a case.
func (b *bench) workspace(c Case) *sandbox.Workspace {
	b.workspaces++
	b.last = filepath.Join(b.dir, strconv.Itoa(b.workspaces))
	ws, err := sandbox.Open(b.last, sandbox.Limits{})
	if err != nil {
		b.broke("%w", err)
		return nil
	}
	for name, content := range c.Files {
		if err := ws.Write(name, []byte(content)); err != nil {
			b.broke("%w", err)
		}
	}
	return ws
}

func text(r tools.Result) string {
	m := messages.Message{Content: r.Content}
	return m.Text()
}

package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxOutput is how many bytes of text one call may tell a model.
const maxOutput = 1 << 20

// errTimeout is the cause of a tool's context when its time is up.
var errTimeout = errors.New("the tool's time is up")

// Call makes a call that passed Check, at most once, and waits for it to end. The Result holds valid UTF-8 of bounded
// size; a tool that takes too long or panics is a Result with IsError. Too long is longer than the tool's own timeout, or
// else that of the Set, and longer than c.Timeout when that is shorter.
//
// An error means that nothing is known to have come of the call. When ctx ended it is the cause of ctx; an answer
// that the tool still gave is kept, except a failure, which may be nothing but the end of ctx in other words.
func (s *Set) Call(ctx context.Context, name string, c Call) (Result, error) {
	m := s.members[name]
	if m == nil {
		return Result{}, fmt.Errorf("tool %q is unknown; known: %s", strict.Clip(name, maxShown), orNone(s.names))
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	most := cmp.Or(m.timeout, s.Timeout, DefaultTimeout)
	if c.Timeout > 0 {
		most = min(most, c.Timeout)
	}
	limited, stop := context.WithTimeoutCause(ctx, most, errTimeout)
	defer stop()
	began := time.Now()
	r, err := s.retried(limited, m, c)
	if err == nil && r.Park == nil && r.Delegation == nil { // else the answer is still to come
		m.nanos.Add(int64(time.Since(began)))
		m.calls.Add(1)
	}
	switch {
	case err == nil && !r.IsError:
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case err == nil && r.Transient: // it is known that it had no effect
	case errors.Is(context.Cause(limited), errTimeout):
		r = m.late(most)
	case err != nil:
		return Result{}, fmt.Errorf("call tool %s: %w", name, err)
	}
	r = r.normal(c.Redact)
	for _, b := range r.Content {
		m.bytes.Add(uint64(len(b.Text)))
	}
	return r, nil
}

// guarded is the one place where a panic of a tool ends.
func (s *Set) guarded(ctx context.Context, m *member, c Call) (r Result, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if s.Log != nil {
			// The value may hold anything, arguments included; only the runtime's own words are known to be harmless.
			what := fmt.Sprintf("%T", p)
			if e, ok := p.(runtime.Error); ok {
				what = e.Error()
			}
			s.Log.LogAttrs(ctx, slog.LevelError, "tool panicked", slog.String("tool", m.spec.Name),
				slog.String("tenant", c.Run.Tenant), slog.String("task_id", c.Run.Run), slog.String("call_id", c.ID), slog.String("panic", what),
				slog.String("stack", string(debug.Stack())))
		}
		r, err = m.broken(), nil
	}()
	return m.tool.Call(ctx, c)
}

// late is the Result of a call whose time was up.
func (m *member) late(after time.Duration) Result {
	return m.unfinished(fmt.Sprintf("Tool %s did not finish within %v and was stopped.", m.spec.Name, after))
}

// broken is the Result of a call that panicked.
func (m *member) broken() Result {
	return m.unfinished(fmt.Sprintf("Tool %s panicked: a defect of the tool, not of the arguments.", m.spec.Name))
}

// unfinished adds what the effect of the tool means for a call that stopped somewhere.
func (m *member) unfinished(text string) Result {
	r := Failure(text)
	switch m.spec.Effect {
	case messages.EffectOnce:
		r = Failure(text + " It may or may not have taken effect; check before you repeat it.")
		r.Code = messages.CodeToolUnknownOutcome
	case messages.EffectIdempotent:
		r = Failure(text + " It may have taken effect; repeating it does no harm.")
	case messages.EffectRead:
	}
	return r
}

// normal keeps a Result within what others may rely on. What is cut goes through redact before, which may be nil.
func (r Result) normal(redact func(string) string) Result {
	if r.Park != nil {
		return Result{Park: r.Park}
	}
	r.Transient, r.RetryAfter = false, 0
	if !r.IsError {
		r.Code = ""
	} else if r.Code == "" {
		r.Code = messages.CodeToolFailed
	}
	r.Files = soundPaths(r.Files)
	r.Meta = soundMeta(r.Meta)
	left, images := maxOutput, imageRoom{}
	content := make([]messages.Block, 0, max(1, len(r.Content)))
	for i, b := range r.Content {
		if b.Image != nil {
			content = append(content, images.take(b.Image))
			continue
		}
		text := strings.ToValidUTF8(b.Text, "\uFFFD")
		if len(text) > left {
			rest := messages.Message{Content: r.Content[i:]} // so that the note counts all text that is gone
			whole := strings.ToValidUTF8(rest.Text(), "\uFFFD")
			if redact != nil {
				whole = redact(whole)
			}
			content = append(content, messages.Block{Text: strict.Clip(whole, left)})
			break
		}
		left -= len(text)
		content = append(content, messages.Block{Text: text})
	}
	if len(content) == 0 {
		content = messages.TextContent("")
	}
	r.Content = content
	return r
}

// Limits of the paths that one call may name.
const (
	maxFiles = 1000
	maxPath  = 1 << 10 // bytes
)

// soundPaths are the paths that can be told: text, and not too long or too many.
func soundPaths(in []string) []string {
	var out []string
	for _, p := range in {
		if p != "" && len(p) <= maxPath && utf8.ValidString(p) && len(out) < maxFiles {
			out = append(out, p)
		}
	}
	return out
}
